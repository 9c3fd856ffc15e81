"""Parts of operators' definitions in numpy (`Op.compute`): requantizations, and windows on maps.

Requantizations are in exact integers; also the real numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_dory.layers import (
    AnalogRequant,
    Array,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
    TorchRequant,
)
from byoc_dory.layers.layer import out_size


def factors_of(requant: Requant) -> Array:
    """Return real factors from accumulator steps to output steps, ``[1]`` or ``[K]``."""
    match requant:
        case OnnxRequant():
            return np.ldexp(np.array(requant.multiplier, np.float64), -np.array(requant.shift))
        case TorchRequant():
            return np.ldexp(np.array(requant.multiplier, np.float64), -np.array(requant.shift))
        case TfliteRequant():
            return np.ldexp(np.array(requant.multiplier, np.float64), np.array(requant.shift) - 31)
        case MulShift():
            return np.ldexp(np.array(requant.mul, np.float64), -np.array(requant.shift))
        case Shift():
            return np.array([2.0**-requant.shift])
    raise AssertionError("the factor of an analog layer is not one of its sums")


def offset_of(requant: Requant) -> float | Array:
    """Return the mean addend of a requantization, in output steps.

    Flooring subtracts half a step; a `MulShift` has its own addend.
    """
    if isinstance(requant, MulShift):
        scale = np.ldexp(1.0, -np.array(requant.shift))
        return np.array(requant.add, np.float64) * scale - 0.5 + scale / 2
    if isinstance(requant, Shift):
        return float(-0.5 + 2.0 ** -(requant.shift + 1))
    return 0.0


def zero_point_of(requant: Requant) -> int | None:
    """Return the output's zero point; ``None`` if the requantization does not add it."""
    if isinstance(requant, TfliteRequant | OnnxRequant | TorchRequant):
        return requant.output_zero_point
    return None


def requantized(acc: Array, requant: Requant, clip: tuple[int, int], dtype: str = "int8") -> Array:
    """Return int64 accumulators, including the bias, clipped and in the type of the output.

    For a ternary layer, the accumulators are the summed results of its converters.
    """
    match requant:
        case Shift():
            out = acc >> requant.shift
        case MulShift() | AnalogRequant():
            mul, add, shift = (np.array(v) for v in (requant.mul, requant.add, requant.shift))
            out = (acc * mul + add) >> shift
        case TfliteRequant():
            parts = (np.array(requant.multiplier, np.int64), np.array(requant.shift, np.int64))
            out = tflite_scale(acc, *parts) + requant.output_zero_point
        case TorchRequant():
            numbers = (requant.multiplier, requant.addend, requant.shift)
            out = _nearest_even(acc, *(np.array(v, np.int64) for v in numbers))
            out = out + requant.output_zero_point
        case OnnxRequant():
            scale = factors_of(requant).astype(np.float32)
            out = np.rint(acc.astype(np.float32) * scale) + requant.output_zero_point
    return np.clip(out, *clip).astype(dtype)


def _nearest_even(acc: Array, multiplier: Array, addend: Array, shift: Array) -> Array:
    """Return torch's fixed-point product, rounded once, halves to even, on int64."""
    total = acc * multiplier + addend + np.left_shift(1, shift - 1)
    near = total >> shift
    tie = total & (np.left_shift(1, shift) - 1) == 0
    return np.asarray(near - (near & tie))


def tflite_scale(value: Array, multiplier: Any, shift: Any) -> Array:
    """Return TFLite's fixed-point product with its double rounding, on int64."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    high = ((value << left) * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, np.left_shift(1, np.maximum(right - 1, 0)), 0)
    return np.asarray((high + half - ((high < 0) & (right > 0))) >> right)


def converted(sums: Sequence[Array], gain: int, limits: tuple[int, int]) -> Array:
    """Return the converters' results for the sums of all passes, summed."""
    return np.asarray(sum(np.clip(part // gain, *limits) for part in sums))


def window_counts(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
) -> tuple[int, int]:
    """Return the number of windows (y, x) on maps of these sizes; 0 where none fits."""
    y, x = (
        out_size(
            sizes[axis], padding[axis] + padding[axis + 2], kernel[axis], strides[axis],
            dilation[axis],
        )
        for axis in (0, 1)
    )  # fmt: skip
    return y, x


def windows(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    value: int,
    dilation: tuple[int, int] = (1, 1),
) -> Array:
    """Return a view of the windows on maps.

    Args:
        x: ``[N, y, x, C]``.
        kernel: rows and columns of a window.
        strides: of windows.
        padding: (top, left, bottom, right).
        value: of the padding.
        dilation: distance (y, x) of the elements of a window.

    Returns:
        ``[N, oy, ox, C, rows, columns]``.
    """
    if any(padding):
        top, left, bottom, right = padding
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        x = np.pad(x, border, constant_values=value)
    (dy, dx), (rows, columns) = dilation, kernel
    span = (rows - 1) * dy + 1, (columns - 1) * dx + 1
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(1, 2))
    return np.asarray(view[:, :: strides[0], :: strides[1], :, ::dy, ::dx])
