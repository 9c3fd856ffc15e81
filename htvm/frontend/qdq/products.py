"""Convolutions and fully connected layers, with their weights and biases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Pair, Quantization
from htvm.frontend.products import BIAS_TOLERANCE, QuantizedProduct
from htvm.frontend.qdq.reader import Constant, Pending, Value, pads, pair
from patterns.ops.convolution import Window
from patterns.ops.moves.reshape import Reshape
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from htvm.frontend.qdq.reader import Reader

__all__ = ["conv2d", "matmul"]


def conv2d(reader: Reader, call: Call) -> Value:
    """Read a convolution; its result is pending until bias and quantization."""
    source = reader.real(reader.value_of(call.args[0]), "input")
    attrs = call.attrs
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    axes = {"HWIO": (3, 2, 0, 1), "HWOI": (2, 3, 0, 1), "OIHW": (0, 1, 2, 3)}
    if layout not in ("NHWC", "NCHW") or kernel_layout not in axes:
        raise reader.unsupported(f"layouts {layout} and {kernel_layout}")
    weight = _weight(reader, call.args[1], axes[kernel_layout])
    _batch_of_one(reader, source.activation.shape)
    where, scales = reader.where, _channel_scales(reader, weight)
    at = [reader.position(sub) for sub in range(2)]
    shape, axis = shape_of(call), 3 if layout == "NHWC" else 1

    window = Window(
        pair(attrs.strides), pads(attrs.padding), pair(attrs.dilation), int(attrs.groups), layout
    )

    def finish(step: Quantization, clip: Pair, bias: Constant | None) -> Applied:
        summands = _bias(bias, source.step, scales, shape, axis, where)
        product = _product(weight, summands, scales, (source.step, step), clip, where)
        return product.convolved(source.activation, window, lambda sub: at[sub])

    return Pending(finish, shape, takes_bias=True)


def matmul(reader: Reader, call: Call) -> Value:
    """Read a fully connected layer, flattening its input to (1, C) if necessary."""
    source = reader.real(reader.value_of(call.args[0]), "first operand")
    weight = _weight(reader, call.args[1], (1, 0))
    shape, result = source.activation.shape, shape_of(call)
    if math.prod(shape[:-1]) != 1:
        raise reader.unsupported(f"an input of shape {shape}", "only one row is supported")
    where, scales = reader.where, _channel_scales(reader, weight)
    at = [reader.position(sub) for sub in range(3)]

    def finish(step: Quantization, clip: Pair, bias: Constant | None) -> Applied:
        vector = source.activation
        if len(shape) != 2:
            flat = (1, shape[-1])
            vector = Activation(flat, Applied(at[0], where, (vector,), Reshape(flat)))
        summands = _bias(bias, source.step, scales, result, len(result) - 1, where)
        product = _product(weight, summands, scales, (source.step, step), clip, where)
        dense = product.dense(vector, at[1])
        if len(result) == 2:
            return dense
        rows = Activation((1, result[-1]), dense)
        return Applied(at[2], where, (rows,), Reshape(result))

    return Pending(finish, result, takes_bias=True)


def _batch_of_one(reader: Reader, shape: tuple[int, ...]) -> None:
    if shape[0] != 1:
        raise reader.unsupported(f"a batch of {shape[0]}", "only a batch of 1 is supported")


def _weight(reader: Reader, expr: Expr, axes: tuple[int, ...]) -> Constant:
    value = reader.value_of(expr)
    if not isinstance(value, Constant):
        raise reader.unsupported("its weights are computed at run time", "make them constant")
    if value.scale is None or value.data.dtype != np.int8:
        raise reader.unsupported(
            f"its weights are {value.data.dtype}, not dequantized int8",
            "quantize the model fully to int8",
        )
    if value.data.ndim != len(axes):
        raise reader.unsupported(f"weights of shape {value.data.shape}")
    data = np.asarray(value.data.transpose(axes), order="C")
    return Constant(data, value.scale.transpose(axes))


def _bias(
    bias: Constant | None,
    step: Quantization,
    scales: Array,
    shape: tuple[int, ...],
    axis: int,
    where: str,
) -> Array:
    """Return the bias per output channel in steps of s_in * s_w, int32.

    Args:
        bias: constant added to the product; ``None`` for none.
        step: quantization of the input.
        scales: scales of the weights, one or one per channel.
        shape: shape of the product.
        axis: channel axis of the product.
        where: description of the place, for messages.
    """
    channels = shape[axis]
    if bias is None:
        return np.zeros(channels, "int32")
    own = (1,) * (len(shape) - bias.data.ndim) + bias.data.shape
    if len(own) != len(shape) or any(
        size not in (1, channels if at == axis else 1) for at, size in enumerate(own)
    ):
        raise UnsupportedError(
            f"a bias of shape {bias.data.shape} for a product of shape {shape}",
            where=where,
            hint="give one value per output channel",
        )
    data = np.broadcast_to(bias.data.reshape(-1), (channels,)).astype("float64")
    product = np.float64(step.scale) * scales.astype("float64")
    if bias.scale is None:
        return _rounded(data / product, where)
    given = np.broadcast_to(bias.scale.reshape(-1), (channels,)).astype("float64")
    if np.all(np.abs(given - product) <= BIAS_TOLERANCE * product):
        return _rounded(data, where)
    return _rounded(data * given / product, where)


def _rounded(values: Array, where: str) -> Array:
    rounded = np.rint(values)
    if not np.all(np.isfinite(rounded)) or np.abs(rounded).max(initial=0) > 2**31 - 1:
        raise UnsupportedError("a bias that does not fit int32", where=where)
    return rounded.astype("int32")


def _channel_scales(reader: Reader, weight: Constant) -> Array:
    """Return one scale, or one per output channel (axis 0)."""
    assert weight.scale is not None
    rows = weight.scale.reshape(weight.scale.shape[0], -1)
    if not np.all(rows == rows[:, :1]):
        raise reader.unsupported(
            "weights with scales along an axis other than the output channels",
            "quantize per tensor or per output channel",
        )
    if not np.all(rows > 0) or not np.all(np.isfinite(rows)):
        raise reader.unsupported("a weight scale that is not positive and finite")
    scales = rows[:, 0]
    return scales[:1] if np.all(scales == scales[0]) else scales


def _product(
    weight: Constant,
    bias: Array,
    scales: Array,
    steps: tuple[Quantization, Quantization],
    clip: Pair,
    where: str,
) -> QuantizedProduct:
    first, last = steps
    return QuantizedProduct(
        weight=weight.data,
        bias=bias,
        ratios=tuple(first.scale * float(scale) / last.scale for scale in scales),
        zero_points=(first.zero_point, last.zero_point),
        clip=clip,
        where=where,
    )
