"""Reading sections and symbols of a linked program (ELF)."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from pathlib import Path

from byoc_dory.errors import SimulationError

# Read as a whole: for a debug build, creating one object for each of thousands of labels takes a
# third of a second.
_SYMBOLS = {32: struct.Struct("<IIIBBH"), 64: struct.Struct("<IBBHQQ")}

# Errors that pyelftools raises, besides its own, if a header points outside the file.
_CORRUPT = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError,
    TypeError, ValueError, struct.error,
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A section that occupies memory at run time.

    Attributes:
        name: for example ``".text"``.
        address: address of the first byte, as the core sees it.
        size: size in bytes.
    """

    name: str
    address: int
    size: int


@dataclass(frozen=True)
class Symbol:
    """A symbol: ``address``, and ``size`` in bytes (0 if the linker script defined it)."""

    name: str
    address: int
    size: int


@dataclass(frozen=True)
class Segment:
    """Bytes that a program is loaded with, from ``address`` on."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Elf:
    """An executable: its sections and symbols."""

    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]


def read_elf(path: Path) -> Elf:
    """Read sections and symbols of a little-endian ELF file.

    Raises:
        SimulationError: the file cannot be read, has another format, or is corrupt.
    """
    from elftools.common.exceptions import ELFError

    try:
        data = path.read_bytes()
    except OSError as error:
        raise SimulationError(
            f"cannot read the program: {error.strerror}", where=str(path)
        ) from error
    if data[:4] != b"\x7fELF" or data[4:5] not in (b"\x01", b"\x02") or data[5:6] != b"\x01":
        raise SimulationError("not a little-endian ELF file", where=str(path))
    try:
        return _parse(data)
    except (ELFError, *_CORRUPT) as error:
        raise SimulationError("the ELF file is corrupt or truncated", where=str(path)) from error


def _parse(data: bytes) -> Elf:
    from elftools.elf.constants import SH_FLAGS
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(data))
    sections = tuple(
        Section(section.name, section["sh_addr"], section["sh_size"])
        for section in elf.iter_sections()
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC
    )
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return Elf(sections, {})
    strings = elf.get_section(table["sh_link"])
    # Of 32 bits, a symbol's address and size stand behind its name, of 64 at its end.
    at = 0 if elf.elfclass == 32 else 3
    entries = _SYMBOLS[elf.elfclass].iter_unpack(table.data())
    found = {name: place[at : at + 2] for name, *place in entries}
    symbols = {strings.get_string(name): place for name, place in found.items() if name}
    return Elf(
        sections,
        {name: Symbol(name, address, size) for name, (address, size) in symbols.items()},
    )


def read_segments(path: Path) -> tuple[Segment, ...]:
    """Return what a program is loaded with, at the addresses where it is stored (not used).

    Raises:
        SimulationError: the file cannot be read, has another format, or is corrupt.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(path.read_bytes()))
        return tuple(
            Segment(segment["p_paddr"], segment.data())
            for segment in elf.iter_segments("PT_LOAD")
            if segment["p_filesz"]
        )
    except (OSError, ELFError, *_CORRUPT) as error:
        raise SimulationError("not a program that can be loaded", where=str(path)) from error
