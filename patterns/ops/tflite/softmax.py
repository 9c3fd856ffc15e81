"""Softmax of int8 vectors in gemmlowp's fixed point, as TFLite Micro computes it.

For 8-bit inputs the exponential has 256 possible arguments, ``max - x``; it is tabulated when the
model is imported.  At run time there remain a maximum, two sweeps over the row and one Newton
reciprocal, all in int32 with widening products.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import Scale, TensorType, Work, operator
from patterns.ops.requantize import (
    fixed_point,
    left_shift,
    rounding_high_multiply,
)
from patterns.ops.tflite.gemmlowp import exp_of_non_positive, high_multiply
from patterns.primitive_op import Argument, Inputs, PrimitiveOp

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

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the exponentials."""
        table = np.asarray(exponential_table(self.multiplier, self.left_shift), "int32")
        return Argument("x", inputs[0]), Argument("exponential", table)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        return _rows(*tensors)


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


def _rows(x: te.Tensor, table: te.Tensor) -> te.Tensor:
    rows = x.shape[:-1]
    distance, total = summed_exponentials(x, table)
    zeros = te.compute(rows, lambda *i: leading_zeros(total(*i), 20), name="zeros")
    half = te.compute(rows, lambda *i: _half_denominator(total(*i), zeros(*i)), name="halved")
    root = reciprocal_of_half(half)

    def element(*index: Any) -> Any:
        row = index[:-1]
        product = rounding_high_multiply(doubled(root(*row)), table[distance(*index)])
        # Rounding shift of a non-negative number by 23 + 12 - zeros; everything above 31 gives 0.
        # Both bounds are written out: for shifts that may be negative, TVM's range analysis draws
        # wrong conclusions, and drops the saturation below.
        amount = tirx.max(tirx.min(22 + _SUM_INTEGER_BITS - zeros(*row), 31), 0)
        result = (((product >> amount) + 1) >> 1) - 128
        return tirx.Cast("int8", tirx.min(result, 127))

    return te.compute(x.shape, element, name="softmax")


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
        error = tirx.const(1 << 29, "int32") - rounding_high_multiply(half(*index), x)
        return x + rounding_high_multiply(x, error) * 4

    return step


def doubled(root: Any) -> Any:
    """Return 1 / (1 + a) in Q0.31 from 2 / (1 + a) in Q2.29: twice the number, saturated."""
    highest = tirx.const(1 << 30, "int32")
    # A shift: TVM would move a factor into the sum that `root` may stand for, where its constants
    # would overflow.
    doubled = left_shift(root, tirx.const(1, "int32"))
    return tirx.Select(root >= highest, tirx.const(_INT32_MAX, "int32"), doubled)
