"""Operators through which scales pass: conversions, pools, moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array, Requant
from htvm.quantization.operators import INT8, Operator, from_source, to_source
from htvm.quantization.scaling import as_scheme, factors_of, offset_of, requantize
from patterns.ops.convert import Convert
from patterns.ops.moves.base import Filling

if TYPE_CHECKING:
    from patterns.op import Op
    from patterns.ops.max_pool import MaxPool
    from patterns.ops.moves.base import Move
    from patterns.ops.moves.reshape import Reshape
    from patterns.ops.tflite.average_pool import AveragePool

__all__ = [
    "AverageOperator",
    "ConvertOperator",
    "GatherOperator",
    "MaximumOperator",
    "ReshapeOperator",
    "pooled",
]

_ALIGNED = 0.5  # what is left of the rounding of an average on the source's own grid, of 1 + 1


def pooled(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    value: int,
) -> Array:
    """Return a view of the windows on maps.

    Args:
        x: ``[N, y, x, C]``.
        kernel: rows and columns of a window.
        strides: of windows.
        padding: (top, left, bottom, right).
        value: of the padding.

    Returns:
        ``[N, oy, ox, C, rows, columns]``.
    """
    if any(padding):
        top, left, bottom, right = padding
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        x = np.pad(x, border, constant_values=value)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))
    return np.asarray(view[:, :: strides[0], :: strides[1]])


@dataclass(frozen=True, eq=False)
class ConvertOperator(Operator):
    """``clip(requant(x + offset))``.

    In the source it only changes the scale.  Scales are free in the result, which needs none.
    """

    passes = True

    _: KW_ONLY
    requant: Requant
    offset: int = 0

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        return requantize(inputs[0].astype(np.int64) + self.offset, self.requant, self.clip)

    def made(self) -> Op:
        """See `Operator.made`."""
        return Convert(as_scheme(self.requant, self.name), self.clip, self.offset)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through * factors_of(self.requant) ** 2]

    def ratio(self) -> float:
        """See `Operator.ratio`."""
        return float(factors_of(self.requant)[0])

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """See `Operator.range`: it is monotonic."""
        low, high = self.run([np.array(inputs[0])])
        return int(low), int(high)

    def moves_zero(self, zero: int) -> float:
        """How far from zero the number zero is taken, in steps of the result; what is left of
        rounding is below one.  ``zero`` is the zero point of the input."""
        moved = (self.offset + zero) * factors_of(self.requant)
        return float(np.max(np.abs(moved + offset_of(self.requant))))


# ------------------------------------------------------------------------------ pools


@dataclass(frozen=True, eq=False)
class AverageOperator(Operator):
    """Averages of windows: sum over count, rounded half away from zero; padding does not count."""

    passes = computes = True

    _: KW_ONLY
    op: AveragePool

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        x, window = inputs[0], (self.op.kernel, self.op.strides, self.op.padding, 0)
        total = pooled(x.astype(np.int64), *window).sum(axis=(-2, -1))
        count = pooled(np.ones_like(x[:1], np.int64), *window).sum(axis=(-2, -1))
        away = (np.abs(total) + count // 2) // count
        return np.clip(np.where(total < 0, -away, away), *self.clip).astype(np.int8)

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """See `Operator.range`."""
        low, high = np.clip(inputs[0], *self.clip)
        return int(low), int(high)

    def made(self) -> Op:
        """See `Operator.made`."""
        return replace(self.op, clip=self.clip)

    def rounding(self, step: Array) -> Array:
        """See `Operator.rounding`.

        An average varies so little between source and result that on the same grid both round
        alike, and on different grids the source's rounding adds to ours.
        """
        return np.where(step == 1.0, _ALIGNED, 1.0 + step**2) / 12

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through / (np.prod(self.op.kernel) * np.prod(self.op.strides))]


@dataclass(frozen=True, eq=False)
class MaximumOperator(Operator):
    """Maxima of windows; padding never wins."""

    passes = True

    _: KW_ONLY
    op: MaxPool

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        dy, dx = self.op.dilation
        spans = (dy * (self.op.kernel[0] - 1) + 1, dx * (self.op.kernel[1] - 1) + 1)
        windows = pooled(inputs[0], spans, self.op.strides, self.op.padding, INT8[0])
        return np.asarray(windows[..., ::dy, ::dx].max(axis=(-2, -1)))

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """See `Operator.range`."""
        return inputs[0]

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through / np.prod(self.op.strides)]


# ------------------------------------------------------------------------------ moves


@dataclass(frozen=True, eq=False)
class ReshapeOperator(Operator):
    """The same elements in another shape.

    Attributes:
        channel_first: whether the module's own layout is NCHW.
    """

    passes = True

    _: KW_ONLY
    op: Reshape
    channel_first: bool = False

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        x = to_source(inputs[0], self.channel_first)
        return from_source(x.reshape(len(x), *self.op.shape[1:]), self.channel_first)

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """See `Operator.range`."""
        return inputs[0]

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        channels = shapes[0][-1]
        if not self.channel_first and self.shape[-1] % channels == 0:
            return [through.reshape(-1, channels).mean(axis=0)]
        return [np.full(channels, through.mean())]

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """See `Operator.lanes`."""
        before, after = shapes[0], self.shape
        if before[-1] == after[-1]:
            return [None]
        if len(after) == 1 and after[0] == int(np.prod(before)):
            lanes = np.arange(before[-1])
            places = int(np.prod(before[:-1]))
            return [np.repeat(lanes, places) if self.channel_first else np.tile(lanes, places)]
        return [np.zeros(0, np.int64)]  # channels get mixed: one lane for all


@dataclass(frozen=True, eq=False)
class GatherOperator(Operator):
    """An operator that moves elements without computing anything.

    Attributes:
        op: the operator.
        index: which element each of the output's is, int64 ``[elements]``, counted through all
            inputs one after the other; -1 for the number zero.
        fill: the integer that is the number zero.
    """

    passes = True

    _: KW_ONLY
    op: Move
    index: Array
    fill: int

    @property
    def wants_symmetric(self) -> bool:
        """See `Operator.wants_symmetric`: what is joined shares a zero point; all agree on 0."""
        return len(self.inputs) > 1 or self.core is not None

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        flat = np.concatenate([x.reshape(len(x), -1) for x in inputs], axis=1)
        out = np.where(self.index < 0, np.int8(self.fill), flat[:, self.index])
        return out.reshape(len(out), *self.shape)

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """See `Operator.range`."""
        filled = [(self.fill, self.fill)] if (self.index < 0).any() else []
        lows, highs = zip(*inputs, *filled, strict=True)
        return min(lows), max(highs)

    def made(self) -> Op:
        """See `Operator.made`: the number zero is another integer in the result's quantization."""
        return replace(self.op, value=self.fill) if isinstance(self.op, Filling) else self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`: each element of an input counts as often as it is taken."""
        found = []
        for shape, taken, target in self._taken(shapes):
            back = np.zeros(shape[-1])
            np.add.at(back, taken % shape[-1], through[target])
            found.append(back * shape[-1] / int(np.prod(shape)))
        return found

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """See `Operator.lanes`."""
        found: list[Array | None] = []
        for shape, taken, target in self._taken(shapes):
            source, size = taken % shape[-1], self.shape[-1]
            if len(self.inputs) > 1:
                source, target, size = target, source, shape[-1]
            lanes = np.full(size, -1)
            lanes[target] = source
            whole = bool((lanes >= 0).all() and (lanes[target] == source).all())
            found.append(lanes if whole else np.zeros(0, np.int64))
        return found

    def _taken(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> list[tuple[tuple[int, ...], Array, Array]]:
        """For each input its shape, the elements that are taken of it, and the channels they go
        to."""
        channels, start = np.arange(self.index.size) % self.shape[-1], 0
        found = []
        for shape in shapes:
            size = int(np.prod(shape))
            taken = (self.index >= start) & (self.index < start + size)
            found.append((shape, self.index[taken] - start, channels[taken]))
            start += size
        return found
