"""Operators on shapes, constants and windows, which keep scale and zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.frontend.operators import Activation, Applied, Pads, Pair, Quantization
from htvm.frontend.qdq.reader import INT8, Constant, Pending, Real, Value, Wide, pads, pair
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.average_pool import AveragePool
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call

    from htvm.frontend.qdq.reader import Reader

__all__ = [
    "astype",
    "avg_pool2d",
    "max_pool2d",
    "multiply",
    "pad",
    "permute_dims",
    "reshape",
]


def reshape(reader: Reader, call: Call) -> Value:
    """Read a change of shape, of a constant or an activation."""
    value = reader.value_of(call.args[0])
    shape = shape_of(call)
    if isinstance(value, Constant):
        scale = None if value.scale is None else value.scale.reshape(shape)
        return Constant(value.data.reshape(shape), scale)
    if isinstance(value, Activation) and value.shape == shape:
        return value
    at, where = reader.position(), reader.where
    return reader.pass_on(value, lambda source: Applied(at, where, (source,), Reshape(shape)), call)


def permute_dims(reader: Reader, call: Call) -> Value:
    """Read a transposed constant."""
    value = reader.value_of(call.args[0])
    if not isinstance(value, Constant):
        raise reader.unsupported("a transposed activation")
    axes = None if call.attrs.axes is None else [int(axis) for axis in call.attrs.axes]
    scale = None if value.scale is None else value.scale.transpose(axes)
    return Constant(value.data.transpose(axes), scale)


def multiply(reader: Reader, call: Call) -> Value:
    """Read a product of constants, such as the scale of a bias."""
    first, second = (reader.value_of(arg) for arg in call.args)
    plain = (isinstance(item, Constant) and item.scale is None for item in (first, second))
    if not all(plain):
        raise reader.unsupported("a product of activations")
    return Constant(first.data * second.data)


def pad(reader: Reader, call: Call) -> Value:
    """Read a padding of two spatial axes with a constant."""
    value = reader.value_of(call.args[0])
    widths = [int(width) for width in call.attrs.pad_width]
    spatial = {"NHWC": slice(2, 6), "NCHW": slice(4, 8)}
    layout = next(
        (name for name, part in spatial.items() if sum(widths) == sum(widths[part])), None
    )
    if len(widths) != 8 or layout is None or str(call.attrs.pad_mode) != "constant":
        raise reader.unsupported(f"a padding of {widths} in mode {call.attrs.pad_mode}")
    top, bottom, left, right = widths[spatial[layout]]
    fill = float(call.attrs.pad_value)
    if isinstance(value, Real):
        fill = value.step.zero_point + float(np.rint(fill / value.step.scale))
    if not fill.is_integer():  # nor an infinite one
        raise reader.unsupported(f"a padding with {fill}")
    number = min(max(int(fill), INT8[0]), INT8[1])
    at, where, padding = reader.position(), reader.where, (top, left, bottom, right)
    return reader.pass_on(
        value, lambda source: Applied(at, where, (source,), Pad(number, padding, layout)), call
    )


def max_pool2d(reader: Reader, call: Call) -> Value:
    """Read a maximum, which commutes with dequantization."""
    kernel, strides, padding, layout = _window(reader, call)
    at, where = reader.position(), reader.where
    return reader.pass_on(
        reader.value_of(call.args[0]),
        lambda source: Applied(at, where, (source,), MaxPool(kernel, strides, padding, layout)),
        call,
    )


def avg_pool2d(reader: Reader, call: Call) -> Value:
    """Read an average, of a float view or of an int8 tensor cast to int32."""
    value = reader.value_of(call.args[0])
    kernel, strides, padding, layout = _window(reader, call)
    if call.attrs.count_include_pad and any(padding):
        raise reader.unsupported("an average that counts its padding")
    at, where, shape = reader.position(), reader.where, shape_of(call)

    def make(source: Activation, clip: Pair) -> Applied:
        return Applied(at, where, (source,), AveragePool(kernel, strides, padding, clip, layout))

    if isinstance(value, Wide) and value.pool is None:
        return Wide(value.activation, make(value.activation, INT8))
    source = reader.real(value, "input")

    def finish(step: Quantization, clip: Pair, _: Constant | None) -> Applied:
        if step != source.step:
            raise UnsupportedError(
                f"an average from {source.step} to {step}",
                where=where,
                hint="give input and output one scale and zero point",
            )
        return make(source.activation, clip)

    return Pending(finish, shape, takes_bias=False)


def _window(reader: Reader, call: Call) -> tuple[Pair, Pair, Pads, str]:
    attrs = call.attrs
    if pair(attrs.dilation) != (1, 1) or attrs.ceil_mode:
        raise reader.unsupported("a pool with dilation or ceil_mode")
    layout = str(attrs.layout)
    if layout not in ("NHWC", "NCHW") or str(attrs.out_layout) not in ("", layout):
        raise reader.unsupported(f"layouts {layout} and {attrs.out_layout}")
    return pair(attrs.pool_size), pair(attrs.strides), pads(attrs.padding), layout


def astype(reader: Reader, call: Call) -> Value:
    """Read a cast to int32 before an average pool, or back to int8 after it."""
    value, dtype = reader.value_of(call.args[0]), str(call.attrs.dtype)
    if isinstance(value, Constant):
        if value.scale is None:
            return Constant(value.data.astype(dtype))
    elif isinstance(value, Activation) and dtype == "int32":
        return Wide(value)
    elif isinstance(value, Wide) and value.pool is not None and dtype == "int8":
        step = reader.steps.get(value.activation)
        shape = shape_of(call)
        return reader.activation(value.pool, shape, step)
    raise reader.unsupported(f"a cast to {dtype}")
