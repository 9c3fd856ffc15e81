"""Linker scripts that place code, constants, data and stack in a machine's first RAM."""

from __future__ import annotations

from htvm.firmware.machine import Machine
from htvm.firmware.paths import runtime_c

DEFAULT_STACK = 16 * 1024
"""Default size of the stack, in bytes."""

_L1_SECTION = """\
    .l1 (NOLOAD) :
    {{
        __l1_start = .;
        *(.l1 .l1.*)
        . = ALIGN(16);
        __l1_end = .;
    }} > L1

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
        values["@STACK_TOP@"] = "(ORIGIN(L2) + LENGTH(L2)) & ~15"
        values["@DATA_LIMIT@"] = "__stack_low"
        values |= {"@L1_MEMORY@\n": "", "@L1_SECTION@\n": ""}
    else:
        start, room = machine.l1
        last = machine.harts - 1
        variables = room - stack_bytes - last * machine.worker_stack
        values["@STACK_TOP@"] = f"{start + room:#010x}"
        values["@DATA_LIMIT@"] = "ORIGIN(L2) + LENGTH(L2)"
        values["@L1_MEMORY@"] = f"    L1 (rw) : ORIGIN = {start:#010x}, LENGTH = {variables}"
        values["@L1_SECTION@\n"] = _L1_SECTION.format(last=last, worker_stack=machine.worker_stack)
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
