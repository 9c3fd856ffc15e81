"""Helper: bare-metal programs: assembled from text, or made without any compiler."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from htvm.firmware.isa import rv32_flags
from htvm.firmware.machine import BARE, Machine, SocModel
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

RAM = 0x8000_0000

COREV_HEADERS = (("htvm_soc.h", "#define HTVM_CORE_COREV 1\n"),)


def bare_corev() -> Machine:
    """Return the bare machine with a core that has the CORE-V extensions."""
    return replace(
        BARE,
        name="bare-corev",
        soc_model=SocModel(
            sources=(runtime_c() / "soc" / "none" / "none_model.c",),
            headers=COREV_HEADERS,
        ),
    )


SCRIPT = """ENTRY(_start)
SECTIONS {
    . = 0x80000000;
    .text : { *(.text .text.*) }
    .data : ALIGN(16) { *(.data .data.*) }
    .bss : ALIGN(16) { *(.bss .bss.*) }
}
"""


def assemble(text: str, folder: Path, compiler: Compiler) -> Path:
    """Assemble and link a program for the bare machine."""
    source, script, elf = folder / "program.S", folder / "program.ld", folder / "program.elf"
    source.write_text(text)
    script.write_text(SCRIPT)
    return compiler.compile_cross([source], elf, [], rv32_flags(), script)


def make_elf(segments: list[tuple[int, bytes]], entry: int = RAM, memory_bytes: int = 0) -> bytes:
    """Return an executable of these (address, contents) segments.

    Args:
        memory_bytes: size in memory of the last segment, if it is more than its contents.
    """
    headers_end = 52 + 32 * len(segments)
    table, contents, offset = b"", b"", headers_end
    for index, (address, data) in enumerate(segments):
        in_memory = max(len(data), memory_bytes if index == len(segments) - 1 else 0)
        table += struct.pack("<8I", 1, offset, address, address, len(data), in_memory, 7, 4)
        contents += data
        offset += len(data)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    counts = (52, 32, len(segments), 40, 0, 0)
    header = struct.pack("<16sHHIIIIIHHHHHH", ident, 2, 243, 1, entry, 52, 0, 0, *counts)
    return header + table + contents


def words(*instructions: int) -> bytes:
    """Return 32-bit instructions as bytes."""
    return struct.pack(f"<{len(instructions)}I", *instructions)
