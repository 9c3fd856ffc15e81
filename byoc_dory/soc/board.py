"""Boards as data: each is a file in ``boards/data``, or the user's own, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from byoc_dory.errors import TargetError, nearest
from byoc_dory.soc.cores import FlashReads

PUBLISHED, UNVERIFIED = "published: ", "unverified: "
"""How the source of a number begins: where it was read, or why it was not looked up."""

SUFFIX = ".json"
"""Suffix of a board's file."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class Region:
    """A memory of a chip: address of its first byte, as text ("0x20000000"), and size in bytes."""

    base: str
    size: int

    @property
    def address(self) -> int:
        """The address as a number."""
        return int(self.base, 16)


@dataclass(frozen=True)
class PlatformIO:
    """What PlatformIO calls a board: the three values of its project file."""

    platform: str
    board: str
    framework: str


@dataclass(frozen=True)
class Board:
    """A board: what differs from others with the same core.

    Attributes:
        name: name of the board, as users write it; that of its file.
        title: name in reports.
        chip: its microcontroller.
        core: name of the target of its core (`byoc_dory.soc.boards.description.CORES`).
        clock_hz: highest clock of the core.
        flash: memory with code and constants.
        ram: memory with arena, inputs, outputs and stack.
        sources: for each number, by the name of its field, kind and source: where it was published,
            or that it was not verified.
        fpu: floating-point unit, as GCC's option ``-mfpu`` calls it; empty if there is none.
        console: where text that a program prints arrives; empty if that is not known.
        platformio: what PlatformIO calls it; None if PlatformIO does not know it.
        qemu: QEMU's name of this machine, if it has a model of it.
        vector_bits: bits of a vector register (VLEN) of a RISC-V core with vectors; 0 for others.
        npu: name of the target of an accelerator beside the core, which is the board's; empty if
            there is none.
        npu_macs: its multiply-accumulates per cycle.
        npu_clock_hz: its highest clock.
        flash_reads: how the flash is read at this clock; None if that is not known.
        cores: number of cores of this kind; 0 where a file does not say that there are several.
    """

    name: str
    title: str
    chip: str
    core: str
    clock_hz: int
    flash: Region
    ram: Region
    sources: Mapping[str, str]
    fpu: str = ""
    console: str = ""
    platformio: PlatformIO | None = None
    qemu: str = ""
    vector_bits: int = 0
    npu: str = ""
    npu_macs: int = 0
    npu_clock_hz: int = 0
    flash_reads: FlashReads | None = None
    cores: int = 0

    @property
    def target(self) -> str:
        """The name of its target: the accelerator's where it has one, else the core's."""
        return self.npu or self.core

    @property
    def unverified(self) -> tuple[str, ...]:
        """The fields whose values nobody has verified."""
        return tuple(name for name, text in self.sources.items() if text.startswith(UNVERIFIED))


_UNSOURCED = ("name", "title", "chip", "qemu", "sources")
_PARTS: dict[str, type[Any]] = {
    "flash": Region, "ram": Region, "platformio": PlatformIO, "flash_reads": FlashReads,
}  # fmt: skip


def read_board(path: Path) -> Board:
    """Return the board in a file.

    Raises:
        TargetError: the file is not a board's: it cannot be read, lacks a field, has one that
            boards do not have or a value that is none, or does not say where a number is from.
    """
    import msgspec

    where = str(path)
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(
            f"no description of a board: {reason}",
            where=where,
            hint="`htvm boards new NAME` writes one",
        ) from error
    _check_fields(data, Board, "a board", where)
    for name, kind in _PARTS.items():
        if name in data:
            _check_fields(data[name], kind, f"{name!r}", where)
    try:
        board: Any = msgspec.convert(data, type=Board)
        spans = [(each.address, each.address + each.size) for each in (board.flash, board.ram)]
    except ValueError as error:
        raise TargetError(
            f"no description of a board: {error}",
            where=where,
            hint="compare it with what `htvm boards new NAME` writes",
        ) from error
    assert isinstance(board, Board)
    _check_values(board, path, spans)
    return board


