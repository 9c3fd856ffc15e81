"""The axes of a tile loop: along each, the ranges that a layer is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from byoc_dory.tileloop.values import Field, Index, Of, Value, pick

__all__ = ["Span", "TileAxis", "halo_axis", "plain_axis"]

# A search for tiles combines the same few axes again and again.
_KNOWN = 1024


@dataclass(frozen=True)
class Span:
    """The range of one tile along an axis.

    Attributes:
        out_start, out_size: what it produces.
        in_start, in_size: what it reads, clipped to the input.
        pad: zeros before the input; negative: leading elements to skip.
    """

    out_start: int
    out_size: int
    in_start: int
    in_size: int
    pad: int


@dataclass(frozen=True)
class TileAxis:
    """One loop over tiles.

    Its properties are the fields of the current tile's range: numbers where all tiles have the
    same, expressions elsewhere.

    Attributes:
        name: a C identifier, the loop's index.
        title: what is counted, in words, e.g. "output channels".
        spans: the ranges, in order.
        strided: ranges follow each other in equal steps and read what they write, so that C
            computes them from the index; others are listed in a table.
    """

    name: str
    title: str
    spans: tuple[Span, ...]
    strided: bool

    @property
    def count(self) -> int:
        """How many tiles."""
        return len(self.spans)

    @property
    def step(self) -> int:
        """Size of all ranges but the last."""
        return self.spans[0].out_size

    @property
    def size(self) -> int:
        """Everything that is produced along the axis."""
        last = self.spans[-1]
        return last.out_start + last.out_size

    def _of(self, field: Field) -> Value:
        values = tuple(getattr(span, field) for span in self.spans)
        if len(set(values)) == 1:
            return int(values[0])
        return Of(self.name, field)

    @cached_property
    def out_start(self) -> Value:
        """First element that the tile produces."""
        return self._of("out_start")

    @cached_property
    def out_size(self) -> Value:
        """How many it produces."""
        return self._of("out_size")

    @cached_property
    def in_start(self) -> Value:
        """First element that it reads."""
        return self._of("in_start")

    @cached_property
    def in_size(self) -> Value:
        """How many it reads."""
        return self._of("in_size")

    @cached_property
    def pad(self) -> Value:
        """Zeros before what it reads; negative: elements to skip."""
        return self._of("pad")

    @property
    def index(self) -> Value:
        """Which of the ranges the tile has, from 0."""
        return Index(self.name) if self.count > 1 else 0

    def pick(self, values: tuple[int, ...]) -> Value:
        """A number for each tile along the axis."""
        return pick(self.name, values)

    @cached_property
    def kind_counts(self) -> tuple[int, ...]:
        """How many tiles there are of each kind; see :attr:`kinds`."""
        first, numbers = self.kinds
        return tuple(map(numbers.count, range(len(first))))

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(the first index of each different kind of tile, the kind of each tile).

        Tiles are of one kind if all but their starts is equal: then they cost the same.
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
    """Tiles of ``tile`` elements that read what they write; the last has what is left."""
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
    """Tiles of ``tile`` of ``out`` outputs, each with the inputs that its windows cover.

    Args:
        name, title: as in `TileAxis`.
        out: number of outputs.
        tile: outputs of a tile.
        size: number of inputs.
        kernel, stride, pad: the window, its step, and the zeros before the input.
        align: inputs of a tile start at multiples of this.
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
