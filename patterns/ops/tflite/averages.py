"""Averages of windows, means and sums over axes, and interpolation, in TFLite's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array, Doubling, TfliteRequant, doubling_weights
from patterns.op import INT8, Op, Operands, Range, Scale, TensorType, Work, operator, union
from patterns.ops.layers import map_of, mean_layer, pool_layer
from patterns.ops.moves.base import y_axis
from patterns.ops.requantize import (
    fixed_point,
    left_shift,
    rounding_high_multiply,
    short_rounding_right_shift,
)
from patterns.ops.scaling import windows
from patterns.ops.tflite.binary import divided
from patterns.primitive import PrimitiveOp, sizes_of
from patterns.rows import RowWindow, has_rows

if TYPE_CHECKING:
    from byoc_dory.layers import Layer, Layout, Pool


@operator
@dataclass(frozen=True, eq=False)
class AveragePool(PrimitiveOp):
    """Averages of windows of int8 or int16, rounded half away from zero, in the input's scale.

    Attributes:
        kernel, strides: sizes (y, x).
        padding: sizes (top, left, bottom, right); positions outside are not counted.
        clip: inclusive range of the output.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "average_pool"
    tag = "average_pool2d"
    work = Work.WINDOW
    scale = Scale.PASSES

    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clip: Range = INT8
    layout: str = "NHWC"

    @property
    def prescribed(self) -> Layout:
        return "NHWC" if self.layout == "NHWC" else "NCHW"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; no window may lie completely outside the input."""
        shape, y, sizes = inputs[0].shape, y_axis(self.layout), []
        for axis in (0, 1):
            before = self.padding[axis]
            span = shape[y + axis] + before + self.padding[axis + 2] - self.kernel[axis]
            count = span // self.strides[axis] + 1
            sizes.append(count)
            last_start = (count - 1) * self.strides[axis] - before
            if count < 1 or before >= self.kernel[axis] or last_start >= shape[y + axis]:
                raise UnsupportedError(
                    f"an average over no elements: input {shape}, kernel {self.kernel}, "
                    f"pads {self.padding}"
                )
        return TensorType((*shape[:y], *sizes, *shape[y + 2 :]), inputs[0].dtype)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        """See `Op.row_windows`; how many elements of a padded row count depends on its place."""
        if self.layout != "NHWC" or not has_rows(inputs[0].shape) or any(self.padding[::2]):
            return None
        return (RowWindow(self.kernel[0], self.strides[0]),)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Pool | None:
        window = self.kernel, self.strides, self.padding, self.clip
        return pool_layer(name, inputs[0], output, "average", self.layout, *window)

    def of_sums(self, inputs: Sequence[TensorType], output: TensorType) -> Op | None:
        (kind,) = inputs
        alone = self.row_windows(inputs, output) is not None and not any(self.padding)
        if not alone or self.kernel != kind.shape[1:3] or kind.dtype != "int8":
            return None
        return AverageOfSums(prod(self.kernel), self.clip)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), y_at = tensors, y_axis(self.layout)
        kernel, padding = self.kernel, self.padding
        sizes, out = sizes_of(source)[y_at : y_at + 2], self.extents(tensors)
        ry, rx = te.reduce_axis((0, kernel[0]), "ry"), te.reduce_axis((0, kernel[1]), "rx")

        def start(index: Any, axis: int) -> Any:
            return index[y_at + axis] * self.strides[axis] - padding[axis]

        def window(*index: Any) -> Any:
            y, x = start(index, 0) + ry, start(index, 1) + rx
            place = [*index[:y_at], y, x, *index[y_at + 2 :]]
            value = tirx.Cast("int32", source(*place))
            if any(padding):
                inside = tirx.all(y >= 0, y < sizes[0], x >= 0, x < sizes[1])
                value = tirx.if_then_else(inside, value, tirx.const(0, "int32"))
            return te.sum(value, axis=[ry, rx])

        def covered(index: Any, axis: int) -> Any:
            if not padding[axis] and not padding[axis + 2]:
                return tirx.const(kernel[axis], "int32")
            first = start(index, axis)
            last = tirx.min(first + kernel[axis], tirx.const(sizes[axis], first.ty.dtype))
            return tirx.Cast("int32", last - tirx.max(first, tirx.const(0, first.ty.dtype)))

        total = te.compute(out, window, name="total")

        def average(*index: Any) -> Any:
            count = covered(index, 0) * covered(index, 1)
            return _averaged(total(*index), count, self.clip, source.dtype)

        return te.compute(out, average, name="average")

    def compute(self, inputs: Sequence[Array]) -> Array:
        x, shape = inputs[0], (self.kernel, self.strides, self.padding, 0)
        total = windows(x.astype(np.int64), *shape).sum(axis=(-2, -1))
        count = windows(np.ones_like(x[:1], np.int64), *shape).sum(axis=(-2, -1))
        away = (np.abs(total) + count // 2) // count
        return np.clip(np.where(total < 0, -away, away), *self.clip).astype(x.dtype)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: a mean lies within the range of its inputs."""
        low, high = np.clip(union(inputs), *self.clip)
        return int(low), int(high)

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: all elements of each window."""
        return prod(self.kernel) * prod(output.shape)


def _averaged(total: Any, count: Any, clip: Range, dtype: str) -> Any:
    """Return a sum divided by the number of elements, rounded half away from zero and clipped."""
    half = tirx.truncdiv(count, tirx.const(2, "int32"))
    nudged = total + tirx.Select(total >= 0, half, -half)
    result = tirx.truncdiv(nudged, count)
    return tirx.Cast(dtype, tirx.max(tirx.min(result, clip[1]), clip[0]))


@operator
@dataclass(frozen=True, eq=False)
class AverageOfSums(PrimitiveOp):
    """The last part of an `AveragePool` over a whole map of int8, whose elements are summed.

    Attributes:
        count: number of elements of each sum.
        clip: inclusive range of the output.
    """

    kind = "average_of_sums"
    work = Work.WINDOW
    scale = Scale.OWN

    count: int
    clip: Range = INT8

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].dtype != "int32":
            raise IntegerFormError(f"sums of type {inputs[0].dtype}")
        return TensorType(inputs[0].shape)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        (sums,) = tensors
        return _averaged(sums(*index), tirx.const(self.count, "int32"), self.clip, "int8")


_MOST = {"int8": 1 << 22, "int16": 1 << 15}
"""Number of elements, centred and 9 or 16 bits each, whose sums are below 2**30."""


@operator
@dataclass(frozen=True, eq=False)
class TfliteMean(PrimitiveOp):
    """TFLite's MEAN of tensors of int8 or int16; the count is part of the multiplier.

    Without the count in the multiplier it is TFLite's SUM.

    Attributes:
        axes: axes to sum over, counted from 0.
        multiplier, shift: factor as returned by `mean_factor`, or that of both scales for a sum.
        zero_points: those of input and output.
        keep_dims: whether the axes remain, with size 1.
    """

    kind = "tflite_mean"
    stem = "mean"
    work = Work.WINDOW

    axes: tuple[int, ...]
    multiplier: int
    shift: int
    zero_points: tuple[int, int]
    keep_dims: bool = False

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.zero_points[1]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        count = math.prod(shape[axis] for axis in self.axes)
        if count >= _MOST[inputs[0].dtype]:
            raise UnsupportedError(f"a mean or a sum of {count} elements of {inputs[0].dtype}")
        sizes = (1 if axis in self.axes else shape[axis] for axis in self._kept(len(shape)))
        return TensorType(tuple(sizes), inputs[0].dtype)

    def _kept(self, rank: int) -> list[int]:
        """Return the axes of the input that remain in the result."""
        return [axis for axis in range(rank) if self.keep_dims or axis not in self.axes]

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the multiplier."""
        multiplier = np.asarray([self.multiplier], "int32")
        return {"multiplier": multiplier}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, factors = tensors
        shape = sizes_of(source)
        count = math.prod(shape[axis] for axis in self.axes)
        sums = self._sums(source)
        limits = np.iinfo(str(source.dtype))
        low, high = int(limits.min), int(limits.max)

        def element(*index: Any) -> Any:
            centred = sums(*index) - self.zero_points[0] * count
            if self.shift > 0:
                centred = left_shift(centred, tirx.const(self.shift, "int32"))
            rounded = rounding_high_multiply(centred, factors[0])
            value = divided(rounded, self.shift) + self.zero_points[1]
            return tirx.Cast(source.dtype, tirx.max(tirx.min(value, high), low))

        return te.compute(sums.shape, element, name="mean")

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """See `Op.kept_layer`: sums over axes, as a product with ones."""
        requant = TfliteRequant(
            (self.multiplier,), (self.shift,), self.zero_points[1], self.zero_points[:1]
        )
        return mean_layer(name, inputs[0], self.axes, requant)

    def _sums(self, source: te.Tensor) -> te.Tensor:
        """Return int32 sums over the axes."""
        shape = sizes_of(source)
        reduced = {axis: te.reduce_axis((0, shape[axis]), f"r{axis}") for axis in self.axes}

        def total(*index: Any) -> Any:
            place = dict(zip(self._kept(len(shape)), index, strict=True)) | reduced
            element = source(*(place[axis] for axis in range(len(shape))))
            return te.sum(tirx.Cast("int32", element), axis=list(reduced.values()))

        return te.compute(self.extents([source]), total, name="total")


