"""Convolutions, including transposed ones, and fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Pads, Pair
from htvm.frontend.scales import BIAS_TOLERANCE, QuantizedProduct, WideProduct
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.flatbuffer import FlatTable
from htvm.frontend.tflite.reader import FULL_INT8, SAME, VALID, OperatorReader, constant_array
from patterns.ops.convolution import Window
from patterns.ops.moves.pad import Interleave
from patterns.ops.moves.reshape import Reshape


def conv(op: OperatorReader) -> Sequence[Applied]:
    """CONV_2D: weights (K, fy, fx, C / groups)."""
    op.count((2, 3))
    source, weights = op.source(), op.weights(rank=4, axis=0)
    op.batch(source, 4)
    options = op.options(1)
    channels = weights.shape[0]
    groups = groups_of(op, source, weights.shape)
    moves = window(op, options, weights.shape[1:3], (4, 5), channels)
    product = _product(op, source, weights, (0, 3, 1, 2), options, 3)
    return [product.convolved(op.value(source), Window(*moves, groups), op.position)]


def groups_of(op: OperatorReader, source: TfliteTensor, weights: tuple[int, ...]) -> int:
    """Return the number of groups of a CONV_2D with weights of this shape."""
    channels = source.shape[3]
    if channels % weights[3] or weights[0] % (channels // weights[3]):
        raise op.corrupt(f"weights of shape {weights} for {channels} channels")
    return channels // weights[3]


def check_depthwise(
    op: OperatorReader, source: TfliteTensor, weights: tuple[int, ...]
) -> FlatTable:
    """Return the options of a DEPTHWISE_CONV_2D with weights of this shape."""
    options = op.options(2)
    multiplier = op.positive(options, 3, "depth multiplier")
    if weights[0] != 1 or weights[3] != source.shape[3] * multiplier:
        raise op.corrupt(
            f"weights of shape {weights} for {source.shape[3]} channels times {multiplier}"
        )
    return options


def depthwise(op: OperatorReader) -> Sequence[Applied]:
    """DEPTHWISE_CONV_2D: weights (1, fy, fx, C * multiplier)."""
    op.count((2, 3))
    source, weights = op.source(), op.weights(rank=4, axis=3)
    op.batch(source, 4)
    options, channels = check_depthwise(op, source, weights.shape), weights.shape[3]
    moves = window(op, options, weights.shape[1:3], (5, 6), channels)
    product = _product(op, source, weights, (3, 0, 1, 2), options, 4)
    return [product.convolved(op.value(source), Window(*moves, source.shape[3]), op.position)]


def _product(
    op: OperatorReader,
    source: TfliteTensor,
    weights: TfliteTensor,
    axes: tuple[int, ...],
    options: FlatTable,
    fused: int,
    bias: int = 2,
) -> QuantizedProduct | WideProduct:
    """Return the layer of an operator.

    Args:
        op: the operator.
        source, weights: its operands.
        axes: axes of the weights, in the order of the integer form.
        options: options with the field ``fused``, its activation function.
        fused: number of that field.
        bias: number of the bias input.
    """
    weight = constant_array(weights).transpose(axes)
    first, last = op.step(source), op.step(op.result())
    summands = _bias(op, bias, source, weights, len(weight))
    ratios = tuple(first.scale * scale / last.scale for scale in weights.scales)
    clip, zeros = op.clip(options, fused), (first.zero_point, last.zero_point)
    if op.dtype == "int16":
        return WideProduct(weight, summands, ratios, clip, op.where)
    return QuantizedProduct(weight, summands, ratios, zeros, clip, op.where)


def transpose_conv(op: OperatorReader) -> Sequence[Applied]:
    """TRANSPOSE_CONV: weights (K, fy, fx, C); a convolution of the input spread over zeros."""
    spread, weights, options = _spread_input(op)
    product = _product(op, op.source(2), weights, (0, 3, 1, 2), options, 3, bias=3)
    turned = replace(product, weight=product.weight[:, :, ::-1, ::-1])
    return [turned.convolved(spread, Window(), op.position)]


def _spread_input(op: OperatorReader) -> tuple[Activation, TfliteTensor, FlatTable]:
    """Return what a TRANSPOSE_CONV convolves with turned filters, its weights and options."""
    op.count((3, 4))
    source, weights = op.source(2), op.weights(rank=4, axis=0)
    op.batch(source, 4)
    options = op.options(49)
    channels, *kernel, inputs = weights.shape
    if inputs != source.shape[3]:
        raise op.corrupt(f"weights of shape {weights.shape} for {source.shape[3]} channels")
    # Runtimes with static shapes do not read it, and exporters may leave it open.
    shape = op.result().shape
    if op.tensor(0).data is not None:
        op.result_shape(op.constant(0, "sizes of the output"))
    op.batch(op.result(), 4)
    if shape[3] != channels:
        raise op.corrupt(f"an output of shape {shape} for {channels} channels")
    padding, strides, start = options.integer(0, "b"), [], []
    for axis, field in ((0, 2), (1, 1)):
        stride = op.positive(options, field, "stride")
        full_size, taps = shape[1 + axis], kernel[axis]
        if padding not in (SAME, VALID):
            raise op.corrupt(f"padding {padding}")
        made = math.ceil((full_size if padding == SAME else full_size - taps + 1) / stride)
        if made != source.shape[1 + axis]:
            raise op.corrupt(f"an input of shape {source.shape} for an output of shape {shape}")
        before = max((made - 1) * stride + taps - full_size, 0) // 2
        strides.append(stride)
        start.append(taps - 1 - before)
    size = (shape[1] + kernel[0] - 1, shape[2] + kernel[1] - 1)
    zero = op.step(source).zero_point
    interleave = Interleave(zero, size, (start[0], start[1]), (strides[0], strides[1]))
    spread = op.apply(interleave, op.value(source))
    return Activation.of(spread), weights, options


def fully_connected(op: OperatorReader) -> Sequence[Applied]:
    """FULLY_CONNECTED: weights (K, C); all axes but the last of the input are rows."""
    source, weights, options, rows = _rows_of(op)
    product = _product(op, source, weights, (0, 1), options, 0)
    if isinstance(product, WideProduct):
        return _pixels(op, product, rows)
    channels, features = weights.shape
    declared, vector = op.result().shape, op.value(source)
    if source.shape != (rows, features):
        vector = Activation.of(op.apply(Reshape((rows, features)), vector))
    dense = product.dense(vector, op.position(1))
    if declared == (rows, channels):
        return [dense]
    result = Activation.of(dense)
    return [op.apply(Reshape(declared), result, sub=2)]


def _pixels(op: OperatorReader, product: WideProduct, rows: int) -> Sequence[Applied]:
    """Return a FULLY_CONNECTED of int16 as a convolution of one row of pixels."""
    c = product.weight.shape[1]
    vector = Activation.of(op.apply(Reshape((1, 1, rows, c)), op.value(op.tensor(0))))
    dense = op.apply(product.filter(Window()), vector, sub=1, stem="dense")
    return [op.apply(Reshape(op.result().shape), Activation.of(dense), sub=2)]


def _rows_of(op: OperatorReader) -> tuple[TfliteTensor, TfliteTensor, FlatTable, int]:
    """Return input, weights, options and the number of rows of a FULLY_CONNECTED, checked."""
    op.count((2, 3))
    source, weights = op.source(), op.weights(rank=2, axis=0)
    options = op.options(8)
    if options.integer(1, "b"):
        raise op.unsupported("shuffled weights")
    channels, features = weights.shape
    elements = math.prod(source.shape)
    if elements % features:
        raise op.corrupt(f"an input of shape {source.shape} for weights of shape {weights.shape}")
    rows = elements // features
    keeps = options.integer(2, "B")
    if keeps and op.last_axis(source) != features:
        raise op.corrupt(f"an input of shape {source.shape} for weights of shape {weights.shape}")
    shape = (*source.shape[:-1], channels) if keeps else (rows, channels)
    declared = op.result().shape
    if math.prod(declared) != rows * channels:
        raise op.corrupt(f"an output of shape {declared} for {rows} rows of {channels} channels")
    if keeps or len(declared) == 2:
        op.result_shape(shape)
    elif declared[-1:] != (channels,):
        raise op.unsupported(
            f"an output of shape {declared} for {channels} channels", "channels are the last axis"
        )
    return source, weights, options, rows


# ------------------------------------------------------------------------------ parameters


def _bias(
    op: OperatorReader, index: int, source: TfliteTensor, weights: TfliteTensor, channels: int
) -> Array:
    """Return an optional constant vector in steps of s_in * s_w: int32, or int64 beside int16.

    Beside int16 with one of int32, kernels sum in 32 bits and round twice, or take it for int64.
    """
    tensor, wide = op.optional(index), op.dtype == "int16"
    if tensor is None:
        return np.zeros(channels, "int64" if wide else "int32")
    if tensor.data is None:
        raise op.unsupported("its bias is computed at run time", "make it constant")
    if wide and tensor.dtype != "int64":
        raise op.unsupported(
            f"{'an' if tensor.dtype.startswith('i') else 'a'} {tensor.dtype} bias beside int16 "
            f"activations ({tensor.place})",
            "a constant of int64, as converters write it by default",
        )
    if not wide and tensor.dtype != "int32":
        raise op.unsupported(f"a {tensor.dtype} bias ({tensor.place})", FULL_INT8)
    scales = tensor.scales
    if tensor.shape != (channels,) or len(scales) not in (0, 1, channels):
        raise op.corrupt(
            f"{tensor.place} of shape {tensor.shape} with {len(scales)} scales for {channels} "
            "channels"
        )
    if any(tensor.zero_points):
        raise op.unsupported(f"a bias with a zero point ({tensor.place})")
    # TFLite uses the integers unchanged; another scale would be ignored silently.
    scale = op.step(source).scale
    for channel in range(channels if scales else 0):
        own = scales[channel % len(scales)]
        product = scale * weights.scales[channel % len(weights.scales)]
        if abs(own - product) > BIAS_TOLERANCE * product:
            raise op.unsupported(
                f"a bias in steps of {own:g} ({tensor.place})",
                f"input scale times weight scale is {product:g}",
            )
    return tensor.data


def window(
    op: OperatorReader,
    options: FlatTable,
    kernel: Sequence[int],
    dilation_fields: Pair | None,
    channels: int,
) -> tuple[Pair, Pads, Pair]:
    """Return strides, padding and dilation of windows over the first input.

    The output's shape is checked.

    Args:
        op: the operator.
        options: options whose field 0 is the padding, 1 and 2 the strides (x, y).
        kernel: size (y, x).
        dilation_fields: numbers of the fields with the dilation, (x, y).
        channels: number of output channels.
    """
    padding, spread = options.integer(0, "b"), op.operator.spread
    if padding not in (SAME, VALID):
        raise op.corrupt(f"padding {padding}")
    sizes, strides, dilation, before, after = [], [], [], [], []
    for axis, field in ((0, 1), (1, 0)):
        size = op.tensor(0).shape[1 + axis]
        strides.append(op.positive(options, 1 + field, "stride"))
        dilation.append(1)
        if dilation_fields is not None:
            dilation[axis] = op.positive(options, dilation_fields[field], "dilation", 1)
        if spread is not None:
            dilation[axis] = spread.dilation[axis]
            size += spread.padding[axis] + spread.padding[2 + axis]
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        covered = size if padding == SAME else size - reach + 1
        sizes.append(math.ceil(covered / strides[axis]))
        # SAME padding puts the odd element at the bottom and at the right.
        total = max((sizes[axis] - 1) * strides[axis] + reach - size, 0)
        total = total if padding == SAME else 0
        before.append(total // 2)
        after.append(total - total // 2)
    op.result_shape((1, sizes[0], sizes[1], channels))
    pads = (before[0], before[1], after[0], after[1]) if spread is None else spread.padding
    return (strides[0], strides[1]), pads, (dilation[0], dilation[1])
