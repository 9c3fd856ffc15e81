"""Sums, differences, products and squared differences of tensors in TFLite's arithmetic, and their
fixed-point factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Add, Array, Difference, Elementwise, Product, TfliteRequant
from patterns.op import INT8, Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.broadcast import PairOp, broadcast, broadcast_load
from patterns.ops.layers import elementwise_layer, sum_layer
from patterns.ops.requantize import (
    fixed_point,
    left_shift,
    rounding_high_multiply,
    short_rounding_right_shift,
)
from patterns.ops.scaling import tflite_scale
from patterns.rows import RowWindow, matching_rows

if TYPE_CHECKING:
    from typing_extensions import Self


ADD_LEFT_SHIFT = 20
"""Number of fraction bits that TFLite gives the operands of an add before scaling them."""

WIDE_LEFT_SHIFT = 15
"""The same of an add of int16."""

MULTIPLY_LEFT_SHIFT = 14
"""Most bits by which a product of two centred bytes, below 2**16, may be shifted left."""

SQUARE_LEFT_SHIFT = 7
"""The same of a squared difference."""


@dataclass(frozen=True)
class AddFactors:
    """TFLite's add: both operands scaled to a common step, summed, scaled to the output.

    Attributes:
        multipliers, shifts: those of first operand, second operand and output.
        zero_points: those of first operand, second operand and output.
        bits: number of fraction bits of the operands.
    """

    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    zero_points: tuple[int, int, int]
    bits: int = ADD_LEFT_SHIFT

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int = ADD_LEFT_SHIFT,
    ) -> AddFactors:
        """Return the factors for the real scales of first operand, second operand and output.

        Raises:
            UnsupportedError: the output's step is absurdly small.
        """
        first, second, output = scales
        twice_largest = 2.0 * max(first, second)
        ratios = (
            first / twice_largest,
            second / twice_largest,
            twice_largest / ((1 << bits) * output),
        )
        refusal = f"an add whose output step {output:g} is 2**{bits} times finer than its inputs'"
        return cls._of_ratios(ratios, zero_points, bits, refusal)

    @property
    def requant(self) -> TfliteRequant:
        """The requantization of a layer, with the three multipliers."""
        *zero_points, zero_point = self.zero_points
        return TfliteRequant(self.multipliers, self.shifts, zero_point, tuple(zero_points))

    @classmethod
    def _of_ratios(
        cls,
        ratios: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int,
        refusal: str,
    ) -> Self:
        (a, i), (b, j), (c, k) = (fixed_point(ratio) for ratio in ratios)
        if k > 0:
            raise UnsupportedError(refusal)
        return cls((a, b, c), (i, j, k), zero_points, bits)


@dataclass(frozen=True)
class MultiplyFactors:
    """TFLite's product: the centred operands multiplied, scaled to the output.

    Attributes:
        multiplier, shift: Q31 multiplier and exponent of s_a * s_b / s_out.
        zero_points: those of first operand, second operand and output.
    """

    multiplier: int
    shift: int
    zero_points: tuple[int, int, int]

    @property
    def requant(self) -> TfliteRequant:
        """The requantization of a layer."""
        *zero_points, zero_point = self.zero_points
        return TfliteRequant((self.multiplier,), (self.shift,), zero_point, tuple(zero_points))

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        most: int = MULTIPLY_LEFT_SHIFT,
    ) -> MultiplyFactors:
        """Return the factors for the real scales of first operand, second operand and output.

        Args:
            scales, zero_points: those of first operand, second operand and output.
            most: bits by which a product may be shifted left.

        Raises:
            UnsupportedError: the product would exceed int32 before it is rounded.
        """
        multiplier, shift = fixed_point(scales[0] * scales[1] / scales[2])
        if shift > most:
            raise UnsupportedError(
                f"a product whose output step {scales[2]:g} is 2**{most} times finer than that of "
                "the operands"
            )
        return cls(multiplier, shift, zero_points)


@dataclass(frozen=True)
class SquareFactors(AddFactors):
    """TFLite's squared difference: operands in a common step, subtracted, squared, scaled."""

    bits: int = SQUARE_LEFT_SHIFT

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int = SQUARE_LEFT_SHIFT,
    ) -> SquareFactors:
        """See `AddFactors.from_scales`."""
        first, second, output = scales
        twice_largest = 2.0 * max(first, second)
        fine = (1 << 2 * bits) * output
        ratios = (
            first / twice_largest,
            second / twice_largest,
            twice_largest * twice_largest / fine,
        )
        refusal = (
            f"a squared difference whose output step is {output:g}, with operands' steps of "
            f"{first:g} and {second:g}"
        )
        return cls._of_ratios(ratios, zero_points, bits, refusal)


Function: TypeAlias = Literal["add", "subtract", "multiply", "squared_difference"]

_LAYERS: Mapping[str, type[Elementwise]] = {
    "add": Add,
    "subtract": Difference,
    "multiply": Product,
}


