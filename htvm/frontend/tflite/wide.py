"""Operators of int16 activations with int8 weights ("int16x8"), which have no zero points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Clip
from htvm.frontend.products import BIAS_TOLERANCE
from htvm.frontend.tflite.activations import slopes_of
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.products import (
    check_depthwise,
    filter_window,
    groups_of,
    rows_of,
    spread_input,
)
from htvm.frontend.tflite.reader import FULL_INT8, OperatorReader, constant_array
from patterns.op import TensorType
from patterns.ops.convolution import Window
from patterns.ops.float32.quantize import Quantize
from patterns.ops.moves.pad_axes import PadAxes
from patterns.ops.moves.reshape import Reshape
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.wide import PiecewiseRescale, WideConv2d, narrowed, uniform

__all__ = [
    "conv",
    "depthwise",
    "fully_connected",
    "leaky_relu",
    "quantize",
    "transpose_conv",
]

_LIMITS = {"int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}


# ------------------------------------------------------------------------------ products


def conv(op: OperatorReader) -> Sequence[Applied]:
    """CONV_2D of int16."""
    op.count((2, 3))
    source, weights = op.source(), op.weights(rank=4, axis=0)
    op.batch(source, 4)
    options = op.options(1)
    groups = groups_of(op, source, weights.shape)
    moves = filter_window(op, options, weights, (4, 5), weights.shape[0], groups)
    return [_convolved(op, source, weights, constant_array(weights), moves, op.clip(options, 3))]


def depthwise(op: OperatorReader) -> Sequence[Applied]:
    """DEPTHWISE_CONV_2D of int16."""
    op.count((2, 3))
    source, weights = op.source(), op.weights(rank=4, axis=3)
    op.batch(source, 4)
    options = check_depthwise(op, source, weights.shape)
    moves = filter_window(op, options, weights, (5, 6), weights.shape[3], source.shape[3])
    data = constant_array(weights).transpose(3, 1, 2, 0)
    return [_convolved(op, source, weights, data, moves, op.clip(options, 4))]


def transpose_conv(op: OperatorReader) -> Sequence[Applied]:
    """TRANSPOSE_CONV of int16."""
    spread, weights, options = spread_input(op)
    made = _filter(
        op, op.source(2), weights, constant_array(weights)[:, ::-1, ::-1], Window(),
        op.clip(options, 3), bias=3,
    )  # fmt: skip
    return [Applied(op.position(1), op.where, (spread,), made)]


def fully_connected(op: OperatorReader) -> Sequence[Applied]:
    """FULLY_CONNECTED of int16: a convolution of one row of pixels."""
    source, weights, options, rows = rows_of(op)
    k, c = weights.shape
    data = constant_array(weights).reshape(k, 1, 1, c)
    made = _filter(op, source, weights, data, Window(), op.clip(options, 0))
    flat = Applied(op.position(), op.where, (op.value(source),), Reshape((1, 1, rows, c)))
    dense = Applied(
        op.position(1), op.where, (Activation((1, 1, rows, c), flat, op.dtype),), made, "dense"
    )
    result = Activation((1, 1, rows, k), dense, op.dtype)
    return [Applied(op.position(2), op.where, (result,), Reshape(op.result().shape))]


def _convolved(
    op: OperatorReader,
    source: TfliteTensor,
    weights: TfliteTensor,
    data: Array,
    moves: Window,
    clip: Clip,
) -> Applied:
    """Return a convolution of an input, padded with zeros before."""
    made, value = _filter(op, source, weights, data, moves, clip), op.value(source)
    if any(moves.padding):
        top, left, bottom, right = moves.padding
        pad = PadAxes(0, ((0, 0), (top, bottom), (left, right), (0, 0)))
        shape = pad.result_of([TensorType(value.shape, op.dtype)]).shape
        value = Activation(shape, Applied(op.position(), op.where, (value,), pad), op.dtype)
    return Applied(op.position(1), op.where, (value,), made)


def _filter(
    op: OperatorReader,
    source: TfliteTensor,
    weights: TfliteTensor,
    data: Array,
    moves: Window,
    clip: Clip,
    bias: int = 2,
) -> WideConv2d:
    first, last = op.step(source), op.step(op.result())
    factors = [narrowed(*fixed_point(first.scale * scale / last.scale)) for scale in weights.scales]
    multipliers, shifts = (np.asarray(part, "int32") for part in zip(*factors, strict=True))
    summands = _bias(op, bias, source, weights, len(data))
    made = WideConv2d(
        np.asarray(data, order="C"), summands, multipliers, shifts, clip,
        moves.strides, moves.dilation, moves.groups,
    )  # fmt: skip
    multipliers, shifts = uniform(multipliers, shifts, made.largest)
    return replace(made, multipliers=multipliers, shifts=shifts)


def _bias(
    op: OperatorReader, at: int, source: TfliteTensor, weights: TfliteTensor, channels: int
) -> Array:
    """Return an optional constant vector of int64, in steps of s_in * s_w.

    With one of int32, kernels sum in 32 bits and round twice, or take it for one of int64.
    """
    tensor = op.optional(at)
    if tensor is None:
        return np.zeros(channels, "int64")
    if tensor.data is None or tensor.dtype != "int64":
        raise op.unsupported(
            f"{'an' if tensor.dtype.startswith('i') else 'a'} {tensor.dtype} bias beside int16 "
            f"activations ({tensor.place})",
            "a constant of int64, as converters write it by default",
        )
    if tensor.shape != (channels,) or any(tensor.zero_points):
        raise op.corrupt(f"{tensor.place} of shape {tensor.shape} for {channels} channels")
    for channel in range(channels if tensor.scales else 0):
        own = tensor.scales[channel % len(tensor.scales)]
        product = op.step(source).scale * weights.scales[channel % len(weights.scales)]
        if abs(own - product) > BIAS_TOLERANCE * product:
            raise op.unsupported(
                f"a bias in steps of {own:g} ({tensor.place})",
                f"input scale times weight scale is {product:g}",
            )
    return tensor.data


# ------------------------------------------------------------------------------ one tensor


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
