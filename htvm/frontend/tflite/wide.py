"""Operators of int16 activations with int8 weights ("int16x8"), which have no zero points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from htvm.frontend.operators import Activation, Applied
from htvm.frontend.products import WideProduct
from htvm.frontend.tflite.activations import slopes_of
from htvm.frontend.tflite.products import product_of, rows_of
from htvm.frontend.tflite.reader import FULL_INT8, OperatorReader
from patterns.ops.convolution import Window
from patterns.ops.float32.quantize import Quantize
from patterns.ops.moves.reshape import Reshape
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.wide import PiecewiseRescale

__all__ = [
    "fully_connected",
    "leaky_relu",
    "quantize",
]

_LIMITS = {"int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}


def fully_connected(op: OperatorReader) -> Sequence[Applied]:
    """FULLY_CONNECTED of int16: a convolution of one row of pixels."""
    source, weights, options, rows = rows_of(op)
    k, c = weights.shape
    product = product_of(op, source, weights, (0, 1), options, 0)
    assert isinstance(product, WideProduct)
    flat = Applied(op.position(), op.where, (op.value(source),), Reshape((1, 1, rows, c)))
    vector = Activation((1, 1, rows, c), flat, op.dtype)
    dense = Applied(op.position(1), op.where, (vector,), product.filter(Window()), "dense")
    result = Activation((1, 1, rows, k), dense, op.dtype)
    return [Applied(op.position(2), op.where, (result,), Reshape(op.result().shape))]


def leaky_relu(op: OperatorReader) -> Sequence[Applied]:
    """LEAKY_RELU of int16."""
    op.count((1,))
    source = op.source()
    op.result_shape(source.shape)
    alpha = op.options(75).real(0)
    if not math.isfinite(alpha):
        raise op.corrupt(f"a slope of {alpha}")
    ratio, slope = slopes_of(op.step(source), op.step(op.result()), alpha)
    multiplier, shift = fixed_point(abs(slope))
    below = (multiplier if slope >= 0 else -multiplier, shift)
    made = PiecewiseRescale(fixed_point(ratio), below)
    return [Applied(op.position(), op.where, (op.value(source),), made, "leaky_relu")]


def quantize(op: OperatorReader) -> Sequence[Applied]:
    """QUANTIZE to int16 from float32, and among int8, int16 and int32."""
    op.count((1,))
    source, result = op.tensor(0), op.operator.outputs[0]
    op.result_shape(source.shape)
    if source.data is not None:
        raise op.unsupported(f"{source.place} is constant, not an activation")
    made, value = op.step(result), op.value(source)
    if source.dtype == "float32":
        inward = Quantize(made.scale, made.zero_point, result.dtype)
        return [Applied(op.position(), op.where, (value,), inward)]
    if source.dtype not in _LIMITS or result.dtype not in _LIMITS:
        raise op.unsupported(f"from {source.dtype} to {result.dtype} ({result.place})", FULL_INT8)
    step = op.step(source)
    factor = fixed_point(step.scale / made.scale)
    zeros, clip = (step.zero_point, made.zero_point), _LIMITS[result.dtype]
    rescale = PiecewiseRescale(factor, factor, zeros, clip, result.dtype)
    return [Applied(op.position(), op.where, (value,), rescale)]
