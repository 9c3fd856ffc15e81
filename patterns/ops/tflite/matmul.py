"""Products of two tensors of matrices, of int8 or int16, in TFLite's arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array
from patterns.op import INT8, TensorType, operator
from patterns.ops.broadcast import PairOp, broadcast_load
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.requantize import left_shift, rounding_high_multiply, rounding_right_shift
from patterns.ops.tflite.wide import INT16, LARGEST_SUM
from patterns.primitive import extents, sizes_of


@operator
@dataclass(frozen=True, eq=False)
class TfliteMatmul(PairOp):
    """TFLite's BATCH_MATMUL of int8: (..., M, C) and (..., C, K); leading axes are broadcast.

    Attributes:
        multiplier, shift: Q31 multiplier and exponent of s_a * s_b / s_out.
        zero_points: those of first operand, second operand and output.
        clip: inclusive range of the output.
        transposed: whether the last two axes of the operands change places first.
        a, b: the first or second operand if it is constant, int8; at most one of them is.
    """

    kind = "tflite_matmul"
    stem = "batch_matmul"
    opaque = True
    sums: ClassVar[str] = "int32"
    """Type of the sums."""

    multiplier: int
    shift: int
    zero_points: tuple[int, int, int]
    clip: tuple[int, int] = INT8
    transposed: tuple[bool, bool] = (False, False)
    a: Array | None = None
    b: Array | None = None

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.zero_points[2]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, inner = self._shape(inputs[0].shape, inputs[1].shape)
        self._check_sums(inner)
        return TensorType(shape, inputs[0].dtype)

    def _check_sums(self, inner: int) -> None:
        if inner * 255 * 255 > INT32_MAX:
            raise UnsupportedError(f"sums of {inner} products of bytes, which may exceed int32")

    def _shape(
        self, first: tuple[int, ...], second: tuple[int, ...]
    ) -> tuple[tuple[int, ...], int]:
        """Return the shape of the result, and the number of products in a sum."""
        try:
            if min(len(first), len(second)) < 2:
                raise ValueError("no matrices")
            (m, c), (own, k) = (
                shape[-2:][::-1] if turned else shape[-2:]
                for shape, turned in zip((first, second), self.transposed, strict=True)
            )
            if c != own:
                raise ValueError("the inner sizes differ")
            outer = np.broadcast_shapes(first[:-2], second[:-2])
        except ValueError as error:
            raise IntegerFormError(f"a product of shapes {first} and {second}: {error}") from error
        return (*(int(size) for size in outer), m, k), c

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the multiplier."""
        return {"multiplier": np.asarray([self.multiplier], "int32")}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        left, right, multiplier = tensors
        shape, inner = self._shape(sizes_of(left), sizes_of(right))
        k = te.reduce_axis((0, tirx.const(inner, "int64")), "k")

        def summed(*index: Any) -> Any:
            *batch, row, column = index
            places = ([row, k], [k, column])
            centred = [
                tirx.Cast(self.sums, broadcast_load(part, [*batch, *(at[::-1] if turned else at)]))
                - tirx.const(zero, self.sums)
                for part, at, turned, zero in zip(
                    (left, right), places, self.transposed, self.zero_points[:2], strict=True
                )
            ]
            return te.sum(centred[0] * centred[1], axis=[k])

        sums = te.compute(extents(shape), summed, name="sums")
        low, high = (tirx.const(limit, self.sums) for limit in self.clip)

        def element(*index: Any) -> Any:
            value = self._scaled(sums(*index), multiplier[0])
            return tirx.Cast(left.dtype, tirx.max(tirx.min(value, high), low))

        return te.compute(extents(shape), element, name="batch_matmul")

    def _scaled(self, value: Any, multiplier: Any) -> Any:
        """Return a sum in steps of the output, not yet clipped."""
        if self.shift > 0:
            value = left_shift(value, tirx.const(self.shift, "int32"))
        value = rounding_high_multiply(value, multiplier)
        if self.shift < 0:
            value = rounding_right_shift(value, tirx.const(-self.shift, "int32"))
        return value + self.zero_points[2]


@operator
@dataclass(frozen=True, eq=False)
class WideMatmul(TfliteMatmul):
    """TFLite's BATCH_MATMUL of int16, without zero points; sums are rescaled as in convolutions.

    Attributes:
        multiplier, shift: 15-bit multiplier and right shift, from `narrowed`.
    """

    kind = "wide_matmul"
    sums = "int64"

    clip: tuple[int, int] = INT16

    def _check_sums(self, inner: int) -> None:
        if inner << 30 >= LARGEST_SUM:
            raise UnsupportedError(f"sums of {inner} products, which may exceed 48 bits")

    def _scaled(self, value: Any, multiplier: Any) -> Any:
        half = tirx.const(1 << (self.shift - 1), "int64")
        product = value * tirx.Cast("int64", multiplier) + half
        return product >> tirx.const(self.shift, "int64")
