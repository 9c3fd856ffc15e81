"""Sums, differences, products and squared differences of int8 tensors in TFLite's arithmetic.

The sum of two tensors of the same shape is in `patterns.ops.tflite.add`, because accelerators
support it; the operators here have operands of different shapes, possibly constant, or other
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import INT8, TensorType, operator
from patterns.ops.requantize import (
    left_shift,
    rounding_high_multiply,
    short_rounding_right_shift,
)
from patterns.ops.tflite.factors import (
    AddFactors,
    MultiplyFactors,
    SquareFactors,
)
from patterns.primitive import extents, sizes_of
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Function", "TfliteBinary", "broadcast", "divided"]

Function: TypeAlias = Literal["add", "subtract", "multiply", "squared_difference"]


def broadcast(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the result for operands of these shapes.

    Raises:
        IntegerFormError: the shapes do not fit.
    """
    try:
        return tuple(int(size) for size in np.broadcast_shapes(tuple(first), tuple(second)))
    except ValueError as error:
        raise IntegerFormError(
            f"operands of shapes {tuple(first)} and {tuple(second)} cannot be broadcast"
        ) from error


@operator
@dataclass(frozen=True, eq=False)
class TfliteBinary(PrimitiveOp):
    """A function of two tensors of int8, or of int16, broadcast like in numpy.

    Attributes:
        function: name of the function.
        parameters: scales and zero points; a `MultiplyFactors` for a product,
            a `SquareFactors` for a squared difference.
        clip: inclusive range of the output.
        a, b: the first or second operand if it is constant, of the other's type.
    """

    kind = "tflite_binary"

    function: Function
    parameters: AddFactors | MultiplyFactors | SquareFactors
    clip: tuple[int, int] = INT8
    a: Array | None = None
    b: Array | None = None

    @property
    def stem(self) -> str:
        """See `Op.stem`."""
        return self.function

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.parameters.zero_points[2]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        first, second = inputs[0], inputs[1]
        if first.dtype != second.dtype:
            raise IntegerFormError(f"operands of types {first.dtype} and {second.dtype}")
        return TensorType(broadcast(first.shape, second.shape), first.dtype)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: both operands and the multipliers.

        The multipliers are an argument, because TVM would multiply out known ones.
        """
        twice = self.a is None and self.b is None and len(inputs) == 1
        given = iter([*inputs, *inputs] if twice else inputs)
        operands = [
            Argument(name, next(given)) if value is None else Argument(name, value, name)
            for name, value in (("a", self.a), ("b", self.b))
        ]
        return *operands, Argument("multiplier", np.asarray(self._multipliers, "int32"))

    @property
    def _multipliers(self) -> tuple[int, ...]:
        if isinstance(self.parameters, MultiplyFactors):
            return (self.parameters.multiplier,)
        return self.parameters.multipliers

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        *operands, multiplier = tensors
        shapes = [sizes_of(operand) for operand in operands]
        clipped = _ARITHMETIC[type(self.parameters)]
        low, high = self.clip

        def element(*index: Any) -> Any:
            pair = [
                _at(operand, shape, index) for operand, shape in zip(operands, shapes, strict=True)
            ]
            value = clipped(pair, self.function, self.parameters, multiplier)
            return tirx.Cast(operands[0].dtype, tirx.max(tirx.min(value, high), low))

        return te.compute(extents(broadcast(*shapes)), element, name=self.function)


def _at(operand: te.Tensor, shape: tuple[int, ...], index: Sequence[Any]) -> Any:
    """Return the operand's element for an element of the result, int32."""
    own = index[len(index) - len(shape) :]
    place = [
        at if size > 1 else tirx.const(0, "int64") for at, size in zip(own, shape, strict=True)
    ]
    return tirx.Cast("int32", operand(*place))


def _summed(pair: Sequence[Any], function: str, parameters: Any, multiplier: Any) -> Any:
    """Return the sum as in `patterns.ops.tflite.add`; a difference negates the scaled operand."""
    first, second = _common(pair, parameters, multiplier, parameters.bits)
    total = first - second if function == "subtract" else first + second
    high = rounding_high_multiply(total, multiplier[2])
    return divided(high, parameters.shifts[2]) + parameters.zero_points[2]


def _squared(pair: Sequence[Any], _: str, parameters: Any, multiplier: Any) -> Any:
    first, second = _common(pair, parameters, multiplier, parameters.bits)
    # Both are at most half of 255 * 2**7 or of 2**15, so the square is at most 2**30.
    high = rounding_high_multiply((first - second) * (first - second), multiplier[2])
    return divided(high, parameters.shifts[2]) + parameters.zero_points[2]


def _common(pair: Sequence[Any], parameters: Any, multiplier: Any, bits: int) -> list[Any]:
    """Return both operands in a common step, with this many fraction bits."""

    def operand(index: int) -> Any:
        # (centred << bits) * multiplier >> 31 with rounding, with the common factor cancelled.
        centred = pair[index] - parameters.zero_points[index]
        product = tirx.Cast("int64", centred) * tirx.Cast("int64", multiplier[index])
        drop = 31 - bits
        rounded = (product + tirx.const(1 << (drop - 1), "int64")) >> tirx.const(drop, "int64")
        return divided(tirx.Cast("int32", rounded), parameters.shifts[index])

    return [operand(0), operand(1)]


def _multiplied(pair: Sequence[Any], _: str, parameters: Any, multiplier: Any) -> Any:
    zeros = parameters.zero_points
    product = (pair[0] - zeros[0]) * (pair[1] - zeros[1])
    if parameters.shift > 0:
        product = left_shift(product, tirx.const(parameters.shift, "int32"), known=True)
    high = rounding_high_multiply(product, multiplier[0])
    return divided(high, parameters.shift) + zeros[2]


_ARITHMETIC = {AddFactors: _summed, MultiplyFactors: _multiplied, SquareFactors: _squared}


def divided(value: Any, shift: int) -> Any:
    """Return a value below 2**30 shifted right by ``-shift``, rounded like TFLite.

    With a positive ``shift`` the value is returned unchanged: a left shift comes before the
    multiplication.
    """
    # All values here are below 2**30, so the short form never overflows.
    return short_rounding_right_shift(value, -shift) if shift < 0 else value
