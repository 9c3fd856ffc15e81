"""Microcontrollers as targets: a core, flash for code and constants, and RAM."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.errors import TargetError
from byoc_dory.soc.arm_cores import ARM_CORES, STACK, cost_of
from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.board import SUFFIX, Board, board_called, boards
from byoc_dory.soc.cores import CV32E40P, Cluster, Host, RiscvVectors, XtensaCore
from byoc_dory.soc.parameters import Parameter


def _riscv(isa: str, name: str = "") -> Host:
    name = f"{name or isa.upper()} (cycles of a CV32E40P, not of the chip's own core)"
    return replace(CV32E40P, name=name, isa=isa, stack=STACK)


def _vectors(name: str, isa: str, emulator: str) -> Host:
    vectors = RiscvVectors(VECTOR_BITS[0], emulator)
    return Host(name=name, isa=isa, stack=STACK, cost=cost_of("rvv"), vectors=vectors)


def _xtensa(version: str) -> Host:
    # The LX106 has neither their loops nor register windows, so their own GCC needs fewer
    # instructions; assumed: rough cycles as those of the RISC-V core.
    core = XtensaCore("xtensa-lx106-elf-gcc", "lx106", flash=0x0800_0000, ram=0x2000_0000)
    return replace(
        CV32E40P,
        name=f"Xtensa {version}",
        isa="xtensa",
        stack=STACK,
        xtensa=core,
    )


VECTOR_BITS = (128, 256, 512, 1024)
"""Bits of a vector register that cores with 128 at least (``zvl128b``) and QEMU may have."""


CORES: dict[str, Host] = {
    **ARM_CORES,
    "rv32imc": _riscv("rv32imc"),
    "rv32imac": _riscv("rv32imac"),
    # published: RP2350 data sheet, 3.8.1.  It also has Zbkb and Zcmp, which code here does not use.
    "hazard3": _riscv("rv32imac_zba_zbb_zbs_zcb", "Hazard3"),
    # Integer vectors with elements of up to 32 bits; compilers need to know the 128 bits.
    "rv32imcv": _vectors("RV32IMC with Zve32x", "rv32imc_zve32x_zvl128b", "rv32"),
    # Of V, its integer vectors: QEMU 7.2 dies of conversions of vectors to narrower reals.
    "rv64gcv": _vectors("RV64GC with V", "rv64imafdc_zifencei_zve64x_zvl128b", "rv64"),
    # Those of the ESP32, and of the ESP32-S2 and S3.
    "xtensa_lx6": _xtensa("LX6"),
    "xtensa_lx7": _xtensa("LX7"),
}
"""Each core by the name of its target."""


# assumed: a target named after its core has memories larger than any microcontroller's, so that
# every network can be run and counted; boards have their own.
FLASH_BYTES = 64 * 1024 * 1024
RAM_BYTES = 64 * 1024 * 1024

_NONE = "none"


# A second core as that of the RP2350.  Where a program runs at both, kernels share its loops.
TWO_CORES = Cluster(
    harts=2,
    cores=2,
    registers=0xF000_1000,  # assumed: of the simulator; chips wake each other in other ways
    worker_stack=2048,  # published: PICO_CORE1_STACK_SIZE of the pico-sdk
    banks=4,  # published: RP2350 data sheet, striped SRAM; assumed: flash, which has a cache
    bank_bytes=4,
    # assumed: as long as a store and a load of the RP2350's FIFO between cores.
    release=4,
    wake=4,
    memory="L2",
)


_IN_TWOS = (
    "cortex_m0plus", "cortex_m33", "rv32imc", "rv32imac", "hazard3", "xtensa_lx6", "xtensa_lx7",
)  # fmt: skip
"""Cores that a chip has two of, as the RP2040 and the ESP32, or that the simulator executes."""


def _design(board: str, vlen: int, cores: int) -> Soc:
    """Return the microcontroller of a board, with the target of its core only.

    Args:
        board: its name or file.
        vlen: bits of a vector register; 0: those of the board's core, or 128.
        cores: number of cores that share the kernels.

    Raises:
        TargetError: the board's vectors have another length, or its file does not say which, or
            says it of a core without vectors; it has fewer cores, or its core is
            never one of several.
    """
    if vlen and cores > 1:
        raise TargetError(
            f"no {cores} cores with vectors: QEMU's programs run on one",
            hint="leave cores out, or choose rv32imc, rv32imac or hazard3 without vlen",
        )
    if board == _NONE:
        with_vectors = MICROCONTROLLER if vlen == 0 else _with_vectors(vlen)
        return with_vectors if cores == 1 else _with_two_cores(MICROCONTROLLER)
    found = board_called(board)
    if cores > max(found.cores, 1):
        known = ", ".join(one.name for one in boards().values() if one.cores >= cores)
        raise TargetError(
            f"no {cores} cores on the board {found.name}, as far as its file says",
            hint=f"leave cores out; boards with so many: {known}",
        )
    if vlen not in (0, found.vector_bits):
        has = f"its core's have {found.vector_bits}" if found.vector_bits else "its core has none"
        raise TargetError(
            f"no vectors of {vlen} bits on the board {found.name}: {has}",
            hint="leave vlen out",
        )
    host = _board_host(found)
    flash, ram = MICROCONTROLLER.memories
    soc = replace(
        MICROCONTROLLER,
        title=f"{found.title} ({found.chip})",
        clock_hz=found.clock_hz,
        memories=(
            replace(
                flash,
                base=found.flash.address,
                size=found.flash.size,
                reads=found.flash_reads,
            ),
            replace(ram, base=found.ram.address, size=found.ram.size),
        ),
        host=host,
        targets=(TargetSpec(found.core, (), host=host),),
        adjustable=(),
    )
    return soc if cores == 1 else _with_two_cores(soc)


def _with_two_cores(soc: Soc) -> Soc:
    """Return a microcontroller with the targets that can be executed on two cores.

    Raises:
        TargetError: there is none.
    """
    specs = tuple(spec for spec in soc.targets if spec.name in _IN_TWOS)
    if not specs:
        raise TargetError(
            f"no 2 cores of {soc.targets[0].name}: no chip is known that has two",
            where=soc.title,
            hint=f"leave cores out; {', '.join(_IN_TWOS)} may be two",
        )
    return replace(soc, targets=specs, cluster=TWO_CORES, libraries=("multicore",))


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
        Parameter("cores", 1, "cores that share the kernels", choices=(1, TWO_CORES.cores)),
    ),
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``microcontroller`` of the group ``htvm.socs``)."""
    return MICROCONTROLLER
