"""Microcontrollers as targets: a core, flash for code and constants, and RAM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.board import SUFFIX, Board, board_called, boards
from byoc_dory.soc.cores import (
    CV32E40P,
    ArmCore,
    ArmCycles,
    Host,
    HostCost,
    QemuMachine,
    RiscvVectors,
)
from byoc_dory.soc.parameters import Parameter

# assumed: generous for generated code, which is not recursive (runs measure what is used).
_STACK = 4_096

_NUMBERS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("cores.json").read_text("utf-8")
)


def _cost(name: str) -> HostCost:
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


def _riscv(isa: str, name: str = "") -> Host:
    name = f"{name or isa.upper()} (cycles of a CV32E40P, not of the chip's own core)"
    return replace(CV32E40P, name=name, isa=isa, stack=_STACK)


def _core(
    cpu: str,
    extension: Literal["", "dsp", "mve"],
    emulator: str,
    cycles: ArmCycles | None = None,
    like: str = "",
) -> ArmCore:
    machines = [
        QemuMachine(
            board.qemu, (board.flash.address, board.flash.size), (board.ram.address, board.ram.size)
        )
        for board in boards().values()
        if board.qemu and board.core == (like or cpu).replace("-", "_")
    ]
    machine, known = machines[0] if machines else None, _NUMBERS["compilers"].get(cpu, {})
    return ArmCore(cpu, extension, emulator, cycles, machine, like, known.get("gcc"))


def _arm(name: str, isa: str, cost: HostCost, arm: ArmCore) -> Host:
    return Host(name=f"Arm {name}", isa=isa, stack=_STACK, cost=cost, arm=arm)


def _vectors(name: str, isa: str, emulator: str) -> Host:
    vectors = RiscvVectors(VECTOR_BITS[0], emulator)
    return Host(name=name, isa=isa, stack=_STACK, cost=_cost("rvv"), vectors=vectors)


VECTOR_BITS = (128, 256, 512, 1024)
"""Bits of a vector register that cores with 128 at least (``zvl128b``) and QEMU may have."""


CORES: dict[str, Host] = {
    # The M0 has the M0+'s instructions (both are Armv6-M).
    "cortex_m0plus": _arm(
        "Cortex-M0+",
        "armv6-m",
        _cost("small"),
        _core("cortex-m0plus", "", "cortex-m0", _cycles("m0plus")),
    ),
    "cortex_m3": _arm(
        "Cortex-M3", "armv7-m", _cost("scalar"), _core("cortex-m3", "", "cortex-m3", _cycles("m3"))
    ),
    "cortex_m4": _arm(
        "Cortex-M4", "armv7e-m", _cost("dsp"), _core("cortex-m4", "dsp", "cortex-m4", _cycles("m4"))
    ),
    "cortex_m7": _arm(
        "Cortex-M7", "armv7e-m", _cost("dsp"), _core("cortex-m7", "dsp", "cortex-m7")
    ),
    "cortex_m33": _arm(
        "Cortex-M33", "armv8-m.main", _cost("dsp"), _core("cortex-m33", "dsp", "cortex-m33")
    ),
    # The emulator of the others has no such core; QEMU has.
    "cortex_m55": _arm(
        "Cortex-M55", "armv8.1-m.main", _cost("mve"), _core("cortex-m55", "mve", "")
    ),
    # The same instructions, and those that sign addresses (PACBTI), which nothing here uses.
    "cortex_m85": _arm(
        "Cortex-M85",
        "armv8.1-m.main",
        _cost("mve"),
        _core("cortex-m85", "mve", "", like="cortex-m55"),
    ),
    "cortex_m52": _arm(
        "Cortex-M52",
        "armv8.1-m.main",
        _cost("mve"),
        _core("cortex-m52", "mve", "", like="cortex-m55"),
    ),
    "rv32imc": _riscv("rv32imc"),
    "rv32imac": _riscv("rv32imac"),
    # published: RP2350 data sheet, 3.8.1.  It also has Zbkb and Zcmp, which code here does not use.
    "hazard3": _riscv("rv32imac_zba_zbb_zbs_zcb", "Hazard3"),
    # Integer vectors with elements of up to 32 bits; compilers need to know the 128 bits.
    "rv32imcv": _vectors("RV32IMC with Zve32x", "rv32imc_zve32x_zvl128b", "rv32"),
    # Of V, its integer vectors: QEMU 7.2 dies of conversions of vectors to narrower reals.
    "rv64gcv": _vectors("RV64GC with V", "rv64imafdc_zifencei_zve64x_zvl128b", "rv64"),
}
"""Each core by the name of its target."""


# assumed: a target named after its core has memories larger than any microcontroller's, so that
# every network can be run and counted; boards have their own.
FLASH_BYTES = 64 * 1024 * 1024
RAM_BYTES = 64 * 1024 * 1024

_NONE = "none"


def _design(board: str, vlen: int) -> Soc:
    """Return the microcontroller of a board, with the target of its core only.

    Args:
        board: its name or file.
        vlen: bits of a vector register; 0: those of the board's core, or 128.

    Raises:
        TargetError: the board's vectors have another length, or its file does not say which, or
            says it of a core without vectors.
    """
    if board == _NONE:
        return MICROCONTROLLER if vlen == 0 else _with_vectors(vlen)
    found = board_called(board)
    if vlen not in (0, found.vector_bits):
        has = f"its core's have {found.vector_bits}" if found.vector_bits else "its core has none"
        raise TargetError(
            f"no vectors of {vlen} bits on the board {found.name}: {has}",
            hint="leave vlen out",
        )
    host = _board_host(found)
    flash, ram = MICROCONTROLLER.memories
    return replace(
        MICROCONTROLLER,
        title=f"{found.title} ({found.chip})",
        clock_hz=found.clock_hz,
        memories=(
            replace(flash, base=found.flash.address, size=found.flash.size),
            replace(ram, base=found.ram.address, size=found.ram.size),
        ),
        host=host,
        targets=(TargetSpec(found.core, (), host=host),),
        adjustable=(),
    )


def _with_vectors(bits: int) -> Soc:
    """Return the microcontroller with the targets that have vectors, of this length."""
    hosts = {
        name: replace(core, vectors=replace(core.vectors, bits=bits))
        for name, core in CORES.items()
        if core.vectors is not None
    }
    return replace(
        MICROCONTROLLER,
        targets=tuple(TargetSpec(name, (), host=host) for name, host in hosts.items()),
    )


def _board_host(board: Board) -> Host:
    """Return a board's core, with vectors of its length."""
    host = CORES[board.core]
    if host.vectors is None and board.vector_bits == 0:
        return host
    if host.vectors is None or board.vector_bits not in VECTOR_BITS:
        known = ", ".join(map(str, VECTOR_BITS))
        raise TargetError(
            f"{board.core} has no vectors of {board.vector_bits} bits",
            where=f"board {board.name!r}",
            hint=f"of a core with vectors, vector_bits is one of {known}; of others, leave it out",
        )
    return replace(host, vectors=replace(host.vectors, bits=board.vector_bits))


