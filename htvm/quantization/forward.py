"""Integer forward passes over a batch, fast enough to calibrate with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.quantization.graph import (
    LINEAR,
    AnalogRequant,
    Array,
    FloatAdd,
    Net,
    Operator,
    TfliteAdd,
)
from htvm.quantization.kept import run_kept
from htvm.quantization.sums import (
    accumulate,
    converted,
    pass_sums,
    pooled,
    requantize,
    tflite_scale,
)

__all__ = ["forward", "run_operator"]


def run_operator(op: Operator, inputs: Sequence[Array], *, channel_first: bool = False) -> Array:
    """The int8 output of one operator for a batch of its inputs.

    Raises:
        UnsupportedError: for an operator that has no place before the end of a network.
    """
    x = inputs[0]
    if isinstance(op.requant, AnalogRequant):
        sums = pass_sums(x, op, op.requant.rows)
        assert op.core is not None, op.name
        return requantize(converted(sums, op.requant.gain, op.core.adc_range), op)
    if op.kind in LINEAR:
        return requantize(accumulate(x, op).astype(np.int64) + op.biases(), op)
    if op.kind == "add":
        return _add(inputs, op)
    if op.kind == "convert":
        return requantize(x.astype(np.int64) + op.offset, op)
    if op.kind == "average_pool":
        return _average_pool(x, op)
    if op.kind == "max_pool":
        return np.asarray(pooled(x, op, op.pool, -128).max(axis=(-2, -1)))
    if op.kind == "pad":
        top, left, bottom, right = op.pad
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        return np.pad(x, border, constant_values=op.pad_value)
    if op.kind == "gather":
        return _gather(inputs, op)
    if op.kind == "kept":
        return run_kept(op, inputs, channel_first)
    if op.kind == "reshape":
        return _reshape(x, op, channel_first)
    raise UnsupportedError(f"cannot run '{op.kind}'", where=f"operator '{op.name}'")


def _add(inputs: Sequence[Array], op: Operator) -> Array:
    first, second = (x.astype(np.int64) for x in inputs)
    requant = op.requant
    if isinstance(requant, FloatAdd):
        a, b, out_zero = requant.zero_points
        terms = (first - a) * requant.scales[0], (second - b) * requant.scales[1]
        return np.clip(np.rint(terms[0] + terms[1] + out_zero), *op.clip).astype(np.int8)
    if not isinstance(requant, TfliteAdd):
        return requantize(first + second, op)
    mul, shift, zero = requant.multipliers, requant.shifts, requant.zero_points
    total = tflite_scale((first - zero[0]) << requant.left_shift, mul[0], shift[0])
    total = total + tflite_scale((second - zero[1]) << requant.left_shift, mul[1], shift[1])
    out = tflite_scale(total, mul[2], shift[2]) + zero[2]
    return np.clip(out, *op.clip).astype(np.int8)


def _average_pool(x: Array, op: Operator) -> Array:
    """Sum over count, rounded half away from zero; padding does not count."""
    total = pooled(x.astype(np.int64), op, op.pool, 0).sum(axis=(-2, -1))
    count = pooled(np.ones_like(x[:1], np.int64), op, op.pool, 0).sum(axis=(-2, -1))
    away = (np.abs(total) + count // 2) // count
    return np.clip(np.where(total < 0, -away, away), *op.clip).astype(np.int8)


def _gather(inputs: Sequence[Array], op: Operator) -> Array:
    assert op.index is not None
    flat = np.concatenate([x.reshape(len(x), -1) for x in inputs], axis=1)
    out = np.where(op.index < 0, np.int8(op.pad_value), flat[:, op.index])
    return out.reshape(len(out), *op.shape)


def _reshape(x: Array, op: Operator, channel_first: bool) -> Array:
    if channel_first and x.ndim == 4:
        x = np.moveaxis(x, -1, 1)
    if channel_first and len(op.shape) == 3:
        y, width, channels = op.shape
        return np.moveaxis(x.reshape(len(x), channels, y, width), 1, -1)
    return x.reshape(len(x), *op.shape)


def forward(net: Net, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of the network for a batch of inputs.

    Args:
        net: the network.  A softmax, and what follows it, is not computed.
        inputs: name -> int8 ``[N, y, x, C]`` or ``[N, C]``.

    Returns:
        name -> int8 array, of every tensor, the inputs included.
    """
    tensors = dict(inputs)
    for op in net.operators:
        if op.kind != "softmax" and all(name in tensors for name in op.inputs):
            values = [tensors[name] for name in op.inputs]
            tensors[op.name] = run_operator(op, values, channel_first=net.channel_first)
    return tensors
