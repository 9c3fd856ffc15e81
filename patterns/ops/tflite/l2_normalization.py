"""Rows of int8 divided by their length, in TFLite's arithmetic.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.requantize import left_shift, rounding_high_multiply, rounding_right_shift
from patterns.primitive_op import PrimitiveOp

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
