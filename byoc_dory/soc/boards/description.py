"""Microcontrollers as targets: a core, flash for code and constants, and RAM."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.board import SUFFIX, board_called, boards
from byoc_dory.soc.boards.cores import CORES
from byoc_dory.soc.parameters import Parameter

# assumed: a target named after its core has memories larger than any microcontroller's, so that
# every network can be run and counted; boards have their own.
FLASH_BYTES = 64 * 1024 * 1024
RAM_BYTES = 64 * 1024 * 1024

_NONE = "none"


def _design(board: str) -> Soc:
    """Return the microcontroller of a board, with the target of its core only."""
    if board == _NONE:
        return MICROCONTROLLER
    found = board_called(board)
    flash, ram = MICROCONTROLLER.memories
    return replace(
        MICROCONTROLLER,
        title=f"{found.title} ({found.chip})",
        clock_hz=found.clock_hz,
        memories=(
            replace(flash, base=found.flash.address, size=found.flash.size),
            replace(ram, base=found.ram.address, size=found.ram.size),
        ),
        host=CORES[found.core],
        targets=(TargetSpec(found.core, (), host=CORES[found.core]),),
        adjustable=(),
    )


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
    ),
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``microcontroller`` of the group ``htvm.socs``)."""
    return MICROCONTROLLER
