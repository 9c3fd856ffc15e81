"""The tiles of a layer on the cluster: what lies where, what moves when, and how long it takes.

A layer's result is a matrix; a tile is a range of its rows (``y``) by a range of its columns
(``k``).  Tiles are walked row ranges outermost, so that the rows of an operand are loaded once for
all column ranges.  Operands that are needed as a whole are loaded with the first tile.  With two
buffers the next tile is loaded, and the last one stored, while one is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from byoc_dory.geometry import ChannelTile, SpatialTile
from byoc_dory.soc.base import Dma

__all__ = ["Moved", "Operand", "Result", "Walk", "Weights"]


@dataclass(frozen=True)
class Moved:
    """One transfer: ``rows`` rows of ``bytes`` bytes; one row where they are contiguous."""

    bytes: int
    rows: int

    def cycles(self, dma: Dma) -> int:
        """Cycles of the DMA."""
        return dma.call_cycles + self.rows * -(-self.bytes // dma.bytes_per_cycle)


@dataclass(frozen=True)
class Operand:
    """What a tile reads.

    Attributes:
        name: its argument in C.
        whole: whether every tile needs all of it, else its row range.
        resident: whether it is in L1 as a whole already.
        place: byte offset in L1, of the whole or of the first buffer.
        rows: all rows there are.
        row_bytes: of a row in L2, where rows are contiguous.
        pitch: bytes from row to row in L1.
        buffer: bytes of one buffer.
        buffers: how many.
    """

    name: str
    whole: bool
    resident: bool
    place: int
    rows: int
    row_bytes: int
    pitch: int
    buffer: int
    buffers: int

    def moved(self, rows: int) -> Moved:
        """The transfer of so many rows."""
        if self.pitch == self.row_bytes:
            return Moved(rows * self.row_bytes, 1)
        return Moved(self.row_bytes, rows)


@dataclass(frozen=True)
class Weights:
    """Weights and what belongs to them, packed in one block for each column range.

    Attributes:
        place: byte offset in L1.
        block: bytes of a block.
        buffers: how many blocks L1 holds.
    """

    place: int
    block: int
    buffers: int


@dataclass(frozen=True)
class Result:
    """What a tile writes.

    Attributes:
        resident: whether it stays in L1 as a whole.
        place: byte offset in L1, of the whole or of the first buffer.
        row_bytes: of a whole row, in L2 and of a resident result.
        pitch: bytes from row to row in a tile buffer.
        buffer: bytes of one buffer.
        buffers: how many.
        transposed: whether the tile's columns are the rows of the result.
    """

    resident: bool
    place: int
    row_bytes: int
    pitch: int
    buffer: int
    buffers: int
    transposed: bool = False


@dataclass(frozen=True)
class Walk:
    """All tiles of a layer.

    Attributes:
        y_tiles, k_tiles: the ranges.
        per_y: rows of the result for each unit of y (output columns of a convolution).
        operands, weights, result: see there.
        scratch: byte offset in L1 of what a tile needs besides.
        double: whether tiles are buffered twice.
    """

    y_tiles: tuple[SpatialTile, ...]
    k_tiles: tuple[ChannelTile, ...]
    per_y: int
    operands: tuple[Operand, ...]
    weights: Weights | None
    result: Result
    scratch: int
    double: bool

    @property
    def tiles(self) -> int:
        """How many."""
        return len(self.y_tiles) * len(self.k_tiles)

    @property
    def loads_every_tile(self) -> bool:
        """Whether every tile has something to load."""
        if self.weights is not None and len(self.k_tiles) > 1:
            return True
        rows = any(not (o.whole or o.resident) for o in self.operands)
        return rows and len(self.k_tiles) == 1

    @property
    def rows_wait(self) -> bool:
        """Whether rows are loaded only when nothing reads the last ones any more: there is one
        buffer for all of them."""
        several = self.double and len(self.y_tiles) > 1
        return several and any(
            not (o.whole or o.resident) and o.buffers == 1 for o in self.operands
        )

    def begins_rows(self, tile: int) -> bool:
        """Whether a tile is the first of its row range."""
        return tile % len(self.k_tiles) == 0

    @property
    def loads(self) -> bool:
        """Whether anything is loaded."""
        return self.weights is not None or any(not o.resident for o in self.operands)

    def at(self, tile: int) -> tuple[SpatialTile, ChannelTile]:
        """The ranges of a tile."""
        y, k = divmod(tile, len(self.k_tiles))
        return self.y_tiles[y], self.k_tiles[k]

    def loaded(self, tile: int) -> Iterator[Moved]:
        """The transfers into L1 before a tile."""
        y, _ = self.at(tile)
        first_of_rows = self.begins_rows(tile)
        for operand in self.operands:
            if operand.resident:
                continue
            if operand.whole and tile == 0:
                yield operand.moved(operand.rows)
            elif not operand.whole and first_of_rows:
                yield operand.moved(y.in_size)
        if self.weights is not None and (tile == 0 or len(self.k_tiles) > 1):
            yield Moved(self.weights.block, 1)

    def stored(self, tile: int) -> Moved | None:
        """The transfer out of L1 behind a tile."""
        result = self.result
        if result.resident:
            return None
        y, k = self.at(tile)
        rows, columns = y.out_size * self.per_y, k.size
        if result.transposed:
            rows, columns = k.size, y.out_size
        if result.pitch == columns == result.row_bytes:
            return Moved(rows * columns, 1)
        return Moved(columns, rows)
