"""A walk as the template sees it: indices, sizes, places and transfers as C expressions.

What is the same for all tiles is a number, everything else an expression of the tile's index.
Expressions are of ``tile`` (its number), ``y`` and ``k`` (numbers of its ranges).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byoc_dory.emit.text import Expr, add, mul
from byoc_dory.soc.snitch_ita.walk import Operand, Walk

__all__ = ["Transfer", "WalkView"]


@dataclass(frozen=True)
class Transfer:
    """One order of the DMA.

    Attributes:
        what: for a comment.
        when: C condition under which it is given; empty: always.
        fields: of the driver's descriptor.
    """

    what: str
    when: str
    fields: Mapping[str, Expr]


class WalkView:
    """The values of the template."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.many_y = len(walk.y_tiles) > 1
        self.many_k = len(walk.k_tiles) > 1
        count = len(walk.k_tiles)
        self.y = f"tile / {count}u" if self.many_k else "tile"
        self.k = f"tile % {count}u" if self.many_y else "tile"

    # ------------------------------------------------------------------ ranges

    def rows(self, field: str) -> Expr:
        """A field of the row range: a number, or an entry of the table ``y_tiles``."""
        values = {getattr(tile, field) for tile in self.walk.y_tiles}
        return values.pop() if len(values) == 1 else f"y_tiles[y].{field}"

    @property
    def k_start(self) -> Expr:
        """First column."""
        return mul("k", f"{self.walk.k_tiles[0].size}u") if self.many_k else 0

    @property
    def k_size(self) -> Expr:
        """Number of columns."""
        tiles = self.walk.k_tiles
        if len({tile.size for tile in tiles}) == 1:
            return tiles[0].size
        return f"(k + 1u < {len(tiles)}u ? {tiles[0].size}u : {tiles[-1].size}u)"

    @property
    def table(self) -> tuple[Any, ...]:
        """Row ranges that the table ``y_tiles`` must list; empty if none does."""
        fields = ("out_start", "out_size", "in_start", "in_size", "pad")
        return self.walk.y_tiles if any(isinstance(self.rows(f), str) for f in fields) else ()

    # ------------------------------------------------------------------ places in L1

    def operand_at(self, operand: Operand) -> Expr:
        """Byte offset in L1 of what a tile reads."""
        place = f"L1_{operand.name.upper()}"
        if operand.whole:
            return place
        if operand.resident:
            return add(place, mul(self.rows("in_start"), f"{operand.row_bytes}u"))
        return self._buffer(place, "y", operand.buffers, operand.buffer)

    @property
    def weights_at(self) -> Expr:
        """Byte offset in L1 of the tile's block."""
        weights = self.walk.weights
        assert weights is not None
        return self._buffer("L1_WEIGHTS", "tile", weights.buffers, weights.block)

    @property
    def result_at(self) -> Expr:
        """Byte offset in L1 of what a tile writes."""
        result = self.walk.result
        if result.resident:
            return add("L1_OUT", self._in_result())
        return self._buffer("L1_OUT", "tile", result.buffers, result.buffer)

    @property
    def result_pitch(self) -> int:
        """Bytes from row to row of what a tile writes."""
        result = self.walk.result
        return result.row_bytes if result.resident else result.pitch

    def _buffer(self, place: str, index: str, buffers: int, size: int) -> Expr:
        if buffers == 1:
            return place
        return add(place, f"{index} % {buffers}u * {size}u")

    def _in_result(self) -> Expr:
        """Byte offset of the tile in the whole result."""
        result, per_y = self.walk.result, self.walk.per_y
        first = mul(self.rows("out_start"), per_y)
        rows, columns = (self.k_start, first) if result.transposed else (first, self.k_start)
        return add(mul(rows, f"{result.row_bytes}u"), columns)

    # ------------------------------------------------------------------ transfers

    def loads(self, constants: str) -> list[Transfer]:
        """What is loaded before a tile; ``constants``: C array of the packed blocks."""
        found = []
        for operand in self.walk.operands:
            if not operand.resident:
                found.append(self._load(operand))
        weights = self.walk.weights
        if weights is not None:
            source = add(constants, mul("k", f"{weights.block}u") if self.many_k else 0)
            once = "" if self.many_k or not self.many_y else "tile == 0u"
            found.append(
                Transfer("weights", once, _contiguous(self.weights_at, source, weights.block))
            )
        return found

    def _load(self, operand: Operand) -> Transfer:
        rows: Expr = operand.rows if operand.whole else self.rows("in_size")
        start: Expr = 0 if operand.whole else self.rows("in_start")
        when = ""
        if operand.whole and self.walk.tiles > 1:
            when = "tile == 0u"
        elif self.many_k:
            when = "k == 0u" if self.many_y else "tile == 0u"
        source = add(operand.name, mul(start, f"{operand.row_bytes}u"))
        place = self.operand_at(operand)
        if operand.pitch == operand.row_bytes:
            fields = _contiguous(place, source, mul(rows, operand.row_bytes))
        else:
            fields = _strided(
                place, source, operand.row_bytes, rows, operand.pitch, operand.row_bytes
            )
        what = operand.name if operand.whole else f"rows of {operand.name}"
        return Transfer(what, when, fields)

    def store(self) -> Transfer | None:
        """What is stored behind a tile."""
        result = self.walk.result
        if result.resident:
            return None
        target = add("out", self._in_result())
        rows, columns = mul(self.rows("out_size"), self.walk.per_y), self.k_size
        if result.transposed:
            rows, columns = columns, rows
        if columns == result.row_bytes == result.pitch:
            fields = _contiguous(self.result_at, target, mul(rows, columns), out=True)
        else:
            fields = _strided(
                self.result_at, target, columns, rows, result.pitch, result.row_bytes, out=True
            )
        return Transfer("result", "", fields)


def _contiguous(place: Expr, outside: Expr, size: Expr, out: bool = False) -> dict[str, Expr]:
    inside = f"snitch_l1({place})"
    to, source = (outside, inside) if out else (inside, outside)
    return {"to": to, "from": source, "bytes": size, "rows": 1}


def _strided(
    place: Expr,
    outside: Expr,
    size: Expr,
    rows: Expr,
    pitch: int,
    row_bytes: int,
    out: bool = False,
) -> dict[str, Expr]:
    fields = _contiguous(place, outside, size, out)
    inside, away = ("from_stride", "to_stride") if out else ("to_stride", "from_stride")
    return {**fields, "rows": rows, inside: pitch, away: row_bytes}
