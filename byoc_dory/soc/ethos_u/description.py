"""Ethos-U55 and U65 beside a Cortex-M55, in numbers.

Public code (Vela 5.2.0, ``architecture_features.py`` and ``config_files/Arm/vela.ini``):
configurations of the accelerators, their own memory, and the memories that estimates assume
("Ethos_U55_High_End_Embedded" and "Ethos_U65_Embedded").  Assumed where nothing else is said.
"""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.errors import TargetError
from byoc_dory.soc.arm_cores import ARM_CORES
from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.board import SUFFIX, Board, board_called, boards
from byoc_dory.soc.cores import Host
from byoc_dory.soc.ethos_u.npu import EthosU
from byoc_dory.soc.ethos_u.vela import Memories
from byoc_dory.soc.parameters import Parameter

SHRAM = {32: 16 << 10, 64: 16 << 10, 128: 24 << 10, 256: 48 << 10}
"""Bytes of the accelerator's own memory by multiply-accumulates per cycle (Vela)."""

U65_MACS = 256

CLOCK_MHZ = 500
"""The accelerator's clock in both of Vela's configurations."""

_SRAM = {"EthosU55": (1.0, 32, 32, 32, 4, 4), "EthosU65": (1.0, 32, 32, 32, 8, 8)}
_FLASH_HZ = {"EthosU55": 62_500_000, "EthosU65": 31_250_000}
_FLASH = (128, 64, 0, 2, 0)
# Of "Ethos_U65_Mid_End", also beside a U55, for which Vela has no configuration with DRAM.
_DRAM_HZ = 234_375_000
_DRAM = (128, 500, 250, 12, 6)

# The address of Corstone-300's register block, as Arm's application note AN547 and QEMU have it.
REGISTERS = 0x4810_2000

FLASH_BASE, FLASH_BYTES = 0x0000_0000, 64 << 20  # assumed: room for every network
RAM_BASE = 0x2000_0000
RAM_BYTES = 4 << 20  # assumed: room for every network of MLPerf Tiny, and for larger ones

NONE = "none"

PARAMETERS = (
    Parameter(
        "board",
        NONE,
        "core, NPU, memories and clocks of a board, by name or file; none: as the others say",
        choices=(NONE, *(name for name, board in boards().items() if board.npu)),
        files=SUFFIX,
    ),
    Parameter(
        "macs",
        0,
        "multiply-accumulates per cycle; 0: the board's, or 256",
        choices=(0, *SHRAM),
    ),
    Parameter(
        "clock",
        0,
        "the NPU's clock; 0: the board's, or 500 MHz",
        unit="MHz",
        low=0,
        high=1000,
    ),
    Parameter(
        "sram",
        0,
        "RAM: arena, stack; 0: the board's, or 4 MiB",
        unit="B",
        low=0,
        high=64 << 20,
        step=16,
        sets="L2.size",
    ),
    Parameter(
        "fast",
        0,
        "SRAM that only the NPU uses, beside RAM and weights in DRAM; 0: RAM is SRAM, shared",
        unit="B",
        low=0,
        high=4 << 20,
        step=16,
    ),
)


def _memories(architecture: str, clock_hz: int, fast: int) -> Memories:
    """Return the memories of Vela's configuration beside an accelerator with another clock.

    Assumed: SRAM has the accelerator's clock, and the other memory stays as fast as it is.
    """
    other_hz, numbers = (_DRAM_HZ, _DRAM) if fast else (_FLASH_HZ[architecture], _FLASH)
    other = (min(1.0, other_hz / clock_hz), *numbers)
    return Memories(clock_hz, _SRAM[architecture], other, fast)


def _accelerator(architecture: str, macs: int, clock_hz: int, fast: int = 0) -> EthosU:
    name = f"ethos_{architecture.removeprefix('Ethos').lower()}"
    return EthosU(
        name=name,
        title=f"Ethos-{architecture.removeprefix('Ethos')} with {macs} MACs per cycle",
        registers=REGISTERS,
        l1="L2",
        family="ethos_u",
        architecture=architecture,
        macs=macs,
        shram=SHRAM[macs],
        memories=_memories(architecture, clock_hz, fast),
        element_cycles=1,  # assumed: only for comparing cores before Vela is asked
    )


