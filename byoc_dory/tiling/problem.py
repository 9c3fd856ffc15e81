"""The tiling problem of one layer: tile sizes, exact memory functions, limits and solutions.

Every function here accepts plain integers or numpy integer arrays (the enumeration evaluates all
tiles at once), and every solver's answer is checked with these functions, never with the solver's
own model of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from byoc_dory.errors import TargetError


@dataclass(frozen=True)
class Tile:
    """Sizes of one tile: output channels, input channels, output rows, output columns."""

    k: int
    c: int
    y: int
    x: int

    def __str__(self) -> str:
        return f"k={self.k}, c={self.c}, y={self.y}, x={self.x}"


@dataclass(frozen=True)
class Axis:
    """One dimension of the tile.

    Attributes:
        size: size of the layer along this dimension.
        tiled: whether the dimension may be tiled.
        step: a power of two; a tile is a multiple of it, or the whole dimension.
    """

    size: int
    tiled: bool = True
    step: int = 1

    def sizes(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return all allowed tile sizes, ascending."""
        if not self.tiled:
            return np.array([self.size], dtype=np.int64)
        multiples = np.arange(self.step, self.size, self.step, dtype=np.int64)
        return np.append(multiples, np.int64(self.size))

    def allows(self, value: int) -> bool:
        """Whether ``value`` is an allowed tile size."""
        if value == self.size:
            return True
        return self.tiled and 0 < value < self.size and value % self.step == 0


@dataclass(frozen=True)
class InputWindow:
    """The inputs that outputs read.

    Attributes:
        iy, ix: size of the layer's input.
        fy, fx: size of the kernel that the accelerator executes.
        stride: stride (y, x).
        crop: number of columns by which a tile's input may start early because of DMA alignment.
    """

    iy: int
    ix: int
    fy: int = 1
    fx: int = 1
    stride: tuple[int, int] = (1, 1)
    crop: int = 0


@dataclass(frozen=True)
class Rounding:
    """The padding of tiles in L1.

    Attributes:
        k, c, y, x: multiples, each a power of two, that output channels, input channels, rows and
            columns are rounded up to.
        extra_maps: number of output maps after those of a tile that are overwritten.
    """

    k: int = 1
    c: int = 1
    y: int = 1
    x: int = 1
    extra_maps: int = 0


@dataclass(frozen=True)
class TileWeights:
    """The bytes of a tile's weights.

    Attributes:
        channel, block, fixed: bytes per block of output channels and input channel, per block, and
            per tile; see `TilingProblem`.
        limit: size of the weight memory in bytes; ignored with ``in_l1``.
        block_k: number of output channels whose weights are stored as one block: sizes of k other
            than its multiples are possible, but leave blocks partly empty.
        in_l1: whether a tile's weights are in L1, and count there.
    """

    channel: int = 0
    block: int = 0
    fixed: int = 0
    limit: int = 0
    block_k: int = 1
    in_l1: bool = False


@dataclass(frozen=True)
class FixedBytes:
    """Bytes of L1 that exist once, whatever the number of buffers.

    Attributes:
        operands: bytes of each further operand that L1 holds as a whole for any tile.
        scratch: bytes that every tile needs in addition, once.
        slack: bytes that may be lost between tensors whose sizes are not aligned.
        column: further bytes of scratch per output column of a tile.
    """

    operands: tuple[int, ...] = ()
    scratch: int = 0
    slack: int = 0
    column: int = 0