@operator
@dataclass(frozen=True, eq=False)
class TfliteBinary(PairOp):
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
        return self.function

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.parameters.zero_points[2]

    @property
    def special(self) -> str:
        return " with a constant" if self.a is not None or self.b is not None else ""

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        first, second = inputs[0], inputs[1]
        if first.dtype != second.dtype:
            raise IntegerFormError(f"operands of types {first.dtype} and {second.dtype}")
        return TensorType(broadcast(first.shape, second.shape), first.dtype)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        return matching_rows([each.shape for each in inputs], output.shape, self.constant_shapes)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Elementwise | None:
        """See `Op.kept_layer`: of two tensors, neither of which is constant."""
        kind, batch = _LAYERS.get(self.function), len(output.shape) == 4 and output.shape[0] > 1
        if kind is None or batch or self.a is not None or self.b is not None:
            return None
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        return elementwise_layer(kind, name, operands, output, self.parameters.requant, self.clip)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the multipliers; TVM would multiply out known ones."""
        return {"multiplier": np.asarray(self._multipliers, "int32")}

    @property
    def _multipliers(self) -> tuple[int, ...]:
        if isinstance(self.parameters, MultiplyFactors):
            return (self.parameters.multiplier,)
        return self.parameters.multipliers

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        *operands, multiplier = tensors
        clipped = _ARITHMETIC[type(self.parameters)]
        low, high = self.clip
        values = [tirx.Cast("int32", broadcast_load(part, index)) for part in operands]
        value = clipped(values, self.function, self.parameters, multiplier)
        return tirx.Cast(operands[0].dtype, tirx.max(tirx.min(value, high), low))


def summed(values: Sequence[Any], function: str, parameters: Any, multiplier: Any) -> Any:
    """Return the sum of two int32, or their difference, in steps of the result, not yet clipped."""
    first, second = _common(values, parameters, multiplier, parameters.bits)
    total = first - second if function == "subtract" else first + second
    high = rounding_high_multiply(total, multiplier[2])
    return divided(high, parameters.shifts[2]) + parameters.zero_points[2]


def _squared(values: Sequence[Any], _: str, parameters: Any, multiplier: Any) -> Any:
    first, second = _common(values, parameters, multiplier, parameters.bits)
    # Both are at most half of 255 * 2**7 or of 2**15, so the square is at most 2**30.
    high = rounding_high_multiply((first - second) * (first - second), multiplier[2])
    return divided(high, parameters.shifts[2]) + parameters.zero_points[2]


def _common(values: Sequence[Any], parameters: Any, multiplier: Any, bits: int) -> list[Any]:
    """Return both operands in a common step, with this many fraction bits."""

    def operand(index: int) -> Any:
        # (centred << bits) * multiplier >> 31 with rounding, with the common factor cancelled.
        centred = values[index] - parameters.zero_points[index]
        product = tirx.Cast("int64", centred) * tirx.Cast("int64", multiplier[index])
        drop = 31 - bits
        rounded = (product + tirx.const(1 << (drop - 1), "int64")) >> tirx.const(drop, "int64")
        return divided(tirx.Cast("int32", rounded), parameters.shifts[index])

    return [operand(0), operand(1)]


def _multiplied(values: Sequence[Any], _: str, parameters: Any, multiplier: Any) -> Any:
    zeros = parameters.zero_points
    product = (values[0] - zeros[0]) * (values[1] - zeros[1])
    if parameters.shift > 0:
        product = left_shift(product, tirx.const(parameters.shift, "int32"), known=True)
    high = rounding_high_multiply(product, multiplier[0])
    return divided(high, parameters.shift) + zeros[2]


_ARITHMETIC = {AddFactors: summed, MultiplyFactors: _multiplied, SquareFactors: _squared}


def divided(value: Any, shift: int) -> Any:
    """Return a value below 2**30 shifted right by ``-shift``, rounded like TFLite.

    With a positive ``shift`` the value is returned unchanged: a left shift comes before the
    multiplication.
    """
    # All values here are below 2**30, so the short form never overflows.
    return short_rounding_right_shift(value, -shift) if shift < 0 else value


@operator
@dataclass(frozen=True, eq=False)
class TfliteAdd(PairOp):
    """The sum of two int8 tensors of the same shape, which can be a layer.

    Attributes:
        factors: scales and zero points.
        clip: inclusive range of the output.
    """

    kind = "add"
    tag = "tflite_add"
    work = Work.SUM
    scale = Scale.FREE
    neutral = True

    factors: AddFactors
    clip: Range = INT8

    @property
    def zero_point(self) -> int:
        return self.factors.zero_points[2]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        return matching_rows([each.shape for each in inputs], output.shape)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the multipliers.

        TVM would multiply out known ones, into three wide products instead of one.
        """
        return {"multiplier": np.asarray(self.factors.multipliers, "int32")}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        first, second, multiplier = tensors
        low, high = self.clip
        values = [tirx.Cast("int32", part(*index)) for part in (first, second)]
        result = summed(values, "add", self.factors, multiplier)
        return tirx.Cast("int8", tirx.max(tirx.min(result, high), low))

    def compute(self, inputs: Sequence[Array]) -> Array:
        factors, total = self.factors, np.zeros((), np.int64)
        *scales, last = zip(factors.multipliers, factors.shifts, strict=True)
        for x, zero, scale in zip(inputs, factors.zero_points[:2], scales, strict=True):
            total = total + tflite_scale((x.astype(np.int64) - zero) << factors.bits, *scale)
        out = tflite_scale(total, *last) + self.zero_point
        return np.clip(out, *self.clip).astype(np.int8)

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Add:
        """See `Op.layer`."""
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        return sum_layer(name, operands, output, self.factors.requant, self.clip)
