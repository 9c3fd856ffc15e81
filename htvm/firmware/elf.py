"""Reading what a linked program tells about itself: sections and symbols of an ELF file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from byoc_dory.errors import SimulationError

__all__ = ["Elf", "Section", "Symbol", "read_elf"]

_SHT_SYMTAB = 2
_SHT_NOBITS = 8
_SHF_ALLOC = 2
_FILE_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION_HEADER = struct.Struct("<10I")
_SYMBOL = struct.Struct("<IIIBBH")


@dataclass(frozen=True)
class Section:
    """A section that occupies memory at run time.

    Attributes:
        name: for example ``".text"``.
        address: first byte, as the core sees it.
        size: bytes.
        in_file: whether its contents are in the file (false for zero-initialised data).
    """

    name: str
    address: int
    size: int
    in_file: bool


@dataclass(frozen=True)
class Symbol:
    """A named place: ``address``, ``size`` in bytes (0 if the linker script made it)."""

    name: str
    address: int
    size: int


@dataclass(frozen=True)
class Elf:
    """An executable: where it starts, what it occupies, what it names."""

    path: Path
    entry: int
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]

    def symbol(self, name: str) -> Symbol:
        """Return a symbol.

        Raises:
            SimulationError: the program has none of this name.
        """
        if name not in self.symbols:
            raise SimulationError(
                f"the program has no symbol {name!r}",
                where=str(self.path),
                hint="unused functions and data are dropped when linking",
            )
        return self.symbols[name]


def read_elf(path: Path) -> Elf:
    """Read sections and symbols of a 32-bit little-endian ELF file.

    Raises:
        SimulationError: the file cannot be read, is something else, or is corrupt.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SimulationError(
            f"cannot read the program: {error.strerror}", where=str(path)
        ) from error
    if len(data) < _FILE_HEADER.size or data[:6] != b"\x7fELF\x01\x01":
        raise SimulationError("not a 32-bit little-endian ELF file", where=str(path))
    try:
        return _parse(path, data)
    except (struct.error, IndexError, ValueError) as error:
        raise SimulationError("the ELF file is corrupt or truncated", where=str(path)) from error


def _parse(path: Path, data: bytes) -> Elf:
    header = _FILE_HEADER.unpack_from(data)
    entry, table, header_size, count, names_index = (header[i] for i in (4, 6, 11, 12, 13))
    headers = [_SECTION_HEADER.unpack_from(data, table + i * header_size) for i in range(count)]
    names = _contents(data, headers[names_index]) if headers else b""
    sections = tuple(
        Section(_string(names, h[0]), h[3], h[5], h[1] != _SHT_NOBITS)
        for h in headers
        if h[2] & _SHF_ALLOC
    )
    symbols: dict[str, Symbol] = {}
    for h in headers:
        if h[1] == _SHT_SYMTAB:
            strings = _contents(data, headers[h[6]])
            for name, address, size, *_ in _SYMBOL.iter_unpack(_contents(data, h)):
                text = _string(strings, name)
                if text:
                    symbols[text] = Symbol(text, address, size)
    return Elf(path, entry, sections, symbols)


def _contents(data: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4], header[5]
    if offset + size > len(data):
        raise ValueError("section outside of the file")
    return data[offset : offset + size]


def _string(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("utf-8", "replace")
