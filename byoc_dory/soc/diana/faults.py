"""Corrupting a byte on purpose: a setting of DIANA's device models that no program can reach.

It is for testing the tools that look for errors: `htvm.tools.verification` must find it at the
right layer, tile, element and line.
"""

from __future__ import annotations

from byoc_dory.errors import InputError
from byoc_dory.soc.base import Accelerator, Soc

# Offsets in the DMA's block of registers: DIANA_FAULT_* of runtime_c/soc/diana/diana_regs.h.
_CORE, _TRIGGER, _BYTE, _FLIP = 0x30, 0x34, 0x38, 0x3C


def fault_settings(
    soc: Soc, core: Accelerator, trigger: int, byte: int, flip: int
) -> dict[int, int]:
    """Return register -> value that corrupts one byte of the result of one trigger.

    Args:
        soc: description of DIANA.
        core: the core whose result is corrupted.
        trigger: number of the core's trigger, counted from 1 since the start of the run.
        byte: offset of the byte in the result as stored in L1, where aligned groups of four are
            reversed.  If the trigger does not write this byte, the device model complains.
        flip: mask of the bits to flip, 1 to 255.

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
