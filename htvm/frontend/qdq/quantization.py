"""Quantize and dequantize, where operators begin and end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Pair, Quantization
from htvm.frontend.qdq.reader import INT8, Constant, Pending, Real, Value
from htvm.frontend.scales import bound, converted

if TYPE_CHECKING:
    from tvm.relax import Call

    from htvm.frontend.qdq.reader import Reader

__all__ = ["dequantize", "identity", "quantize"]


def dequantize(reader: Reader, call: Call) -> Value:
    """Read a dequantization: int8 tensor -> float view; integer constant -> scaled constant."""
    data = reader.value_of(call.args[0])
    scales, zeros = _scales(reader, call)
    if isinstance(data, Constant):
        if zeros.any():
            raise reader.unsupported(
                f"weights with zero point {zeros.reshape(-1)[0]}", "quantize them symmetrically"
            )
        if scales.size > 1:
            axis = int(call.attrs.axis) % data.data.ndim
            scales = scales.reshape((-1,) + (1,) * (data.data.ndim - 1 - axis))
        return Constant(data.data, np.broadcast_to(scales, data.data.shape))
    if not isinstance(data, Activation):
        raise reader.unsupported("it dequantizes something that is not int8")
    step = _step(reader, scales, zeros)
    reader.learn(data, step)
    return Real(data, step)


def quantize(reader: Reader, call: Call) -> Value:
    """Read a quantization, which ends an operator."""
    value = reader.value_of(call.args[0])
    step = _step(reader, *_scales(reader, call))
    if str(call.attrs.out_dtype) != "int8":
        raise reader.unsupported(f"activations of type {call.attrs.out_dtype}", "use int8")
    if isinstance(value, Real):
        if value.step == step:
            return value.activation
        value = identity(reader, value)
    if not isinstance(value, Pending):
        raise reader.unsupported("it quantizes something that no operator computed")
    clip = (bound(value.low, step, INT8[0]), bound(value.high, step, INT8[1]))
    if clip[0] > clip[1]:
        raise reader.unsupported(f"a clip to [{value.low}, {value.high}] leaves nothing")
    return reader.activation(value.finish(step, clip, value.bias), value.shape, step)


def identity(reader: Reader, source: Real) -> Pending:
    position, where = reader.position(), reader.where

    def finish(step: Quantization, clip: Pair, _: Constant | None) -> Applied:
        convert = converted(source.step, step, clip)
        return Applied(position, where, (source.activation,), convert)

    return Pending(finish, source.activation.shape, takes_bias=False)


def _scales(reader: Reader, call: Call) -> tuple[Array, Array]:
    scales = reader.constant(call.args[1], "scale").astype("float32")
    return scales, reader.constant(call.args[2], "zero point").astype("int64")


def _step(reader: Reader, scales: Array, zeros: Array) -> Quantization:
    if scales.size != 1 or zeros.size != 1:
        raise reader.unsupported(
            f"an activation with {scales.size} scales", "quantize activations per tensor"
        )
    scale, zero_point = float(scales.reshape(-1)[0]), int(zeros.reshape(-1)[0])
    if not (scale > 0 and math.isfinite(scale)) or not -128 <= zero_point <= 127:
        raise reader.unsupported(f"scale {scale} with zero point {zero_point}")
    return Quantization(scale, zero_point)
