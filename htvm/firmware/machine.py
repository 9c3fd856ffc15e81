"""What the instruction-set simulator simulates: memories, simulator registers, devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BARE", "Machine", "SocModel"]


@dataclass(frozen=True)
class SocModel:
    """The devices of a SoC as C sources that implement ``htvm_soc_model.h``.

    Attributes:
        sources: C files.
        includes: include folders they need beside the runtime's own.
        headers: generated headers, as (file name, text).
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Machine:
    """One simulated machine: its harts, its RAMs and what else they can reach.

    Attributes:
        name: for messages and file names.
        ram: (first address, bytes) of each RAM; a firmware goes into the first.
        putchar: a byte stored here is printed.
        exit: a word stored here ends the run: 0x5555 is success, ``code << 16 | 0x3333`` failure
            with that code, anything else the code itself.
        trace: a word stored here is recorded with its cycle as a mark; None if there is none.
        soc_model: the devices; None if there are none.
        isa: instruction set of its harts: "rv32" and letters.
        harts: how many; all start at the program's entry.
        l1: (first address, bytes) of the runtime's own part of a memory nearby, which has a
            section ``.l1`` and, at its end, the stacks; None: the stack is at the end of the first
            RAM.
        worker_stack: bytes there for the stack of each hart but the first.
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


BARE = Machine(
    name="bare",
    ram=((0x8000_0000, 4 << 20),),
    putchar=0x1000_0000,
    exit=0x0010_0000,
    trace=0x2000_0FF0,
)
"""A core with 4 MiB of RAM and no devices, for programs that bring everything themselves."""
