"""Softmax of int16 rows in TFLite's arithmetic: exponential and reciprocal are tables with lines.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, Work, operator
from patterns.ops.requantize import (
    fixed_point,
    left_shift,
    rounding_high_multiply,
    rounding_right_shift,
)
from patterns.primitive_op import Argument, Inputs, PrimitiveOp

_LONGEST_ROW = 2**16 - 1
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
        if source.shape[-1] > _LONGEST_ROW:
            raise UnsupportedError(
                f"a softmax over {source.shape[-1]} values", hint=f"at most {_LONGEST_ROW}"
            )
        return source

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, both tables and the multiplier."""
        return (
            Argument("x", inputs[0]),
            Argument("exponential", _exponential()),
            Argument("reciprocal", _reciprocal()),
            Argument("multiplier", np.asarray([self.multiplier], "int32")),
        )

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
