"""Bilinear interpolation of int8 maps in TFLite's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, Work, operator, union
from patterns.ops.requantize import short_rounding_right_shift
from patterns.primitive_op import PrimitiveOp

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
