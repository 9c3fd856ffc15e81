"""Softmax of int8 and int16 rows in gemmlowp's fixed point, as TFLite Micro computes it.

For 8-bit inputs the exponential has 256 possible arguments, ``max - x``; it is tabulated when the
model is imported.  At run time there remain a maximum, two sweeps over the row and one Newton
reciprocal, all in int32 with widening products.  For 16-bit inputs, exponential and reciprocal are
tables with lines between their points.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array, Rows
from byoc_dory.layers.rowwise import FixedPointSoftmax
from patterns.op import Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.layers import row_layer
from patterns.ops.requantize import (
    fixed_point,
    left_shift,
    rounding_high_multiply,
    rounding_right_shift,
)
from patterns.ops.tflite.gemmlowp import exp_of_non_positive, high_multiply
from patterns.primitive import PrimitiveOp

_INTEGER_BITS = 5  # integer bits of the scaled difference, Q5.26
_SUM_INTEGER_BITS = 12  # integer bits of the sum of exponentials, Q12.19
_LONGEST_ROW = (1 << _SUM_INTEGER_BITS) - 1
_INT32_MAX = 2**31 - 1


# ------------------------------------------------------------------------ the table, at import


def softmax_multiplier(scale: float, beta: float = 1.0) -> tuple[int, int]:
    """Return multiplier and left shift that convert a difference of inputs to Q5.26.

    Raises:
        UnsupportedError: the scale is too small for TFLite's arithmetic.
    """
    real = min(beta * scale * 2.0 ** (31 - _INTEGER_BITS), float(_INT32_MAX))
    if real <= 1.0:
        raise UnsupportedError(
            f"a softmax whose input scale times beta is {beta * scale:g}",
            hint="it must be above 2**-26",
        )
    multiplier, shift = fixed_point(real / 2)  # below the 2**30 that other multipliers may reach
    return multiplier, shift + 1


def exponential_table(multiplier: int, left_shift: int) -> tuple[int, ...]:
    """``exp(-d * scale)`` in Q0.31 for d = max - x from 0 to 255; 0 where TFLite drops it."""
    largest = math.floor(((1 << _INTEGER_BITS) - 1) * 2.0 ** (31 - _INTEGER_BITS - left_shift))
    return tuple(
        exp_of_non_positive(high_multiply(-(d << left_shift), multiplier), _INTEGER_BITS)
        if d <= largest
        else 0
        for d in range(256)
    )


# ------------------------------------------------------------------------ the PrimFunc


@operator
@dataclass(frozen=True, eq=False)
class TfliteSoftmax(PrimitiveOp):
    """The softmax of int8 rows along the last axis; output scale 1/256, zero point -128.

    Attributes:
        multiplier, left_shift: factor as returned by `softmax_multiplier`.
    """

    kind = "softmax"
    zero_point = -128
    tag = "tflite_softmax"
    work = Work.SOFTMAX
    scale = Scale.OWN
    neutral = True

    multiplier: int
    left_shift: int

    @classmethod
    def of_scale(cls, scale: float, beta: float = 1.0) -> TfliteSoftmax:
        """Return the softmax for an input of this scale (its zero point does not matter).

        Args:
            scale: scale of the input.
            beta: factor of the exponent.

        Raises:
            UnsupportedError: the scale is too small for TFLite's arithmetic.
        """
        return cls(*softmax_multiplier(scale, beta))

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; a row must not be too long for the sum's format."""
        check_row(inputs[0])
        return TensorType(inputs[0].shape)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Rows:
        function = FixedPointSoftmax(self.multiplier, self.left_shift)
        return row_layer(name, inputs[0], output, function)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the exponentials."""
        table = np.asarray(exponential_table(self.multiplier, self.left_shift), "int32")
        return {"exponential": table}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        x, table = tensors
        rows = x.shape[:-1]
        distance, total = summed_exponentials(x, table)
        zeros = te.compute(rows, lambda *i: leading_zeros(total(*i), 20), name="zeros")
        half = te.compute(rows, lambda *i: _half_denominator(total(*i), zeros(*i)), name="halved")
        root = reciprocal_of_half(half)

        def element(*index: Any) -> Any:
            row = index[:-1]
            product = rounding_high_multiply(doubled(root(*row)), table[distance(*index)])
            # Rounding shift of a non-negative number by 23 + 12 - zeros; everything above 31 gives
            # 0.  Both bounds are written out: for shifts that may be negative, TVM's range analysis
            # draws wrong conclusions, and drops the saturation below.
            amount = tirx.max(tirx.min(22 + _SUM_INTEGER_BITS - zeros(*row), 31), 0)
            result = (((product >> amount) + 1) >> 1) - 128
            return tirx.Cast("int8", tirx.min(result, 127))

        return te.compute(x.shape, element, name="softmax")


def check_row(source: TensorType) -> None:
    """Check that the sum of a row's exponentials has a format.

    Raises:
        UnsupportedError: the row is too long.
    """
    if source.shape[-1] > _LONGEST_ROW:
        raise UnsupportedError(
            f"a softmax over {source.shape[-1]} values", hint=f"at most {_LONGEST_ROW}"
        )


def summed_exponentials(x: te.Tensor, table: te.Tensor) -> tuple[Callable[..., Any], te.Tensor]:
    """Return an element's distance from the largest of its row, and the rows' sums in Q12.19.

    Args:
        x: int8 rows along the last axis.
        table: from `exponential_table`.
    """
    rows, length = x.shape[:-1], x.shape[-1]
    k, j = te.reduce_axis((0, length), "k"), te.reduce_axis((0, length), "j")
    largest = te.compute(rows, lambda *i: te.max(x(*i, k), axis=k), name="largest")

    def distance(*index: Any) -> Any:
        return tirx.Cast("int32", largest(*index[:-1])) - tirx.Cast("int32", x(*index))

    def addend(*index: Any) -> Any:
        # To Q12.19, rounded; adding the half first would overflow.
        return ((table[distance(*index)] >> 11) + 1) >> 1

    total = te.compute(rows, lambda *i: te.sum(addend(*i, j), axis=j), name="total")
    return distance, total


def reciprocal_of_half(half: te.Tensor) -> te.Tensor:
    """Return 1 / half in Q2.29 of numbers in [1/2, 1) in Q0.31."""
    root = te.compute(half.shape, lambda *i: _first_guess(half(*i)), name="guess")
    for step in range(3):
        root = te.compute(half.shape, _newton_step(root, half), name=f"newton{step}")
    return root


def leading_zeros(value: Any, lowest: int) -> Any:
    """The leading zeros of a positive int32; at most those of a number with bit ``lowest - 1``."""
    count = tirx.const(1, "int32")
    for bit in range(30, lowest - 1, -1):
        count = count + tirx.Cast("int32", value < tirx.const(1 << bit, "int32"))
    return count


def _half_denominator(value: Any, zeros: Any) -> Any:
    """Return (1 + a) / 2 in Q0.31, where 1 + a in [1, 2) is the sum shifted to the top."""
    top = tirx.Cast("uint32", value) << tirx.Cast("uint32", zeros)
    fraction = tirx.Cast("int32", top - tirx.const(1 << 31, "uint32"))
    return (fraction >> 1) + tirx.const(1 << 30, "int32")


def _first_guess(half: Any) -> Any:
    """Return 48/17 - 32/17 * half in Q2.29, the best linear approximation of 1 / half."""
    slope = tirx.const(-round(32 / 17 * 2**29), "int32")
    return tirx.const(round(48 / 17 * 2**29), "int32") + rounding_high_multiply(half, slope)


def _newton_step(guess: te.Tensor, half: te.Tensor) -> Any:
    """Return x + x * (1 - half * x) in Q2.29; no product saturates: the error is below 1/16."""

    def step(*index: Any) -> Any:
        x = guess(*index)
        # The complement of a difference: TVM would widen both sides of the negative one, and then
        # compilers multiply 64 bits by 64.
        above = rounding_high_multiply(half(*index), x) - tirx.const((1 << 29) + 1, "int32")
        error = tirx.bitwise_not(above)
        return x + rounding_high_multiply(x, error) * 4

    return step


def doubled(root: Any) -> Any:
    """Return 1 / (1 + a) in Q0.31 from 2 / (1 + a) in Q2.29: twice the number, saturated."""
    highest = tirx.const(1 << 30, "int32")
    # A shift: TVM would move a factor into the sum that `root` may stand for, where its constants
    # would overflow.
    doubled = left_shift(root, tirx.const(1, "int32"))
    return tirx.Select(root >= highest, tirx.const(_INT32_MAX, "int32"), doubled)


_LONGEST_WIDE_ROW = 2**16 - 1
_MOST_SHIFT = 15  # of differences, which have 16 bits
_REACH = 10.0  # beyond which exponentials count as exp(-10)
_SEGMENTS = 512
_SEGMENT_BITS = 7


@operator
@dataclass(frozen=True, eq=False)
class WideSoftmax(PrimitiveOp):
    """The softmax of int16 rows along the last axis; output scale 1/32768, zero point 0.

    Attributes:
        multiplier, shift: Q31 multiplier and exponent that make 65535 of a difference of 10.
    """

    kind = "wide_softmax"
    stem = "softmax"
    work = Work.SOFTMAX

    multiplier: int
    shift: int

    @classmethod
    def of_scale(cls, scale: float, beta: float = 1.0) -> WideSoftmax:
        """Return the softmax for an input of this scale.

        Args:
            scale: scale of the input.
            beta: factor of the exponent.

        Raises:
            UnsupportedError: the scale is too large for TFLite's arithmetic.
        """
        multiplier, shift = fixed_point(scale * beta / (_REACH / 65535.0))
        if shift > _MOST_SHIFT:
            raise UnsupportedError(
                f"a softmax whose input scale times beta is {scale * beta:g}", hint="use below 5"
            )
        return cls(multiplier, shift)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; a row must not be too long for the sum's format."""
        source = inputs[0]
        if source.dtype != "int16" or not source.shape:
            raise IntegerFormError(f"an input of shape {source.shape}, {source.dtype}")
        if source.shape[-1] > _LONGEST_WIDE_ROW:
            raise UnsupportedError(
                f"a softmax over {source.shape[-1]} values", hint=f"at most {_LONGEST_WIDE_ROW}"
            )
        return source

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: both tables and the multiplier."""
        return {
            "exponential": _exponential(),
            "reciprocal": _reciprocal(),
            "multiplier": np.asarray([self.multiplier], "int32"),
        }

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        x, exponential, reciprocal, multiplier = tensors
        rows, length = x.shape[:-1], x.shape[-1]
        k, j = te.reduce_axis((0, length), "k"), te.reduce_axis((0, length), "j")
        largest = te.compute(rows, lambda *i: te.max(x(*i, k), axis=k), name="largest")

        def term(*index: Any) -> Any:
            """The exponential in Q0.15."""
            highest = tirx.Cast("int32", largest(*index[:-1]))
            value = tirx.Cast("int32", x(*index)) - highest
            if self.shift > 0:
                value = left_shift(value, tirx.const(self.shift, "int32"), known=True)
            value = rounding_high_multiply(value, multiplier[0])
            if self.shift < 0:
                value = rounding_right_shift(value, tirx.const(-self.shift, "int32"))
            return _between(exponential, value + 2**15 - 1)

        total = te.compute(rows, lambda *i: te.sum(term(*i, j), axis=j), name="total")
        zeros = te.compute(rows, lambda *i: _leading_zeros(total(*i)), name="zeros")

        def inverse(*row: Any) -> Any:
            """One over the sum, which is shifted into [1, 2), in Q0.15."""
            shifted = total(*row) << tirx.max(tirx.min(zeros(*row) - 1, 30), 0)
            fraction = ((shifted >> 13) + 1) >> 1  # adding the half first would overflow
            return _between(reciprocal, fraction - (2**16 + 2**15))

        scale = te.compute(rows, inverse, name="scale")

        def element(*index: Any) -> Any:
            row = index[:-1]
            amount = tirx.max(tirx.min(30 - zeros(*row), 30), 0)  # and one more, rounded
            # Terms and scales are not negative and below 2**15.
            result = (((term(*index) * scale(*row)) >> amount) + 1) >> 1
            return tirx.Cast("int16", tirx.max(tirx.min(result, 2**15 - 1), 0))

        return te.compute(x.shape, element, name="softmax")

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: what is not negative in int16."""
        return 0, 2**15 - 1