def mean_factor(scales: tuple[float, float], count: int) -> tuple[int, int]:
    """Return multiplier and exponent of a mean over ``count`` elements, computed like TFLite.

    Args:
        scales: those of input and output.
        count: number of elements.
    """
    multiplier, shift = fixed_point(scales[0] / scales[1])
    bits = max(min(count.bit_length() - 1, 32, 31 + shift), 0)
    return (multiplier << bits) // count, shift - bits


_BITS = 20  # fraction bits of a product of two weights


@operator
@dataclass(frozen=True, eq=False)
class TfliteBilinear(PrimitiveOp):
    """Weighted sums of four elements of an int8 map (N, y, x, C), rounded half away from zero.

    Weights have ten fraction bits; the two of a row or column sum to 1024.

    Attributes:
        rows, columns: int32 [2, oy] and [2, ox], indices in the source.
        row_weights, column_weights: int32 of the same shapes.
    """

    kind = "tflite_bilinear"
    stem = "bilinear"
    work = Work.WINDOW
    opaque = True

    rows: Array
    columns: Array
    row_weights: Array
    column_weights: Array

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        if len(shape) != 4 or inputs[0].dtype != "int8":
            raise IntegerFormError(f"an interpolation of {inputs[0].dtype} of shape {shape}")
        for size, places in ((shape[1], self.rows), (shape[2], self.columns)):
            if places.min() < 0 or places.max() >= size:
                raise IntegerFormError(f"rows or columns outside of a map of shape {shape}")
        largest = [
            int(abs(each).sum(axis=0).max()) for each in (self.row_weights, self.column_weights)
        ]
        if largest[0] * largest[1] * 128 + (1 << _BITS) >= 2**31:
            raise UnsupportedError("weights whose sums exceed int32")
        return TensorType((shape[0], self.rows.shape[1], self.columns.shape[1], shape[3]))

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Doubling | None:
        """See `Op.kept_layer`: a map of twice the size, in either mode."""
        source, result = map_of(*inputs[0], "NHWC"), map_of(name, output, "NHWC")
        if source is None or result is None:
            return None
        axes = [
            _matrix(*each, size)
            for each, size in zip(
                ((self.rows, self.row_weights), (self.columns, self.column_weights)),
                source.shape[1:],
                strict=True,
            )
        ]
        for centred in (True, False):
            doubled = (doubling_weights(size, centred) << 8 for size in source.shape[1:])
            if all(map(np.array_equal, axes, doubled)):
                return Doubling(name=name, inputs=(source,), output=result, centred=centred)
        return None

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the input, because weights sum to 1."""
        return union(inputs)

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: four for each of the result."""
        n, y, x, c = output.shape
        return 4 * n * y * x * c

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, rows, columns, row_weights, column_weights = tensors

        shape = self.extents(tensors)
        i, j = (te.reduce_axis((0, tirx.const(2, "int64")), name) for name in "ij")

        def summed(n: Any, y: Any, x: Any, c: Any) -> Any:
            value = tirx.Cast("int32", source(n, rows[i, y], columns[j, x], c))
            return te.sum(value * (row_weights[i, y] * column_weights[j, x]), axis=[i, j])

        sums = te.compute(shape, summed, name="sums")

        def element(*index: Any) -> Any:
            return tirx.Cast("int8", short_rounding_right_shift(sums(*index), _BITS))

        return te.compute(shape, element, name="bilinear")


def _matrix(places: Array, weights: Array, size: int) -> Array:
    """Return the weights ``[2, n]`` of elements at places as ``[n, size]``."""
    found = np.zeros((places.shape[1], size), np.int64)
    for source, weight in zip(places, weights, strict=True):
        found[np.arange(len(source)), source] += weight
    return found
