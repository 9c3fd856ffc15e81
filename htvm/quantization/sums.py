"""Sums of products and their requantization over a batch, in numpy.

Everything is exact integer arithmetic.  Convolutions go through a matrix product in floating
point whose partial sums provably stay integers below 2**24 (float32) or 2**53 (float64), so the
result depends neither on the library behind numpy nor on its number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.quantization.graph import (
    AnalogRequant,
    Array,
    FloatScale,
    MulShift,
    Operator,
    Shift,
    TfliteScale,
)

__all__ = [
    "accumulate",
    "columns",
    "converted",
    "pass_sums",
    "pooled",
    "requantize",
    "tflite_scale",
    "windows",
]


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
    return pooled(x, op, span, op.pad_value)[..., ::dy, ::dx]


def pooled(x: Array, op: Operator, kernel: tuple[int, int], value: int) -> Array:
    """Return a view of the windows of an operator, dilation aside.

    Args:
        x: ``[N, y, x, C]``.
        op: its padding and strides.
        kernel: rows and columns of a window.
        value: of the padding.

    Returns:
        ``[N, oy, ox, C, rows, columns]``.
    """
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