def design(*, board: str, macs: int, clock: int, sram: int, fast: int) -> Soc:
    """Return the SoC with these parameters (`PARAMETERS`).

    The U65 has 256 multiply-accumulates per cycle; with another number there is only a U55.

    Raises:
        TargetError: the board has no Ethos-U, or other numbers than those given.
    """
    if board != NONE:
        return _of_board(board_called(board), macs, clock, sram, fast)
    macs, clock_hz = macs or U65_MACS, (clock or CLOCK_MHZ) * 1_000_000
    kinds = ("EthosU55", "EthosU65") if macs == U65_MACS else ("EthosU55",)
    accelerators = tuple(_accelerator(kind, macs, clock_hz, fast) for kind in kinds)
    soc = _soc(ARM_CORES["cortex_m55"], clock_hz, accelerators)
    return soc.resized("L2", sram) if sram else soc


def _of_board(board: Board, macs: int, clock: int, sram: int, fast: int) -> Soc:
    """Return the SoC of a board, at its NPU's clock or a lower one."""
    where, known = f"board {board.name!r}", {"ethos_u55": "EthosU55", "ethos_u65": "EthosU65"}
    if board.npu not in known:
        raise TargetError(f"it has no Ethos-U: {board.npu or 'no NPU'}", where=where)
    if board.core not in ARM_CORES or board.npu_macs not in SHRAM:
        raise TargetError(
            f"no Ethos-U with {board.npu_macs} MACs per cycle beside a {board.core}",
            where=where,
            hint=f"MACs are one of {', '.join(map(str, SHRAM))}, the core {', '.join(ARM_CORES)}",
        )
    there_is = {"macs": board.npu_macs, "sram": board.ram.size, "fast": 0}
    for (name, there), given in zip(there_is.items(), (macs, sram, fast), strict=True):
        if given not in (0, there):
            raise TargetError(
                f"{name} is {there} on the board, not {given}",
                where=where,
                hint=f"leave {name} out",
            )
    clock_hz = clock * 1_000_000 or board.npu_clock_hz
    if clock_hz > board.npu_clock_hz:
        raise TargetError(
            f"its NPU has {board.npu_clock_hz / 1e6:g} MHz at most, not {clock}",
            where=where,
            hint="leave clock out, or give a lower one",
        )
    accelerator = _accelerator(known[board.npu], board.npu_macs, clock_hz)
    soc = _soc(ARM_CORES[board.core], clock_hz, (accelerator,))
    flash, ram = soc.memories
    return replace(
        soc,
        title=f"{board.title} ({board.chip})",
        memories=(
            replace(flash, base=board.flash.address, size=board.flash.size),
            replace(ram, base=board.ram.address, size=board.ram.size),
        ),
        adjustable=(),
    )


def _soc(host: Host, clock_hz: int, accelerators: tuple[EthosU, ...]) -> Soc:
    return Soc(
        name="ethos_u",
        title=f"{host.name} with an Ethos-U55 or U65",
        clock_hz=clock_hz,
        memories=(
            Memory("flash", FLASH_BASE, FLASH_BYTES, "flash: code, weights"),
            Memory("L2", RAM_BASE, RAM_BYTES, "SRAM: arena, inputs and outputs, stack"),
        ),
        host=host,
        # assumed: above all memories; only the simulator of RISC-V cores uses them.
        sim=SimControl(putchar=0xF000_0000, exit=0xF000_0004, trace=0xF000_0008),
        dma=None,
        accelerators=accelerators,
        targets=(
            TargetSpec("ethos_u", (accelerators[0].name,)),
            *(TargetSpec(entry.name, (entry.name,)) for entry in accelerators),
            TargetSpec("ethos_u.cpu", ()),
        ),
        driver="ethos_u",
        adjustable=("L2",),
        code_memory="flash",
        parameters=PARAMETERS,
        design=design,
    )


def soc() -> Soc:
    """Return the description (entry point ``ethos_u`` of the group ``htvm.socs``)."""
    return design(**{parameter.name: parameter.default for parameter in PARAMETERS})  # type: ignore[arg-type]
