"""The machine that the instruction-set simulator simulates, and the linker script for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from htvm.firmware.paths import runtime_c


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
        worker_stack: bytes reserved below for the stack of each hart except the first.
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

    def stacks(self, first: int) -> int:
        """Return the bytes of all harts' stacks, given those of the first."""
        return first + (self.harts - 1) * self.worker_stack


BARE = Machine(
    name="bare",
    ram=((0x8000_0000, 4 << 20),),
    putchar=0x1000_0000,
    exit=0x0010_0000,
    trace=0x2000_0FF0,
)
"""A core with 4 MiB of RAM and no devices, for self-contained programs."""

DEFAULT_STACK = 16 * 1024
"""Default size of the stack, in bytes."""

_L1_SECTION = """\
    .l1 (NOLOAD) :
    {
        __l1_start = .;
        *(.l1 .l1.*)
        . = ALIGN(16);
        __l1_end = .;
    } > L1

"""

_HARTS = """\
    __last_hart = {last};
    __worker_stack = {worker_stack};
"""

_CONSTANT_SECTION = """\
    .{name} :
    {{
        *(.{name} .{name}.*)
    }} > {name}

"""


def linker_script(
    machine: Machine, stack_bytes: int = DEFAULT_STACK, size: int | None = None
) -> str:
    """Return the linker script for a machine's first RAM.

    Args:
        machine: the machine that will run the firmware.
        stack_bytes: bytes reserved at the end of the RAM; linking fails if they do not fit.
        size: bytes of the RAM, if other than the machine's, to learn how much a firmware would
            need.
    """
    base, there = machine.ram[0]
    size = there if size is None else size
    template = runtime_c() / "platform" / "rv32" / "link.ld.in"
    text = template.read_text(encoding="utf-8")
    values = {"@BASE@": f"{base:#010x}", "@SIZE@": str(size), "@STACK@": str(stack_bytes)}
    if machine.l1 is None:
        workers = machine.stacks(0)
        values["@STACK_TOP@"] = "(ORIGIN(L2) + LENGTH(L2)) & ~15"
        values["@DATA_LIMIT@"] = f"__stack_low - {workers}" if workers else "__stack_low"
        values["@L1_MEMORY@\n"] = ""
    else:
        start, room = machine.l1
        variables = room - machine.stacks(stack_bytes)
        values["@STACK_TOP@"] = f"{start + room:#010x}"
        values["@DATA_LIMIT@"] = "ORIGIN(L2) + LENGTH(L2)"
        values["@L1_MEMORY@"] = f"    L1 (rw) : ORIGIN = {start:#010x}, LENGTH = {variables}"
    section = "" if machine.l1 is None else _L1_SECTION
    if machine.harts > 1:
        section += _HARTS.format(last=machine.harts - 1, worker_stack=machine.worker_stack)
    values["@L1_SECTION@\n"] = section
    regions = [
        f"    {name} (r) : ORIGIN = {start:#010x}, LENGTH = {size}\n"
        for name, start, size in machine.constants
    ]
    sections = [_CONSTANT_SECTION.format(name=name) for name, _, _ in machine.constants]
    values["@CONSTANT_MEMORIES@\n"] = "".join(regions)
    values["@CONSTANT_SECTIONS@\n"] = "".join(sections)
    for name, value in values.items():
        text = text.replace(name, value)
    return text
