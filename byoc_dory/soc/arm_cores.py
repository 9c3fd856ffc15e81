"""Arm's Cortex-M cores: hosts of microcontrollers, and of accelerators beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from byoc_dory.soc.board import boards
from byoc_dory.soc.cores import ArmCore, ArmCycles, Host, HostCost, QemuMachine

# assumed: generous for generated code, which is not recursive (runs measure what is used).
STACK = 4_096

_NUMBERS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).with_name("boards") / "cores.json").read_text("utf-8")
)


def cost_of(name: str) -> HostCost:
    """Return estimates for verdicts only, in instructions: derived on ResNet-8 in the emulator."""
    return HostCost(**_NUMBERS["costs"][name])


def _cycles(name: str) -> ArmCycles:
    """Return cycles as published by the core's manual, whose table they name.

    The M0+ is that with the multiplier of one cycle, as the STM32G0 has it.  On the M3, a refill
    takes one to three cycles, a store at a constant distance one; on the M4, products of halfwords
    take one cycle, too.
    """
    given = dict(_NUMBERS["cycles"][name])
    return ArmCycles(given.pop("source"), **{key: tuple(each) for key, each in given.items()})


def _core(
    cpu: str,
    extension: Literal["", "dsp", "mve"],
    emulator: str,
    cycles: ArmCycles | None = None,
    like: str = "",
    *,
    dual: bool = False,
) -> ArmCore:
    machines = [
        QemuMachine(
            board.qemu, (board.flash.address, board.flash.size), (board.ram.address, board.ram.size)
        )
        for board in boards().values()
        if board.qemu and board.core == (like or cpu).replace("-", "_")
    ]
    machine, known = machines[0] if machines else None, _NUMBERS["compilers"].get(cpu, {})
    return ArmCore(cpu, extension, emulator, cycles, machine, like, known.get("gcc"), dual)


def _arm(name: str, isa: str, cost: HostCost, arm: ArmCore) -> Host:
    return Host(name=f"Arm {name}", isa=isa, stack=STACK, cost=cost, arm=arm)


ARM_CORES: dict[str, Host] = {
    # The M0 has the M0+'s instructions (both are Armv6-M).
    "cortex_m0plus": _arm(
        "Cortex-M0+",
        "armv6-m",
        cost_of("small"),
        _core("cortex-m0plus", "", "cortex-m0", _cycles("m0plus")),
    ),
    "cortex_m3": _arm(
        "Cortex-M3",
        "armv7-m",
        cost_of("scalar"),
        _core("cortex-m3", "", "cortex-m3", _cycles("m3")),
    ),
    "cortex_m4": _arm(
        "Cortex-M4",
        "armv7e-m",
        cost_of("dsp"),
        _core("cortex-m4", "dsp", "cortex-m4", _cycles("m4")),
    ),
    "cortex_m7": _arm(
        "Cortex-M7",
        "armv7e-m",
        cost_of("dsp"),
        _core("cortex-m7", "dsp", "cortex-m7", dual=True),
    ),
    "cortex_m33": _arm(
        "Cortex-M33", "armv8-m.main", cost_of("dsp"), _core("cortex-m33", "dsp", "cortex-m33")
    ),
    # The emulator of the others has no such core; QEMU has.
    "cortex_m55": _arm(
        "Cortex-M55", "armv8.1-m.main", cost_of("mve"), _core("cortex-m55", "mve", "")
    ),
    # The same instructions, and those that sign addresses (PACBTI), which nothing here uses.
    "cortex_m85": _arm(
        "Cortex-M85",
        "armv8.1-m.main",
        cost_of("mve"),
        _core("cortex-m85", "mve", "", like="cortex-m55"),
    ),
    "cortex_m52": _arm(
        "Cortex-M52",
        "armv8.1-m.main",
        cost_of("mve"),
        _core("cortex-m52", "mve", "", like="cortex-m55"),
    ),
}
"""Each core by the name of its target."""
