"""The axes of a tile loop, each with the ranges that a layer is split into along it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from byoc_dory.tileloop.values import Field, Index, Of, Value, pick

# A search for tiles combines the same few axes again and again.
_KNOWN = 1024


@dataclass(frozen=True)
class Span:
    """The range of one tile along an axis.

    Attributes:
        out_start, out_size: range of outputs that it produces.
        in_start, in_size: range of inputs that it reads, clipped to the input.
        pad: number of zeros before the input; negative: number of leading elements to skip.
    """

    out_start: int
    out_size: int
    in_start: int
    in_size: int
    pad: int


@dataclass(frozen=True)
class TileAxis:
    """One loop over tiles.

    Its properties are the fields of the current tile's range: numbers if all tiles have the same,
    else expressions.

    Attributes:
        name: name of the loop's index, a C identifier.
        title: what the axis counts, e.g. "output channels".
        spans: the ranges of the tiles, in order.
        strided: whether ranges have equal distances and the same inputs as outputs, so that C
            computes them from the index; otherwise they are listed in a table.
    """

    name: str
    title: str
    spans: tuple[Span, ...]
    strided: bool

    @property
    def count(self) -> int:
        """Number of tiles along the axis."""
        return len(self.spans)

    @property
    def step(self) -> int:
        """Size of all ranges except the last."""
        return self.spans[0].out_size

    @property
    def size(self) -> int:
        """Number of outputs along the axis."""
        last = self.spans[-1]
        return last.out_start + last.out_size

    def _span_field(self, field: Field) -> Value:
        values = tuple(getattr(span, field) for span in self.spans)
        if len(set(values)) == 1:
            return int(values[0])
        return Of(self.name, field)

    @cached_property
    def out_start(self) -> Value:
        """First output of the tile."""
        return self._span_field("out_start")

    @cached_property
    def out_size(self) -> Value:
        """Number of outputs of the tile."""
        return self._span_field("out_size")

    @cached_property
    def in_start(self) -> Value:
        """First input of the tile."""
        return self._span_field("in_start")

    @cached_property
    def in_size(self) -> Value:
        """Number of inputs of the tile."""
        return self._span_field("in_size")

    @cached_property
    def pad(self) -> Value:
        """Number of zeros before the tile's inputs; negative: number of elements to skip."""
        return self._span_field("pad")

    @property
    def index(self) -> Value:
        """Index of the tile's range, from 0."""
        return Index(self.name) if self.count > 1 else 0

    def pick(self, values: tuple[int, ...]) -> Value:
        """Return a number for each tile along the axis."""
        return pick(self.name, values)

    @cached_property
    def kind_counts(self) -> tuple[int, ...]:
        """Number of tiles of each kind; see :attr:`kinds`."""
        first, numbers = self.kinds
        return tuple(map(numbers.count, range(len(first))))

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(index of the first tile of each kind, kind of each tile).

        Tiles are of the same kind if they differ only in their starts: then they cost the same.
        """
        first: list[int] = []
        numbers: list[int] = []
        known: dict[tuple[int, int, int], int] = {}
        for index, span in enumerate(self.spans):
            shape = (span.out_size, span.in_size, span.pad)
            if shape not in known:
                known[shape] = len(first)
                first.append(index)
            numbers.append(known[shape])
        return tuple(first), tuple(numbers)


@lru_cache(_KNOWN)
def plain_axis(name: str, title: str, size: int, tile: int) -> TileAxis:
    """Return tiles of ``tile`` elements with equal inputs and outputs; the last has the rest."""
    spans = []
    for start in range(0, size, tile):
        count = min(tile, size - start)
        spans.append(Span(start, count, start, count, 0))
    return TileAxis(name, title, tuple(spans), strided=True)


@lru_cache(_KNOWN)
def halo_axis(
    name: str,
    title: str,
    out: int,
    tile: int,
    size: int,
    kernel: int = 1,
    stride: int = 1,
    pad: int = 0,
    align: int = 1,
) -> TileAxis:
    """Return tiles of ``tile`` outputs, each with the inputs that its windows cover.

    Args:
        name, title: as in `TileAxis`.
        out: number of outputs.
        tile: number of outputs per tile.
        size: number of inputs.
        kernel, stride, pad: size of the window, its step, and the number of zeros before the input.
        align: alignment of the first input of a tile, in elements.
    """
    if tile >= out:
        return TileAxis(name, title, (Span(0, out, 0, size, pad),), strided=False)
    spans = []
    for start in range(0, out, tile):
        count = min(tile, out - start)
        first = start * stride - pad
        low = max(0, first) // align * align
        high = min(size, first + (count - 1) * stride + kernel)
        spans.append(Span(start, count, low, high - low, low - first))
    return TileAxis(name, title, tuple(spans), strided=False)