def _check_fields(data: Any, kind: type[Any], what: str, where: str) -> None:
    """Refuse a record that lacks a field, or has one that is not known."""
    expected = {field.name: field for field in fields(kind)}
    if not isinstance(data, dict):
        raise TargetError(
            f"{what} is no record of {', '.join(expected)}",
            where=where,
            hint="compare it with what `htvm boards new NAME` writes",
        )
    for name in data:
        if name not in expected:
            raise TargetError(
                f"{what} has no field {name!r}",
                where=where,
                hint=f"{nearest(name, expected)}its fields are {', '.join(expected)}",
            )
    for name, field in expected.items():
        if field.default is MISSING and name not in data:
            raise TargetError(
                f"{what} lacks the field {name!r}",
                where=where,
                hint="compare it with what `htvm boards new NAME` writes",
            )


def _check_values(board: Board, path: Path, spans: list[tuple[int, int]]) -> None:
    """Refuse values that no board has, and numbers without a source."""
    where = str(path)
    if board.name != path.stem:
        raise TargetError(
            f"the board {board.name!r} has another name than its file",
            where=where,
            hint=f"call the file {board.name}{SUFFIX}",
        )
    if min(board.clock_hz, board.flash.size, board.ram.size) < 1 or min(spans[0] + spans[1]) < 0:
        raise TargetError(
            f"the board {board.name!r} has a clock or a size below 1, or a negative address",
            where=where,
        )
    reads = board.flash_reads
    if reads is not None and (
        reads.line_bytes < 1 or min(reads.waits, reads.code_lines, reads.data_lines) < 0
    ):
        raise TargetError(
            f"the board {board.name!r} has flash with lines below 1 B, or with negative numbers",
            where=where,
            hint="check flash_reads",
        )
    if len({bool(board.npu), board.npu_macs > 0, board.npu_clock_hz > 0}) > 1:
        raise TargetError(
            f"the board {board.name!r} has an NPU without MACs or a clock, or these without an NPU",
            where=where,
            hint="give npu, npu_macs and npu_clock_hz, or none of them",
        )
    if spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]:
        raise TargetError("flash and RAM overlap", where=where, hint="check both addresses")
    numbers = {
        field.name
        for field in fields(Board)
        if field.name not in _UNSOURCED and getattr(board, field.name)
    }
    for name in sorted(numbers ^ {*board.sources}):
        text = "has no source" if name in numbers else "has a source but no value"
        raise TargetError(
            f"{name!r} {text}", where=where, hint=f"list in 'sources': {', '.join(sorted(numbers))}"
        )
    for name, text in board.sources.items():
        if not text.startswith((PUBLISHED, UNVERIFIED)):
            raise TargetError(
                f"the source of {name!r} is {text[:60]!r}",
                where=where,
                hint=f"begin it with {PUBLISHED.strip()!r} or {UNVERIFIED.strip()!r}",
            )


@cache
def boards() -> dict[str, Board]:
    """Return the boards that are known by name."""
    folder = Path(__file__).parent / "boards" / "data"
    paths = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stem)
    return {board.name: board for board in map(read_board, paths)}


def board_called(name: str) -> Board:
    """Return a board by its name, or by the path of its file, which ends with ".json".

    Raises:
        TargetError: there is none of this name, or the file is not a board's.
    """
    if name.endswith(SUFFIX):
        return read_board(Path(name))
    if name not in boards():
        raise TargetError(
            f"unknown board {name!r}",
            hint=f"{nearest(name, boards())}`htvm boards` lists all, `htvm boards new` writes one",
        )
    return boards()[name]


def new_board(name: str, like: str) -> str:
    """Return the text of a board's file with the core, clock and memories of another board.

    Args:
        name: name of the new board; its file must be called NAME.json.
        like: name of a board, or path of a board's file.

    Raises:
        TargetError: the name is not allowed or taken, or there is no board to begin with.
    """
    where = f"board {name!r}"
    if not _NAME.fullmatch(name):
        raise TargetError(
            "a board cannot be called that",
            where=where,
            hint="small letters, digits and -, no - first, at most 40",
        )
    if name in boards():
        raise TargetError(
            "the name is taken", where=where, hint=f"`htvm boards show {name}` shows that board"
        )
    template = board_called(like)
    left_out = (*_UNSOURCED, "console", "platformio")
    numbers = [field.name for field in fields(Board) if field.name not in left_out]
    board = replace(
        template,
        name=name,
        title=name,
        sources={each: f"{UNVERIFIED}as {like}" for each in numbers if each in template.sources},
        console="",
        platformio=None,
        qemu="",
    )
    given = {field: value for field, value in asdict(board).items() if value}
    return json.dumps(given, indent=2) + "\n"
