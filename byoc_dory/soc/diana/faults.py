"""A wrong byte on purpose: a setting of DIANA's device models, which no program can reach.

It is how tools that look for errors are tested: `htvm.verification` must find it at the right
layer, tile, element and line.
"""

from __future__ import annotations

from byoc_dory.errors import InputError
from byoc_dory.soc.base import Accelerator, Soc

__all__ = ["fault_settings"]

# Offsets in the DMA's block of registers: DIANA_FAULT_* of runtime_c/soc/diana/diana_regs.h.
_CORE, _TRIGGER, _BYTE, _FLIP = 0x30, 0x34, 0x38, 0x3C


def fault_settings(
    soc: Soc, core: Accelerator, trigger: int, byte: int, flip: int
) -> dict[int, int]:
    """Return register -> value that makes one byte of the result of one trigger wrong.

    Args:
        soc: DIANA.
        core: whose result.
        trigger: of that core, counted from 1 since the start of the run.
        byte: of the result as it lies in L1, where aligned groups of four are reversed.  A byte the
            trigger does not write is a complaint of the device model.
        flip: bits of it that change, 1 to 255.

    Raises:
        InputError: a number is out of range.
    """
    if soc.dma is None or trigger < 1 or byte < 0 or not 1 <= flip <= 255:
        raise InputError(
            f"trigger {trigger}, byte {byte}, flip {flip} name no fault",
            hint="count triggers from 1 and bytes from 0, and flip 1 to 255",
        )
    base = soc.dma.registers
    return {
        base + _CORE: core.registers,
        base + _TRIGGER: trigger,
        base + _BYTE: byte,
        base + _FLIP: flip,
    }
