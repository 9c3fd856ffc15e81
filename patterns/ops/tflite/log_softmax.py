"""Rows of int8 in TFLite's arithmetic: the logarithm of a softmax, and division by their length.

For the logarithm, each row needs the sum of its exponentials, as a softmax does, and the logarithm
of that sum; a difference gives each element.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from patterns.op import TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.requantize import (
    left_shift,
    rounding_high_multiply,
    rounding_right_shift,
    short_rounding_right_shift,
)
from patterns.ops.tflite.gemmlowp import high_multiply
from patterns.ops.tflite.softmax import (
    check_row,
    doubled,
    exponential_table,
    leading_zeros,
    reciprocal_of_half,
    softmax_multiplier,
    summed_exponentials,
)
from patterns.primitive import PrimitiveOp

_SUM_INTEGER_BITS = 12
_LOWEST = -(2**30)
"""A difference in Q5.26, -16, at and below which every result is the least int8."""
_ROOT_2 = math.sqrt(math.sqrt(2.0))  # the fourth: the middle between 1 and the root of 2


def _fixed(real: float) -> Any:
    """Return a constant in Q0.31."""
    return tirx.const(math.floor(real * 2**31 + 0.5), "int32")


@operator
@dataclass(frozen=True, eq=False)
class TfliteLogSoftmax(PrimitiveOp):
    """The logarithm of a softmax of int8 rows; output scale 1/16, zero point 127.

    Attributes:
        multiplier, left_shift: factor as returned by `softmax_multiplier`.
    """

    kind = "tflite_log_softmax"
    zero_point = 127
    stem = "log_softmax"
    work = Work.SOFTMAX

    multiplier: int
    left_shift: int

    @classmethod
    def of_scale(cls, scale: float) -> TfliteLogSoftmax:
        """Return the operator for an input of this scale (its zero point does not matter).

        Raises:
            UnsupportedError: the scale is too small for TFLite's arithmetic.
        """
        return cls(*softmax_multiplier(scale))

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; a row must not be too long for the sum's format."""
        check_row(inputs[0])
        return TensorType(inputs[0].shape)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the exponentials and their arguments."""
        table = np.asarray(exponential_table(self.multiplier, self.left_shift), "int32")
        return {"exponential": table, "difference": self._differences()}

    def _differences(self) -> Array:
        """Return what distances of 0 to 255 below a row's largest element are in Q5.26."""
        scaled = [high_multiply(-(d << self.left_shift), self.multiplier) for d in range(256)]
        return np.asarray([max(value, _LOWEST) for value in scaled], "int32")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        x, exponential, difference = tensors
        distance, total = summed_exponentials(x, exponential)
        logarithm = _logarithm(total)
        value = difference[distance(*index)] - logarithm(*index[:-1])
        value = short_rounding_right_shift(value, tirx.const(22, "int32")) + 127
        return tirx.Cast("int8", tirx.max(tirx.min(value, 127), -128))


def _logarithm(total: te.Tensor) -> te.Tensor:
    """Return log(x) in Q5.26 of numbers from 1 to 2**12 in Q12.19.

    A number is a power of two, in steps of a half, times a rest between the roots of 1/2 and 2;
    the rest's logarithm is a quotient of polynomials around the fourth root of 1/2.
    """
    rows, wide = total.shape, "int64"

    def split(*row: Any) -> tuple[Any, Any]:
        """The rest in Q0.31 and the power in Q6.25, the whole or the half one, whichever fits."""
        value = total(*row)
        zeros = leading_zeros(value, 20)
        whole = value << tirx.max(tirx.min(zeros - 1, 11), 0)
        whole = tirx.Cast(wide, rounding_high_multiply(whole, _fixed(math.sqrt(0.5)))) * 2
        free = leading_zeros(rounding_high_multiply(value, _fixed(math.sqrt(0.5))), 19) - 1
        amount = tirx.Cast(wide, tirx.max(tirx.min(free, 12), 0))
        half = tirx.Cast(wide, value) << amount
        rest = tirx.min(tirx.min(whole, half), tirx.const(INT32_MAX, wide))
        quarter = 1 << 23
        powers = [(_SUM_INTEGER_BITS - each) * (1 << 25) for each in (zeros, free)]
        return tirx.Cast("int32", rest), tirx.max(powers[0] + quarter, powers[1] - quarter)

    rest = te.compute(rows, lambda *i: split(*i)[0], name="rest")
    power = te.compute(rows, lambda *i: split(*i)[1], name="power")
    multiply = rounding_high_multiply

    def offset(*row: Any) -> Any:
        """Twice the distance of the rest from the middle."""
        # A shift, as TVM would multiply out a factor, whose product with the constant overflows.
        return left_shift(rest(*row) - _fixed(1 / _ROOT_2), tirx.const(1, "int32"))

    q = te.compute(rows, offset, name="offset")
    square = te.compute(rows, lambda *i: multiply(q(*i), q(*i)), name="square")

    def half_denominator(*row: Any) -> Any:
        middle = (rest(*row) >> 1) + (_fixed(1 / _ROOT_2) >> 1)
        middle = middle + (((rest(*row) & 1) + (_fixed(1 / _ROOT_2) & 1) + 1) >> 1)
        inner = _fixed(2 / _ROOT_2 - _ROOT_2) + q(*row)
        inner = inner + multiply(square(*row), _fixed(_ROOT_2 / 20))
        less_one = multiply(middle, inner) + multiply(q(*row), _fixed(_ROOT_2 / 4))
        return (less_one >> 1) + tirx.const(1 << 30, "int32")

    inverse = reciprocal_of_half(te.compute(rows, half_denominator, name="divisor"))

    def logarithm(*row: Any) -> Any:
        cubic = multiply(multiply(q(*row), square(*row)), _fixed(11 / 240 * _ROOT_2))
        numerator = multiply(q(*row), rest(*row)) + cubic
        numerator = rounding_right_shift(numerator, tirx.const(6, "int32"))  # to Q6.25
        quotient = multiply(numerator, doubled(inverse(*row)))
        return (multiply(power(*row), _fixed(math.log(2.0))) + quotient) * 2

    return te.compute(rows, logarithm, name="logarithm")


