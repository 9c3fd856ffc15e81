"""Convolutions, averages and interpolation of float32 maps (N, C, y, x).

Sums of convolutions run over channels, then rows, then columns of a filter, in float32.  This order
is as good as any other, but another order would give different last bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.ops.scaling import window_counts
from patterns.primitive import sizes_of


@operator
@dataclass(frozen=True, eq=False)
class RealConv2d(RealOp):
    """A convolution of float32 maps (N, C, y, x), to (N, K, y, x).

    Attributes:
        weight: float32 ``[K, C / groups, fy, fx]``.
        bias: float32 ``[K]``.
        strides, dilation: strides and dilation (y, x).
        padding: zeros at (top, left, bottom, right).
        groups: number of groups of channels.
    """

    kind = "real_conv2d"

    weight: Array
    bias: Array
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        source = inputs[0].shape
        k, each = self.weight.shape[:2]
        fits = source[1] == each * self.groups and not k % self.groups
        filters = self.weight.shape[2:]
        sizes = window_counts(source[2:], filters, self.strides, self.padding, self.dilation)
        if not fits or min(sizes) < 1:
            raise IntegerFormError(
                f"weights of shape {self.weight.shape} on {source} in {self.groups} groups"
            )
        return TensorType((source[0], k, *sizes), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, kernel, summand = tensors
        k, each, fy, fx = self.weight.shape
        sizes, padding = sizes_of(source)[2:], self.padding
        c, i, j = (
            te.reduce_axis((0, size), part)
            for size, part in zip((each, fy, fx), "cij", strict=True)
        )

        def tap(n: Any, channel: Any, oy: Any, ox: Any) -> Any:
            y = oy * self.strides[0] + i * self.dilation[0] - padding[0]
            z = ox * self.strides[1] + j * self.dilation[1] - padding[1]
            group = tirx.floordiv(channel, k // self.groups) * each
            value = source(n, group + c, y, z)
            if any(padding):
                inside = tirx.all(y >= 0, y < sizes[0], z >= 0, z < sizes[1])
                value = tirx.if_then_else(inside, value, tirx.const(0.0, "float32"))
            return te.sum(value * kernel(channel, c, i, j), axis=[c, i, j])

        total = te.compute(self.extents(tensors), tap, name="total")
        return te.compute(
            total.shape, lambda n, o, y, z: total(n, o, y, z) + summand[o], name="biased"
        )


@operator
@dataclass(frozen=True, eq=False)
class RealAverage(RealOp):
    """Averages over windows of float32 maps (N, C, y, x).

    Attributes:
        kernel, strides: sizes (y, x).
        dilation: distance (y, x) of the elements of a window.
    """

    kind = "real_average"

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        source = inputs[0].shape
        sizes = window_counts(source[2:], self.kernel, self.strides, dilation=self.dilation)
        if min(sizes) < 1:
            raise IntegerFormError(f"windows of {self.kernel} on {list(source[2:])}")
        return TensorType((*source[:2], *sizes), "float32")

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the number of elements in a window."""
        return {"count": np.asarray([math.prod(self.kernel)], "float32")}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, count = tensors
        i = te.reduce_axis((0, self.kernel[0]), "i")
        j = te.reduce_axis((0, self.kernel[1]), "j")

        def window(n: Any, c: Any, y: Any, z: Any) -> Any:
            (sy, sx), (dy, dx) = self.strides, self.dilation
            taken = source(n, c, y * sy + i * dy, z * sx + j * dx)
            return te.sum(taken, axis=[i, j])

        total = te.compute(self.extents(tensors), window, name="total")
        return te.compute(total.shape, lambda *at: total(*at) / count[0], name="average")


@operator
@dataclass(frozen=True, eq=False)
class RealBilinear(RealOp):
    """Weighted sums of four elements of each float32 map (N, C, y, x).

    Each element of the result has two rows and two columns of the source, each with a weight.  The
    sum goes over the first row's elements first, and a product's weights are multiplied first.

    Attributes:
        rows, columns: int32 [2, oy] and [2, ox], indices in the source.
        row_weights, column_weights: float32 of the same shapes.
    """

    kind = "real_bilinear"
    opaque = True

    rows: Array
    columns: Array
    row_weights: Array
    column_weights: Array

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs[:1])
        shape = inputs[0].shape
        for size, places in zip(shape[2:], (self.rows, self.columns), strict=True):
            if len(shape) != 4 or places.min() < 0 or places.max() >= size:
                raise IntegerFormError(f"rows or columns outside of a map of {list(shape)}")
        return TensorType((*shape[:2], self.rows.shape[1], self.columns.shape[1]), "float32")

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: four for each of the result."""
        n, c, y, x = output.shape
        return 4 * n * c * y * x

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, rows, columns, row_weights, column_weights = tensors

        def element(n: Any, c: Any, y: Any, x: Any) -> Any:
            terms = [
                column_weights[j, x] * row_weights[i, y] * source(n, c, rows[i, y], columns[j, x])
                for i in (0, 1)
                for j in (0, 1)
            ]
            return terms[0] + terms[1] + terms[2] + terms[3]

        return te.compute(self.extents(tensors), element, name="bilinear")
