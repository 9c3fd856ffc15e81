"""Integer forward passes over a batch, fast enough to calibrate with.

Everything is exact integer arithmetic.  Convolutions go through a matrix product in floating
point whose partial sums provably stay integers below 2**24 (float32) or 2**53 (float64), so the
result depends neither on the library behind numpy nor on its number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.quantization.graph import (
    LINEAR,
    AnalogRequant,
    Array,
    FloatAdd,
    FloatScale,
    MulShift,
    Net,
    Operator,
    Shift,
    TfliteAdd,
    TfliteScale,
)

__all__ = [
    "accumulate",
    "columns",
    "converted",
    "forward",
    "pass_sums",
    "requantize",
    "run_operator",
    "tflite_scale",
    "windows",
]


# ------------------------------------------------------------------------------ linear operators


def windows(x: Array, op: Operator) -> Array:
    """A view of the operands of each output position.

    Args:
        x: ``[N, y, x, C]``.
        op: a convolution, its padding included.

    Returns:
        ``[N, oy, ox, C, fy, fx]``.
    """
    (fy, fx), (dy, dx) = op.weights().shape[2:], op.dilation
    span = (fy - 1) * dy + 1, (fx - 1) * dx + 1
    return _strided(x, op, span, op.pad_value)[..., ::dy, ::dx]


def _strided(x: Array, op: Operator, kernel: tuple[int, int], value: int) -> Array:
    if op.padded:
        top, left, bottom, right = op.pad
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        x = np.pad(x, border, constant_values=value)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))
    return np.asarray(view[:, :: op.stride[0], :: op.stride[1]])


def columns(x: Array, op: Operator) -> Array:
    """The operands of each output position as rows of a matrix.

    Args:
        x: ``[N, y, x, C]`` or ``[N, C]``.
        op: a convolution of one group, or a dense operator.

    Returns:
        ``[positions, C * fy * fx]``, columns in the order of ``weight.reshape(K, -1)``.
    """
    if x.ndim == 2:
        return x
    view = windows(x, op)
    return np.ascontiguousarray(view).reshape(int(np.prod(view.shape[:3])), -1)


def accumulate(x: Array, op: Operator) -> Array:
    """The accumulators before the bias.

    Args:
        x: int8 ``[N, y, x, C]`` or ``[N, C]``.
        op: a linear operator.

    Returns:
        Integers in a floating-point array ``[N, oy, ox, K]``, or ``[N, K]`` of a dense operator.
    """
    weight = op.weights()
    bound = 128 * np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(axis=1).max()
    dtype = np.float32 if bound < 1 << 24 else np.float64
    if op.kind == "depthwise":
        view, taps = windows(x.astype(dtype), op), weight[:, 0].astype(dtype)
        out = np.zeros(view.shape[:4], dtype)
        for i, j in np.ndindex(*taps.shape[1:]):
            out += view[..., i, j] * taps[:, i, j]
        return out
    matrix = weight.reshape(len(weight), -1).astype(dtype).T
    return np.asarray(columns(x.astype(dtype), op) @ matrix).reshape(len(x), *op.shape)


def pass_sums(x: Array, op: Operator, rows: int) -> list[Array]:
    """The sums of each pass of a ternary layer over an array of so many rows.

    A pass takes as many whole input channels as the rows hold.

    Args:
        x: int8 ``[N, y, x, C]`` or ``[N, C]``.
        op: the layer, its weights ternary.
        rows: of the array.
    """
    weight = op.weights()
    channels = rows // int(np.prod(weight.shape[2:]))
    return [
        accumulate(
            x[..., start : start + channels],
            replace(op, weight=weight[:, start : start + channels]),
        ).astype(np.int64)
        for start in range(0, weight.shape[1], channels)
    ]


def converted(sums: Sequence[Array], gain: int, limits: tuple[int, int]) -> Array:
    """What the converters make of the sums of all passes, summed."""
    return np.asarray(sum(np.clip(part // gain, *limits) for part in sums))


# ------------------------------------------------------------------------------ requantization


def requantize(acc: Array, op: Operator) -> Array:
    """int64 accumulators, bias included, to the clipped int8 output of ``op``.

    Of a ternary layer, what its converters made of them.
    """
    requant = op.requant
    if isinstance(requant, Shift):
        out = acc >> requant.shift
    elif isinstance(requant, MulShift | AnalogRequant):
        mul, add, shift = (np.array(v) for v in (requant.mul, requant.add, requant.shift))
        out = (acc * mul + add) >> shift
    elif isinstance(requant, TfliteScale):
        out = tflite_scale(acc, requant.multiplier, requant.shift) + requant.zero_point
    elif isinstance(requant, FloatScale):
        out = np.rint(acc.astype(np.float32) * requant.scale) + requant.zero_point
    else:
        raise UnsupportedError("no requantization", where=f"operator '{op.name}'")
    return np.clip(out, *op.clip).astype(np.int8)


def tflite_scale(value: Array, multiplier: Any, shift: Any) -> Array:
    """TFLite's fixed-point multiplication with its double rounding, on int64."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    high = ((value << left) * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, np.left_shift(1, np.maximum(right - 1, 0)), 0)
    return np.asarray((high + half - ((high < 0) & (right > 0))) >> right)


# ------------------------------------------------------------------------------ operators


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
        return np.asarray(_strided(x, op, op.pool, -128).max(axis=(-2, -1)))
    if op.kind == "pad":
        top, left, bottom, right = op.pad
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        return np.pad(x, border, constant_values=op.pad_value)
    if op.kind == "gather":
        return _gather(inputs, op)
    if op.kind == "kept":
        from htvm.quantization.kept import run_kept

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
    total = _strided(x.astype(np.int64), op, op.pool, 0).sum(axis=(-2, -1))
    count = _strided(np.ones_like(x[:1], np.int64), op, op.pool, 0).sum(axis=(-2, -1))
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