@dataclass(frozen=True)
class TilingProblem:
    """The L1 use of tiles, and the limits.

    The input rows of a tile are derived from its output rows with an exact halo: ``s*(y-1) + fy``,
    never more than the whole input, and the whole input if y is not tiled; columns likewise, plus
    ``crop`` columns if x is tiled.  Then, in bytes, with ``round`` rounding to the size's
    multiple::

        in  = copies * round(channels) * round(iy) * round(ix)
        out = (round(k) + extra_maps) * round(y) * round(x) * (4 if c < C else 1 + sums)
        weights = fixed + round(k) / rounding.k * (c * channel + block)

    Weights are in a memory of their own, or with ``weights.in_l1`` in L1 with the activations.
    ``channels`` is k if an output channel reads only its own input (depthwise, add), else c.

    Attributes:
        name: name of the layer, for messages.
        k, c, y, x: the dimensions of the tile.
        window: the inputs that outputs read.
        l1_limit: bytes available for input and output tiles.
        channels_follow_k: whether ``channels`` is k, so that c is not a dimension of its own.
        copies: number of input operands with the layer's shape (2 for an add).
        rounding: padding of tiles in L1.
        weights: bytes of a tile's weights.
        sums: bytes per output for a sum in L1, until the accelerator has done all passes over its
            input channels.
        buffering: number of copies of every tile in memory, 2 with double buffering.
        unit: name of what the limits belong to, for messages.
        fixed: bytes of L1 that exist once.
        inputs_once: whether L1 may hold a single tile of each operand and two of everything else:
            the operand's next tile is loaded when nothing reads the previous one any more.
        may_find: whether operands may be in L1 as a whole.
        may_stay: whether the result may stay in L1.
        rows_apart: whether ranges of rows of tensors that are in L1 as a whole can be tiles: the
            layout has all channels of a row side by side.
    """

    name: str
    k: Axis
    c: Axis
    y: Axis
    x: Axis
    window: InputWindow
    l1_limit: int
    channels_follow_k: bool = False
    copies: int = 1
    rounding: Rounding = Rounding()
    weights: TileWeights = TileWeights()
    sums: int = 0
    buffering: int = 1
    unit: str = "L1"
    fixed: FixedBytes = FixedBytes()
    inputs_once: bool = False
    may_find: bool = True
    may_stay: bool = True
    rows_apart: bool = False

    def __post_init__(self) -> None:
        for axis in ("k", "c", "y", "x"):
            steps = {"step": getattr(self, axis).step, "rounding": getattr(self.rounding, axis)}
            for what, value in steps.items():
                if value < 1 or value & (value - 1):
                    raise self._contradiction(
                        f"{what} {value} of axis {axis} is not a power of two",
                        "give the accelerator a number that is one",
                    )
        if self.channels_follow_k and self.c.tiled:
            raise self._contradiction("c cannot be tiled apart from k", "let it follow k untiled")
        if self.sums and self.c.tiled:
            raise self._contradiction("sums are those of whole input channels", "do not tile c")

    def _contradiction(self, what: str, hint: str) -> TargetError:
        """Return an error about what an accelerator's description makes of a layer."""
        return TargetError(what, where=f"tiling problem of layer '{self.name}'", hint=hint)

    # ------------------------------------------------------------------ memory

    def rows_in(self, y: Any) -> Any:
        """Return the number of input rows that a tile of ``y`` output rows may need."""
        return _input_extent(y, self.y.size, self.window.iy, self.window.fy, self.window.stride[0])

    def columns_in(self, x: Any) -> Any:
        """The number of input columns that a tile of ``x`` output columns may need, with crop."""
        return _input_extent(
            x, self.x.size, self.window.ix, self.window.fx + self.window.crop, self.window.stride[1]
        )

    def columns_read(self, x: Any) -> Any:
        """Return the number of input columns that ``x`` output columns read, without crop."""
        return _input_extent(x, self.x.size, self.window.ix, self.window.fx, self.window.stride[1])

    def in_bytes(self, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Return the bytes of the input tile (of all operands) in L1."""
        channels = k if self.channels_follow_k else c
        pitch = _round_up(self.columns_in(x), self.rounding.x)
        rows = _round_up(self.rows_in(y), self.rounding.y)
        return self.copies * _round_up(channels, self.rounding.c) * rows * pitch

    def out_bytes(self, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Return the bytes of the output tile in L1, which has int32 partial sums if c is tiled."""
        maps = _round_up(k, self.rounding.k) + self.rounding.extra_maps
        element = 1 + self.sums + 3 * (c < self.c.size)
        return maps * _round_up(y, self.rounding.y) * _round_up(x, self.rounding.x) * element

    def weight_bytes(self, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Return the bytes of the tile in the weight memory."""
        blocks = _round_up(k, self.rounding.k) // self.rounding.k
        return self.weights.fixed + blocks * (c * self.weights.channel + self.weights.block)

    def memory(self, tile: Tile) -> tuple[int, int, int]:
        """Return (input, output, weight) bytes of one copy of a tile, without `fixed_bytes`."""
        sizes = (tile.k, tile.c, tile.y, tile.x)
        return (
            int(self.in_bytes(*sizes)),
            int(self.out_bytes(*sizes)),
            int(self.weight_bytes(*sizes)),
        )

    @property
    def fixed_bytes(self) -> int:
        """Bytes of L1 that do not depend on the tile: further operands, scratch and slack."""
        return sum(self.fixed.operands) + self.fixed.scratch + self.fixed.slack

    def l1_bytes(self, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Return the bytes of L1 in use for tiles of this size, with all copies."""
        copied = self.in_bytes(k, c, y, x) + self.out_bytes(k, c, y, x)
        if self.weights.in_l1:
            copied = copied + self.weight_bytes(k, c, y, x)
        return self.buffering * copied + self.fixed_bytes + self.fixed.column * x

    def scratch_bytes(self, x: int) -> int:
        """Return the bytes of scratch for tiles of ``x`` output columns."""
        return self.fixed.scratch + self.fixed.column * x

    def fits(self, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Whether a tile satisfies both limits."""
        fits_l1 = self.l1_bytes(k, c, y, x) <= self.l1_limit
        if self.weights.in_l1:
            return fits_l1
        return fits_l1 & (self.buffering * self.weight_bytes(k, c, y, x) <= self.weights.limit)

    # ------------------------------------------------------------------ special tiles

    @property
    def axes(self) -> tuple[Axis, Axis, Axis, Axis]:
        """The dimensions in the order of `Tile`."""
        return (self.k, self.c, self.y, self.x)

    @property
    def whole(self) -> Tile:
        """The tile that covers the whole layer."""
        return Tile(*(axis.size for axis in self.axes))

    @property
    def smallest(self) -> Tile:
        """The tile with the smallest allowed sizes."""
        return Tile(*(int(axis.sizes()[0]) for axis in self.axes))

    def tile_fits(self, tile: Tile) -> bool:
        """Whether a tile is allowed and satisfies both limits."""
        sizes = (tile.k, tile.c, tile.y, tile.x)
        allowed = all(axis.allows(size) for axis, size in zip(self.axes, sizes, strict=True))
        return allowed and bool(self.fits(*sizes))

    def fills_blocks(self, tile: Tile) -> bool:
        """Whether the tile's weights leave no places empty that another k would fill."""
        return tile.k % self.weights.block_k == 0 or tile.k == self.k.size

    def key(self) -> tuple[Any, ...]:
        """Return everything but the name: equal keys have equal solutions."""
        return tuple(getattr(self, entry.name) for entry in fields(self) if entry.name != "name")


@dataclass(frozen=True)
class Solution:
    """A tile, its use of memory, and its proven quality.

    Attributes:
        tile: the tile.
        l1_in, l1_out, l1_weights: bytes of one copy of it.
        objective: exact value of the objective; for ``latency`` in cycles.
        objective_name: name of the objective.
        status: ``"optimal"``, or ``"feasible"`` if the node limit ended the search, or there is no
            bound for the objective.
        gap: bound minus objective, relative to the objective (0 if optimal); ``None`` without a
            bound.
        solver: ``"milp"``, ``"exhaustive"``, ``"search"`` (for latency), ``"joint"`` (chosen
            together with those of other layers) or ``"whole layer"`` (proved without a search).
        nodes: number of branch-and-bound nodes.
        seconds: wall-clock time; for information only, not compared for equality.
    """

    tile: Tile
    l1_in: int
    l1_out: int
    l1_weights: int
    objective: int
    objective_name: str
    status: Literal["optimal", "feasible"]
    gap: float | None
    solver: str
    nodes: int = 0
    seconds: float = field(default=0.0, compare=False)


def solution_of(problem: TilingProblem, tile: Tile) -> Solution:
    """Return a given tile as a solution without a claim to be the best."""
    return Solution(tile, *problem.memory(tile), 0, "given", "feasible", None, "given")


def _round_up(value: Any, step: int) -> Any:
    return -(-value // step) * step


def _input_extent(outputs: Any, all_outputs: int, size: int, kernel: int, stride: int) -> Any:
    """The input extent of ``outputs`` consecutive outputs; the whole input if out is not tiled."""
    if isinstance(outputs, int):
        # The same without numpy, which takes ten times as long for a single number.
        return size if outputs == all_outputs else min(stride * (outputs - 1) + kernel, size)
    extent = np.minimum(stride * (outputs - 1) + kernel, size)
    result = np.where(np.equal(outputs, all_outputs), size, extent)
    return int(result) if np.ndim(result) == 0 else result
