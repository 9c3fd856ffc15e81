"""Functions of one tensor of int16, element by element or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from htvm.frontend.operators import Activation, Applied, Quantization
from htvm.frontend.tflite.activations import unary
from htvm.frontend.tflite.reader import OperatorReader
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.wide import PiecewiseRescale, WideSigmoid
from patterns.ops.tflite.wide_softmax import WideSoftmax

_FRACTION = Quantization(1 / 32768, 0)
_INT32 = (-(2**31), 2**31 - 1)


def sigmoid(op: OperatorReader, function: Literal["logistic", "tanh"]) -> Sequence[Applied]:
    """LOGISTIC and TANH of int16: output scale 1/32768."""
    source, step, made = unary(op)
    _check_fraction(op, function, made)
    sigmoid = WideSigmoid.of_scale(function, step.scale)
    return [op.apply(sigmoid, op.value(source))]


def softmax(op: OperatorReader) -> Sequence[Applied]:
    """SOFTMAX of int16 over the last axis: output scale 1/32768."""
    source, step, made = unary(op)
    _check_fraction(op, "softmax", made)
    op.last_axis(source)
    rows = WideSoftmax.of_scale(step.scale, op.options(9).real(0))
    return [op.apply(rows, op.value(source))]


def _check_fraction(op: OperatorReader, function: str, made: Quantization) -> None:
    if made != _FRACTION:
        raise op.unsupported(
            f"a {function} with output scale {made.scale:g}", "that of int16 is 1/32768"
        )


def absolute(op: OperatorReader) -> Sequence[Applied]:
    """ABS of int16."""
    source, step, made = unary(op)
    same, factor = (1 << 30, 1), fixed_point(step.scale / made.scale)
    # Magnitudes first, with one bit more, because halves are rounded upward.
    absolutes = PiecewiseRescale(same, (-same[0], same[1]), clip=_INT32, dtype="int32")
    value = Activation.of(op.apply(absolutes, op.value(source), stem="abs"))
    rescale = PiecewiseRescale(factor, factor)
    return [op.apply(rescale, value, sub=1)]
