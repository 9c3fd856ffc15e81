"""The cores of microcontrollers: what compiler and emulator must know of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from byoc_dory.soc.board import boards
from byoc_dory.soc.cores import ArmCore, ArmCycles, Host, HostCost, QemuMachine
from byoc_dory.soc.hosts import CV32E40P

__all__ = ["CORES"]

# assumed: generous for generated code, which is not recursive (runs measure what is used).
_STACK = 4_096

# Estimates for verdicts only, in instructions: derived on ResNet-8 in the emulator.
_DSP = HostCost(
    conv_mac=1.5,
    pointwise_mac=1.5,
    dense_mac=1.6,
    depthwise_mac=4.0,
    add_element=15.0,
    pool_element=4.0,
    softmax_element=100.0,
    move_element=3.0,
    real_element=200.0,
    layout_byte=3.0,
)
_MVE = HostCost(
    conv_mac=0.25,
    pointwise_mac=0.25,
    dense_mac=0.25,
    depthwise_mac=1.0,
    add_element=5.0,
    pool_element=3.0,
    softmax_element=100.0,
    move_element=0.5,
    real_element=200.0,
    layout_byte=3.0,
)
_SCALAR = HostCost(
    conv_mac=3.0,
    pointwise_mac=3.0,
    dense_mac=3.5,
    depthwise_mac=5.0,
    add_element=25.0,
    pool_element=4.0,
    softmax_element=120.0,
    move_element=3.0,
    real_element=250.0,
    layout_byte=3.0,
)
_SMALL = HostCost(
    conv_mac=6.0,
    pointwise_mac=6.0,
    dense_mac=6.5,
    depthwise_mac=9.0,
    add_element=60.0,
    pool_element=6.0,
    softmax_element=300.0,
    move_element=4.0,
    real_element=400.0,
    layout_byte=4.0,
)

# Published: Cortex-M0+ TRM r0p1 (DDI 0484C), table 3-1; with the multiplier of one cycle, as the
# STM32G0 has it.
_M0PLUS = ArmCycles(
    source="Cortex-M0+ TRM r0p1, table 3-1",
    load=(2, 2),
    next_load=(2, 2),
    store=(2, 2),
    multiple=(1, 1),
    multiply=(1, 1),
    accumulate=(1, 1),
    long_multiply=(1, 1),
    long_accumulate=(1, 1),
    divide=(1, 1),
    refill=(1, 1),
    call=(1, 1),
    return_load=(1, 1),
)
# Published: Cortex-M3 TRM r2p1 (DDI 0337I), table 3-1; a refill takes one to three cycles, a store
# at a constant distance one.
_M3 = ArmCycles(
    source="Cortex-M3 TRM r2p1, table 3-1",
    load=(2, 2),
    next_load=(1, 1),
    store=(1, 2),
    multiple=(1, 1),
    multiply=(1, 1),
    accumulate=(2, 2),
    long_multiply=(3, 5),
    long_accumulate=(4, 7),
    divide=(2, 12),
    refill=(1, 3),
)
# Published: Cortex-M4 TRM r0p1 (100166), table 3-1; products of halfwords take one cycle, too.
_M4 = replace(
    _M3,
    source="Cortex-M4 TRM r0p1, table 3-1",
    accumulate=(1, 1),
    long_multiply=(1, 1),
    long_accumulate=(1, 1),
)


def _riscv(isa: str) -> Host:
    name = f"{isa.upper()} (cycles of a CV32E40P, not of the chip's own core)"
    return replace(CV32E40P, name=name, isa=isa, stack=_STACK)


def _core(
    cpu: str,
    extension: Literal["", "dsp", "mve"],
    emulator: str,
    cycles: ArmCycles | None = None,
) -> ArmCore:
    machines = [
        QemuMachine(
            board.qemu, (board.flash.address, board.flash.size), (board.ram.address, board.ram.size)
        )
        for board in boards().values()
        if board.qemu and board.core == cpu.replace("-", "_")
    ]
    return ArmCore(cpu, extension, emulator, cycles, machines[0] if machines else None)


def _arm(name: str, isa: str, cost: HostCost, arm: ArmCore) -> Host:
    return Host(name=f"Arm {name}", isa=isa, stack=_STACK, cost=cost, arm=arm)


CORES: dict[str, Host] = {
    # The M0 has the M0+'s instructions (both are Armv6-M).
    "cortex_m0plus": _arm(
        "Cortex-M0+", "armv6-m", _SMALL, _core("cortex-m0plus", "", "cortex-m0", _M0PLUS)
    ),
    "cortex_m3": _arm("Cortex-M3", "armv7-m", _SCALAR, _core("cortex-m3", "", "cortex-m3", _M3)),
    "cortex_m4": _arm("Cortex-M4", "armv7e-m", _DSP, _core("cortex-m4", "dsp", "cortex-m4", _M4)),
    "cortex_m7": _arm("Cortex-M7", "armv7e-m", _DSP, _core("cortex-m7", "dsp", "cortex-m7")),
    "cortex_m33": _arm(
        "Cortex-M33", "armv8-m.main", _DSP, _core("cortex-m33", "dsp", "cortex-m33")
    ),
    # The emulator of the others has no such core; QEMU has.
    "cortex_m55": _arm("Cortex-M55", "armv8.1-m.main", _MVE, _core("cortex-m55", "mve", "")),
    "rv32imc": _riscv("rv32imc"),
    "rv32imac": _riscv("rv32imac"),
}
"""Each core by the name of its target."""
