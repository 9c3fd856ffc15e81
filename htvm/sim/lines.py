"""From an instruction's address to the line of C it comes from, by a program's debug sections."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byoc_dory.errors import SimulationError

__all__ = ["Lines", "Place"]


@dataclass(frozen=True)
class Place:
    """A line of C.

    Attributes:
        file: its name, without folder.
        line: counted from 1.
        function: the C function it belongs to.
        text: the line itself, without indentation; empty where the source is not at hand.
    """

    file: str
    line: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class Lines:
    """The lines and functions of a program.

    Args:
        path: an ELF file, built with debug sections.

    Raises:
        SimulationError: it cannot be read, or has no debug sections.
    """

    def __init__(self, path: Path) -> None:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile

        try:
            with path.open("rb") as stream:
                elf = ELFFile(stream)
                if not elf.has_dwarf_info():
                    raise SimulationError("the program has no debug sections", where=str(path))
                self._functions = sorted(_functions(elf))
                self._rows = sorted(_rows(elf.get_dwarf_info()))
        except (OSError, ELFError) as error:
            raise SimulationError(
                "the program's debug sections cannot be read", where=str(path)
            ) from error

    @property
    def functions(self) -> tuple[int, ...]:
        """Addresses of all functions, ascending."""
        return tuple(address for address, _, _ in self._functions)

    def place(self, pc: int) -> Place | None:
        """The line an instruction comes from; None if nobody knows."""
        at = bisect_right(self._rows, (pc, 1 << 62, "")) - 1
        if at < 0 or self._rows[at][1] == 0:
            return None
        _, line, file = self._rows[at]
        return Place(file, line, self._function(pc))

    def _function(self, pc: int) -> str:
        at = bisect_right(self._functions, (pc, 1 << 62, "")) - 1
        if at < 0:
            return ""
        address, size, name = self._functions[at]
        return name if pc < address + max(size, 1) else ""


def _functions(elf: Any) -> Iterator[tuple[int, int, str]]:
    table = elf.get_section_by_name(".symtab")
    for symbol in () if table is None else table.iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC":
            yield symbol["st_value"], symbol["st_size"], symbol.name


def _rows(dwarf: Any) -> Iterator[tuple[int, int, str]]:
    """(first address, line, file) of runs of instructions; line 0 where a run ends."""
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                yield state.address, 0, ""
            elif state.line:
                name = files[state.file - first].name.decode("utf-8", "replace")
                yield state.address, state.line, posixpath.basename(name)
