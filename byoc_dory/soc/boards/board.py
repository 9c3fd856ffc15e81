"""Boards as data: each is a file in the folder ``data``, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from byoc_dory.errors import TargetError

__all__ = ["Board", "Region", "boards", "read_board"]


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
class Board:
    """A board: what differs from others with the same core.

    Attributes:
        name: name of the board, as users write it; that of its file.
        title: name in reports.
        chip: its microcontroller.
        core: name of the target of its core (`byoc_dory.soc.boards.cores.CORES`).
        clock_hz: highest clock of the core.
        flash: memory with code and constants.
        ram: memory with arena, inputs, outputs and stack.
        source: kind and source of these numbers.
        qemu: QEMU's name of this machine, if it has a model of it.
    """

    name: str
    title: str
    chip: str
    core: str
    clock_hz: int
    flash: Region
    ram: Region
    source: str
    qemu: str = ""


def read_board(path: Path) -> Board:
    """Return the board in a file.

    Raises:
        TargetError: the file is not a board's, which is a defect of whoever wrote it.
    """
    import msgspec

    try:
        board: Any = msgspec.json.decode(path.read_bytes(), type=Board)
        addresses = (board.flash.address, board.ram.address)
    except (OSError, ValueError) as error:
        raise TargetError(
            f"no description of a board: {error}",
            where=str(path),
            hint="compare it with the other files of its folder",
        ) from error
    if board.name != path.stem or min(*addresses, board.flash.size, board.ram.size) < 0:
        raise TargetError(
            f"the board {board.name!r} has another name than its file, or a negative size",
            where=str(path),
        )
    assert isinstance(board, Board)
    return board


@cache
def boards() -> dict[str, Board]:
    """Return all boards by name."""
    folder = Path(__file__).parent / "data"
    return {board.name: board for board in map(read_board, sorted(folder.glob("*.json")))}