_LARGEST_SQUARE = 255**2
_NEWTON_STEPS = 5
_HALF_ROOT = round(math.sqrt(0.5) * 2**31)
_FRACTION_BITS = 7
_MOST_PAIRS = 14
_SHIFT = 11
"""Right shift of an element times the inverse root of a sum that is not shifted."""


@operator
@dataclass(frozen=True, eq=False)
class TfliteL2Normalization(PrimitiveOp):
    """Rows of int8 along the last axis divided by their Euclidean length.

    The output has scale 1/128 and zero point 0; a row of zeros stays zero.

    Attributes:
        input_zero_point: integer of the input that represents 0.0.
    """

    kind = "tflite_l2_normalization"
    zero_point = 0
    stem = "l2_normalization"
    work = Work.WINDOW

    input_zero_point: int

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; the sum of a row's squares must fit int32."""
        shape = inputs[0].shape
        if shape[-1] * _LARGEST_SQUARE > INT32_MAX:
            raise UnsupportedError(
                f"an L2 normalization over {shape[-1]} values",
                hint=f"at most {INT32_MAX // _LARGEST_SQUARE}",
            )
        return TensorType(shape)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (x,) = tensors
        rows, k = x.shape[:-1], te.reduce_axis((0, x.shape[-1]), "k")

        def centred(*index: Any) -> Any:
            return tirx.Cast("int32", x(*index)) - self.input_zero_point

        def square(*row: Any) -> Any:
            return te.sum(centred(*row, k) * centred(*row, k), axis=k)

        total = te.compute(rows, square, name="total")
        pairs = te.compute(rows, lambda *i: _bit_pairs(total(*i)), name="pairs")
        half = te.compute(rows, lambda *i: _half(total(*i), pairs(*i)), name="halved")
        root = te.compute(rows, lambda *_: tirx.const(1 << 28, "int32"), name="guess")
        for step in range(_NEWTON_STEPS):
            root = te.compute(rows, _newton_step(root, half), name=f"newton{step}")

        def element(*index: Any) -> Any:
            row = index[:-1]
            multiplier = rounding_high_multiply(root(*row), tirx.const(_HALF_ROOT, "int32"))
            exponent = pairs(*row) + (_FRACTION_BITS - _SHIFT)
            # Both bounds of each amount are written out: TVM takes others for negative ones.
            left = tirx.max(tirx.min(exponent, _MOST_PAIRS + _FRACTION_BITS - _SHIFT), 0)
            right = tirx.max(tirx.min(-exponent, 1 + _SHIFT - _FRACTION_BITS), 0)
            value = left_shift(centred(*index), left, known=True)
            value = rounding_right_shift(rounding_high_multiply(value, multiplier), right)
            return tirx.Cast("int8", tirx.max(tirx.min(value, 127), -128))

        return te.compute(x.shape, element, name="l2_normalization")


def _bit_pairs(total: Any) -> Any:
    """The pairs of bits by which a sum is shifted left into [2**27, 2**29): -1 to 14."""
    count = tirx.const(-1, "int32")
    for pair in range(_MOST_PAIRS + 1):
        count = count + tirx.Cast("int32", total < tirx.const(1 << (29 - 2 * pair), "int32"))
    return count


def _half(total: Any, pairs: Any) -> Any:
    """Return half of the shifted sum, which is in [1/4, 1), in Q3.28, rounded."""
    total = tirx.max(total, 1)  # elements of an empty sum are zero, whatever they are divided by
    shifted = total << tirx.max(tirx.min(2 * pairs, 2 * _MOST_PAIRS), 0)
    shifted = tirx.Select(pairs < 0, total >> 2, shifted)
    return ((shifted >> 1) + 1) >> 1


def _newton_step(guess: te.Tensor, half: te.Tensor) -> Any:
    """Return x * 3/2 - half * x**3 in Q3.28.

    All guesses are at most 2, from below, so that nothing saturates.  Products of Q3.28 are Q6.25
    and Q9.22.
    """

    def step(*index: Any) -> Any:
        x = guess(*index)
        cube = rounding_high_multiply(rounding_high_multiply(x, x), x) * 64
        fraction = rounding_high_multiply(x, tirx.const(3 << 27, "int32"))
        return (fraction - rounding_high_multiply(half(*index), cube)) * 8

    return step
