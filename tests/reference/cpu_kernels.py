"""Integer operators of the host, in numpy.

An independent definition, written from what the operators mean; it shares no code with the product
and needs no TVM.
"""

from __future__ import annotations

import math

import numpy as np


def requantize_tflite(acc, multiplier, shift, zero_point, clip=(-128, 127)):
    """TFLite: a fixed-point product and a right shift, each rounded; channels are last."""
    scaled = acc.astype("int64") << np.maximum(shift, 0)
    high = (scaled * multiplier + (1 << 30)) >> 31
    down = np.maximum(-shift, 0).astype("int64")
    half = np.where(down > 0, 1 << np.maximum(down - 1, 0), 0)
    rounded = (high + half - ((high < 0) & (down > 0))) >> down
    return np.clip(rounded + zero_point, *clip).astype("int8")


def requantize_shift(acc, shift, clip=(-128, 127)):
    """DIANA: an arithmetic right shift, which floors."""
    return np.clip(acc.astype("int64") >> shift, *clip).astype("int8")


def requantize_mul_shift(acc, mul, add, shift, clip=(-128, 127)):
    """Multiply, add, shift; channels are last."""
    return np.clip((acc.astype("int64") * mul + add) >> shift, *clip).astype("int8")


def conv2d(x, weight, bias, stride, padding, pad_value=0, groups=1, dilation=1):
    """x (y, x, C), weight (K, C / groups, fy, fx): int64 accumulators (oy, ox, K)."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("int64"), ((top, bottom), (left, right), (0, 0)), constant_values=pad_value)
    k, c, fy, fx = weight.shape
    oy = (x.shape[0] - (fy - 1) * dilation - 1) // stride[0] + 1
    ox = (x.shape[1] - (fx - 1) * dilation - 1) // stride[1] + 1
    out = np.zeros((oy, ox, k), "int64")
    for channel in range(k):
        first = channel // (k // groups) * c
        for i in range(fy):
            for j in range(fx):
                rows = x[i * dilation :: stride[0], j * dilation :: stride[1], first : first + c]
                out[:, :, channel] += rows[:oy, :ox] @ weight[channel, :, i, j].astype("int64")
    return out + bias


def add_tflite(a, b, multipliers, shifts, zero_points, clip=(-128, 127)):
    """TFLite's sum: both operands to a common scale, the sum to the output's."""

    def scaled(value, index):
        value = (value * multipliers[index] + (1 << 30)) >> 31
        down = -shifts[index]
        return (value + (1 << (down - 1)) - (value < 0)) >> down if down else value

    first, second = (
        (x.astype("int64") - z) << 20 for x, z in zip((a, b), zero_points, strict=False)
    )
    total = scaled(first, 0) + scaled(second, 1)
    return np.clip(scaled(total, 2) + zero_points[2], *clip).astype("int8")


def average_pool(x, kernel, strides, padding=(0, 0, 0, 0)):
    """x (y, x, C); sum / count of the positions inside, half away from zero."""
    top, left, bottom, right = padding
    oy = (x.shape[0] + top + bottom - kernel[0]) // strides[0] + 1
    ox = (x.shape[1] + left + right - kernel[1]) // strides[1] + 1
    out = np.zeros((oy, ox, x.shape[2]), "int8")
    for i in range(oy):
        for j in range(ox):
            y, z = i * strides[0] - top, j * strides[1] - left
            window = x[max(y, 0) : y + kernel[0], max(z, 0) : z + kernel[1]].astype("int64")
            total, count = window.sum((0, 1)), window.shape[0] * window.shape[1]
            out[i, j] = np.sign(total) * ((np.abs(total) * 2 + count) // (2 * count))
    return out


def max_pool(x, kernel, strides):
    """x (y, x, C)."""
    oy, ox = ((x.shape[i] - kernel[i]) // strides[i] + 1 for i in (0, 1))
    out = np.zeros((oy, ox, x.shape[2]), "int8")
    for i in range(oy):
        for j in range(ox):
            y, z = i * strides[0], j * strides[1]
            out[i, j] = x[y : y + kernel[0], z : z + kernel[1]].max((0, 1))
    return out


def softmax_real(x, scale):
    """Softmax in floating point, for a comparison within a step or two of 1/256."""
    e = np.exp((x.astype("float64") - x.max()) * scale)
    return np.clip(np.rint(e / e.sum() * 256 - 128), -128, 127).astype("int8")


def fixed_point(real):
    """``real`` as (multiplier, shift): multiplier * 2**(shift - 31)."""
    mantissa, shift = math.frexp(real)
    return round(mantissa * 2**31), shift