MICROCONTROLLER = Soc(
    name="microcontroller",
    title="microcontroller without accelerators",
    clock_hz=100_000_000,  # assumed; a board's own is in its file
    memories=(
        Memory("flash", 0x0800_0000, FLASH_BYTES, "flash: code, constants"),
        Memory("L2", 0x2000_0000, RAM_BYTES, "RAM: arena, inputs and outputs, stack"),
    ),
    host=CORES["cortex_m4"],
    # assumed: above all memories; only the simulator of RISC-V cores uses them.
    sim=SimControl(putchar=0xF000_0000, exit=0xF000_0004, trace=0xF000_0008),
    dma=None,
    accelerators=(),
    targets=tuple(TargetSpec(name, (), host=core) for name, core in CORES.items()),
    driver="none",
    adjustable=("L2",),
    code_memory="flash",
    parameters=(
        Parameter(
            "board",
            _NONE,
            "flash, RAM and clock of a board, by name or file; none: 64 MiB each",
            choices=(_NONE, *boards()),
            files=SUFFIX,
        ),
        Parameter(
            "vlen",
            0,
            "bits of a vector register; 0: those of the board's core, or 128",
            choices=(0, *VECTOR_BITS),
        ),
    ),
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``microcontroller`` of the group ``htvm.socs``)."""
    return MICROCONTROLLER
