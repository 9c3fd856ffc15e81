"""Mapping instruction addresses to lines of C, by a program's debug sections."""

from __future__ import annotations

import io
import posixpath
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byoc_dory.errors import SimulationError

_LAST = 1 << 62


@dataclass(frozen=True)
class SourceLine:
    """A line of C.

    Attributes:
        file: file name without folder.
        line: line number, counted from 1.
        function: name of the C function that contains it.
        text: the line itself, without indentation; empty if the source is not available.
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
        SimulationError: the file cannot be read, or has no debug sections.
    """

    def __init__(self, path: Path) -> None:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile

        try:
            elf = ELFFile(io.BytesIO(path.read_bytes()))
            if not elf.has_dwarf_info():
                raise SimulationError("the program has no debug sections", where=str(path))
            self._dwarf = elf.get_dwarf_info()
            self._functions = sorted(_functions(elf))
            self._rows = sorted(_rows(self._dwarf))
        except (OSError, ELFError) as error:
            raise SimulationError(
                "the program's debug sections cannot be read", where=str(path)
            ) from error

    @property
    def functions(self) -> tuple[int, ...]:
        """Addresses of all functions, ascending."""
        return tuple(address for address, _, _ in self._functions)

    def places(self, pc: int) -> tuple[SourceLine, ...]:
        """Return an instruction's line, and those from which it was inlined, innermost first.

        Empty if unknown.
        """
        row = bisect_right(self._rows, (pc, _LAST, "")) - 1
        if row < 0 or self._rows[row][1] == 0:
            return ()
        _, line, file = self._rows[row]
        places = []
        for name, call_file, call_line in self._inlined(pc):
            places.append(SourceLine(file, line, name))
            file, line = call_file, call_line
        return (*places, SourceLine(file, line, self._function(pc)))

    def _function(self, pc: int) -> str:
        row = bisect_right(self._functions, (pc, _LAST, "")) - 1
        if row < 0:
            return ""
        address, size, name = self._functions[row]
        return name if pc < address + max(size, 1) else ""

    def _inlined(self, pc: int) -> list[tuple[str, str, int]]:
        """(function, file and line it was inlined at) around an instruction, innermost first."""
        for unit in self._dwarf.iter_CUs():
            if not _covers(self._dwarf, unit, unit.get_top_DIE(), pc):
                continue
            files = _files(self._dwarf.line_program_for_CU(unit))
            inlined = []
            for entry in _around(self._dwarf, unit, unit.get_top_DIE(), pc):
                if entry.tag == "DW_TAG_inlined_subroutine":
                    origin = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
                    name = origin.attributes["DW_AT_name"].value.decode("utf-8", "replace")
                    file = files.get(entry.attributes["DW_AT_call_file"].value, "")
                    inlined.append((name, file, int(entry.attributes["DW_AT_call_line"].value)))
            return inlined[::-1]
        return []


def _around(dwarf: Any, unit: Any, die: Any, pc: int) -> Iterator[Any]:
    """Yield the entries that contain an instruction, outermost first."""
    for child in die.iter_children():
        if child.tag in _SCOPES and _covers(dwarf, unit, child, pc):
            yield child
            yield from _around(dwarf, unit, child, pc)
            return


_SCOPES = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


def _covers(dwarf: Any, unit: Any, die: Any, pc: int) -> bool:
    """Whether an entry's instructions include this one."""
    from elftools.dwarf.ranges import BaseAddressEntry

    attributes = die.attributes
    if "DW_AT_ranges" in attributes:
        base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = 0 if base is None else base.value
        ranges = dwarf.range_lists().get_range_list_at_offset(
            attributes["DW_AT_ranges"].value, unit
        )
        for part in ranges:
            if isinstance(part, BaseAddressEntry):
                start = part.base_address
            elif part.begin_offset <= pc - (0 if part.is_absolute else start) < part.end_offset:
                return True
        return False
    if "DW_AT_low_pc" not in attributes or "DW_AT_high_pc" not in attributes:
        return False
    low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
    end = high.value if high.form == "DW_FORM_addr" else low + high.value
    return bool(low <= pc < end)


def _functions(elf: Any) -> Iterator[tuple[int, int, str]]:
    table = elf.get_section_by_name(".symtab")
    for symbol in () if table is None else table.iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC":
            yield symbol["st_value"], symbol["st_size"], symbol.name


def _files(program: Any) -> dict[int, str]:
    """Return file names, without folders, by their number."""
    if program is None:
        return {}
    first = 0 if program["version"] >= 5 else 1
    return {
        number: posixpath.basename(entry.name.decode("utf-8", "replace"))
        for number, entry in enumerate(program["file_entry"], first)
    }


def _rows(dwarf: Any) -> Iterator[tuple[int, int, str]]:
    """Yield (first address, line, file) of runs of instructions; line 0 ends a run."""
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        files = _files(program)
        for entry in () if program is None else program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                yield state.address, 0, ""
            elif state.line:
                yield state.address, state.line, files.get(state.file, "")
