"""Sums, differences and products of integer tensors without scales, and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers.layer import Array
from patterns.op import TensorType, operator
from patterns.ops.broadcast import PairOp, broadcast, broadcast_load, pair
from patterns.ops.integer.limits import constant_of, magnitude, wrapping_type
from patterns.primitive import Argument, Inputs, PrimitiveOp, sizes_of

Function: TypeAlias = Literal["add", "subtract", "multiply"]


@operator
@dataclass(frozen=True, eq=False)
class Combine(PrimitiveOp):
    """The sum, difference or product of two integer tensors, int32, broadcast like in numpy.

    Results that exceed 32 bits wrap around.

    Attributes:
        function: name of the function.
        b: the second operand if it is constant, with integers that fit int32.
    """

    kind = "combine"
    tag = "integer_combine"

    function: Function
    b: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(broadcast(*(part.shape for part in inputs)), "int32")

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.operands`: both."""
        return pair(inputs, b=None if self.b is None else constant_of(self.b, 1))

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        one, two = (magnitude(str(part.dtype)) for part in tensors)
        kind = wrapping_type(one * two if self.function == "multiply" else one + two)
        x, y = (tirx.Cast(kind, broadcast_load(part, index)) for part in tensors)
        result = {"add": x + y, "subtract": x - y, "multiply": x * y}[self.function]
        return tirx.Cast("int32", result)


@operator
@dataclass(frozen=True, eq=False)
class IntegerMatmul(PairOp):
    """The int32 product of two tensors of matrices; leading axes are broadcast.

    The tensors are (..., M, C) and (..., C, K), of any integer types.  Sums that exceed 32 bits
    wrap around.

    Attributes:
        transpose_b: whether the second tensor is (..., K, C) instead.
    """

    kind = "matmul"
    tag = "integer_matmul"

    transpose_b: bool = False

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        first, second = (part.shape for part in inputs)
        inner, columns = (-1, -2) if self.transpose_b else (-2, -1)
        try:
            if min(len(first), len(second)) < 2 or first[-1] != second[inner]:
                raise ValueError("the inner sizes differ")
            outer = np.broadcast_shapes(first[:-2], second[:-2])
        except ValueError as error:
            transposed = " transposed" if self.transpose_b else ""
            raise IntegerFormError(f"a product of shapes {first} and {second}{transposed}") from (
                error
            )
        return TensorType((*outer, first[-2], second[columns]), "int32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        left, right = tensors
        length = sizes_of(left)[-1]
        worst = magnitude(str(left.dtype)) * magnitude(str(right.dtype)) * length
        kind = wrapping_type(worst)
        k = te.reduce_axis((0, tirx.const(length, "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = tirx.Cast(kind, broadcast_load(left, [*batch, row, k]))
            place = [column, k] if self.transpose_b else [k, column]
            y = tirx.Cast(kind, broadcast_load(right, [*batch, *place]))
            return te.sum(x * y, axis=[k])

        shape = self.extents(tensors)
        sums = te.compute(shape, element, name="matmul")
        if kind == "int32":
            return sums
        return te.compute(shape, lambda *i: tirx.Cast("int32", sums(*i)), name="product")
