"""Microcontrollers as targets: a core, flash for code and constants, and RAM."""

from __future__ import annotations

from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.boards.cores import CORES

__all__ = ["soc"]

# assumed: a target named after its core has memories larger than any microcontroller's, so that
# every network can be run and counted; boards have their own.
FLASH_BYTES = 64 * 1024 * 1024
RAM_BYTES = 64 * 1024 * 1024

MICROCONTROLLER = Soc(
    name="microcontroller",
    title="microcontroller without accelerators",
    clock_hz=100_000_000,  # assumed; a board's own is in its file
    memories=(
        Memory("flash", 0x0800_0000, FLASH_BYTES, "flash: code, constants"),
        Memory("L2", 0x2000_0000, RAM_BYTES, "RAM: arena, inputs and outputs, stack"),
    ),
    host=CORES["cortex_m4"],
    # In the address range of peripherals; the emulators use none of these.
    sim=SimControl(putchar=0x4000_0000, exit=0x4000_0004, trace=0x4000_0008),
    dma=None,
    accelerators=(),
    targets=tuple(TargetSpec(name, (), host=core) for name, core in CORES.items()),
    driver="none",
    adjustable=("L2",),
    code_memory="flash",
)


def soc() -> Soc:
    """Return the description (entry point ``microcontroller`` of the group ``htvm.socs``)."""
    return MICROCONTROLLER