def _leading_zeros(value: Any) -> Any:
    """The leading zeros of a sum, which is at least 2**14 and below 2**31."""
    count = tirx.const(1, "int32")
    for bit in range(30, 14, -1):
        count = count + tirx.Cast("int32", value < tirx.const(1 << bit, "int32"))
    return count


def _between(table: te.Tensor, value: Any) -> Any:
    """Return what a table has for a number, which is clipped to int16: lines between points."""
    clipped = tirx.max(tirx.min(value, 2**15 - 1), -(2**15))
    place, part = (clipped >> _SEGMENT_BITS) + _SEGMENTS // 2, clipped & (2**_SEGMENT_BITS - 1)
    low, high = (tirx.Cast("int32", table[at]) for at in (place, place + 1))
    half = 1 << (_SEGMENT_BITS - 1)
    return low + (((high - low) * part + half) >> _SEGMENT_BITS)


# ------------------------------------------------------------------------ tables, at import


@cache
def _exponential() -> Array:
    """exp(x) in Q0.15 for x from -10 to 0."""
    first = np.float32(_REACH) / np.float32(65535) * np.float32(-65535)
    return _sampled(lambda x: np.float32(math.exp(x)), first, np.float32(0))


@cache
def _reciprocal() -> Array:
    """1 / (1 + x) in Q0.15 for x from 0 to 1."""
    last = np.float32(1) / np.float32(65535) * np.float32(65535)
    return _sampled(lambda x: np.float32(1) / (np.float32(1) + x), np.float32(0), last)


def _sampled(
    function: Callable[[np.float32], np.float32], first: np.float32, last: np.float32
) -> Array:
    """Return int16 [513]: a function's values, computed in float32 as TFLite does.

    Each is moved by half of the error that the line to the next one has between them.
    """
    step = (last - first) / np.float32(_SEGMENTS)
    output = np.float32(2) / np.float32(65535)
    unit = np.float32(2**16) / (output * np.float32(2**15 - 1) - output * np.float32(-(2**15)))

    def at(place: np.float32) -> np.float32:
        return function(first + place * step) * unit

    points = []
    for place in (np.float32(number) for number in range(_SEGMENTS)):
        own, middle, following = (at(place + np.float32(part)) for part in (0, 0.5, 1))
        line = _rounded((following + _rounded(own)) / np.float32(2))
        points.append(_rounded(own) - _rounded((line - _rounded(middle)) / np.float32(2)))
    points.append(_rounded(function(last) * unit))
    return np.clip(np.asarray(points), -(2**15), 2**15 - 1).astype("int16")


def _rounded(value: np.float32) -> np.float32:
    return np.float32(math.copysign(math.floor(abs(float(value)) + 0.5), value))
