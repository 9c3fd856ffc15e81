"""Functions of one tensor that TFLite tabulates in float32, or computes in integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from htvm.frontend.operators import Activation, Applied, Quantization
from htvm.frontend.tables import absolute_table
from htvm.frontend.tflite.activations import table_of, unary
from htvm.frontend.tflite.reader import OperatorReader
from patterns.ops.convert import tabulate
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite import gemmlowp
from patterns.ops.tflite.softmax import WideSoftmax
from patterns.ops.tflite.wide import PiecewiseRescale, WideSigmoid


def absolute(op: OperatorReader) -> Sequence[Applied]:
    """ABS."""
    source, step, result_step = unary(op)
    return [table_of(op, "abs", op.value(source), absolute_table(step, result_step))]


def inverse_root(op: OperatorReader) -> Sequence[Applied]:
    """RSQRT: the largest number for zero; numbers below zero are refused."""
    source, step, result_step = unary(op)
    if step.zero_point != -128:
        raise op.unsupported(
            f"roots of numbers below zero ({source.place})", "quantize it with zero point -128"
        )
    factor, bits = fixed_point(1 / (math.sqrt(step.scale) * result_step.scale)), 20

    def function(x: int) -> int:
        value = x - step.zero_point
        if value == 0:
            return 127
        root, shift = gemmlowp.inverse_root(value)
        fine = gemmlowp.scaled(1, root, shift + bits)
        return gemmlowp.scaled(fine, factor[0], factor[1] - bits) + result_step.zero_point

    return [table_of(op, "rsqrt", op.value(source), tabulate(function))]


# ------------------------------------------------------------------------------ in float32


def exponential(op: OperatorReader) -> Sequence[Applied]:
    """EXP."""
    return _tabulated(op, "exp", math.exp)


def elu(op: OperatorReader) -> Sequence[Applied]:
    """ELU: exp(x) - 1 for negative numbers."""

    def function(x: np.float32) -> np.float32:
        return np.float32(math.exp(x)) - np.float32(1) if x < 0 else x

    return _tabulated(op, "elu", function)


def gelu(op: OperatorReader) -> Sequence[Applied]:
    """GELU, exactly or by its approximation with tanh."""
    half, one = np.float32(0.5), np.float32(1)

    def exact(x: np.float32) -> np.float32:
        return half * x * np.float32(math.erfc(x * np.float32(-math.sqrt(0.5))))

    def approximate(x: np.float32) -> np.float32:
        inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
        return half * x * (one + np.float32(math.tanh(inner)))

    approximated = op.options(116).integer(0, "B")
    return _tabulated(op, "gelu", approximate if approximated else exact)


def _tabulated(
    op: OperatorReader, stem: str, function: Callable[[np.float32], float]
) -> Sequence[Applied]:
    """Return a table of a function of reals, computed in float32 as TFLite does.

    Raises:
        UnsupportedError: a result is infinite in the output's steps, where kernels of TFLite differ
            between machines.
    """
    source, step, result_step = unary(op)
    scale = np.float32(step.scale)
    with np.errstate(over="ignore"):
        inverse = np.float32(1) / np.float32(result_step.scale)

    def entry(x: int) -> int:
        real = scale * np.float32(x - step.zero_point)
        try:
            value = np.float32(function(real)) * inverse
        except OverflowError:
            value = np.float32(math.inf)
        if not np.isfinite(value):
            raise op.unsupported(
                f"{stem} of {real:.6g} is infinite in steps of {result_step.scale:.6g}",
                "check the scales, or calibrate again",
            )
        whole = math.floor(abs(float(value)) + 0.5)  # half away from zero
        return int(np.float32(math.copysign(whole, value)) + np.float32(result_step.zero_point))

    with np.errstate(over="ignore", invalid="ignore"):
        return [table_of(op, stem, op.value(source), tabulate(entry))]


_FRACTION = Quantization(1 / 32768, 0)
_INT32 = (-(2**31), 2**31 - 1)


def wide_sigmoid(op: OperatorReader, function: Literal["logistic", "tanh"]) -> Sequence[Applied]:
    """LOGISTIC and TANH of int16: output scale 1/32768."""
    source, step, result_step = unary(op)
    _check_fraction(op, function, result_step)
    return [op.apply(WideSigmoid.of_scale(function, step.scale), op.value(source))]


def wide_softmax(op: OperatorReader) -> Sequence[Applied]:
    """SOFTMAX of int16 over the last axis: output scale 1/32768."""
    source, step, result_step = unary(op)
    _check_fraction(op, "softmax", result_step)
    op.last_axis(source)
    rows = WideSoftmax.of_scale(step.scale, op.options(9).real(0))
    return [op.apply(rows, op.value(source))]


def _check_fraction(op: OperatorReader, function: str, result_step: Quantization) -> None:
    if result_step != _FRACTION:
        raise op.unsupported(
            f"a {function} with output scale {result_step.scale:g}", "that of int16 is 1/32768"
        )


def wide_absolute(op: OperatorReader) -> Sequence[Applied]:
    """ABS of int16."""
    source, step, result_step = unary(op)
    same, factor = (1 << 30, 1), fixed_point(step.scale / result_step.scale)
    # Magnitudes first, with one bit more, because halves are rounded upward.
    absolutes = PiecewiseRescale(same, (-same[0], same[1]), clip=_INT32, dtype="int32")
    value = Activation.of(op.apply(absolutes, op.value(source), stem="abs"))
    rescale = PiecewiseRescale(factor, factor)
    return [op.apply(rescale, value, sub=1)]
