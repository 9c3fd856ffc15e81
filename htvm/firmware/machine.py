"""The machine that the instruction-set simulator simulates: memories, registers, devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SocModel:
    """The devices of a SoC as C sources that implement ``htvm_soc_model.h``.

    Attributes:
        sources: C files.
        includes: include folders they need besides the runtime's own.
        headers: generated headers as (file name, text).
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Machine:
    """A simulated machine: its harts, its RAMs, and other memory and devices they can access.

    Attributes:
        name: name for messages and file names.
        ram: (first address, bytes) of each RAM; a firmware goes into the first.
        putchar: address; a byte stored there is printed.
        exit: address; a word stored there ends the run: 0x5555 is success, ``code << 16 | 0x3333``
            failure with that code, any other value is the code itself.
        trace: address; a word stored there is recorded with its cycle as a mark; None without
            marks.
        soc_model: the devices; None without devices.
        isa: instruction set that its firmware is compiled for (`compiled_isa`).
        harts: number of harts; all start at the program's entry.
        l1: (first address, bytes) of the runtime's part of a nearby memory, which has a section
            ``.l1`` and, at its end, the stacks; None: the stack is at the end of the first RAM.
        worker_stack: bytes reserved there for the stack of each hart except the first.
        constants: (name, first address, bytes) of each RAM besides the first that constants can be
            placed in; their section has the RAM's name.
    """

    name: str
    ram: tuple[tuple[int, int], ...]
    putchar: int
    exit: int
    trace: int | None = None
    soc_model: SocModel | None = None
    isa: str = "rv32imc"
    harts: int = 1
    l1: tuple[int, int] | None = None
    worker_stack: int = 0
    constants: tuple[tuple[str, int, int], ...] = ()


BARE = Machine(
    name="bare",
    ram=((0x8000_0000, 4 << 20),),
    putchar=0x1000_0000,
    exit=0x0010_0000,
    trace=0x2000_0FF0,
)
"""A core with 4 MiB of RAM and no devices, for self-contained programs."""
