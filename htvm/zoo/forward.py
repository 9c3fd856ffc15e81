"""Integer operators in numpy, as far as choosing the zoo's shifts needs them.

Activations are int64 arrays ``[n, C, y, x]`` or ``[n, C]``.  Products are summed in float64, which
is exact: every partial sum is far below 2**53.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layer import Array

__all__ = ["average_pool", "conv2d", "dense", "requantize"]

Pad = tuple[int, int, int, int]


def conv2d(x: Array, weight: Array, stride: int, pad: Pad, depthwise: bool) -> Array:
    """Accumulators ``[n, K, oy, ox]`` of ``x`` with ``weight`` ``[K, C or 1, fy, fx]``.

    Args:
        x: ``[n, C, y, x]``.
        weight: ``[K, C, fy, fx]``, ``[K, 1, fy, fx]`` if depthwise.
        stride: of both axes.
        pad: zeros (top, left, bottom, right).
        depthwise: each output channel sees the input channel of the same index only.
    """
    top, left, bottom, right = pad
    fy, fx = weight.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right))).astype("float64")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (fy, fx), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    kernel = weight.astype("float64")
    if depthwise:
        acc = np.einsum("ncyxij,cij->ncyx", windows, kernel[:, 0])
    else:
        acc = np.tensordot(windows, kernel, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    return acc.astype("int64")


def dense(x: Array, weight: Array) -> Array:
    """Accumulators ``[n, K]`` of ``x`` ``[n, C]`` with ``weight`` ``[K, C]``."""
    return (x.astype("float64") @ weight.astype("float64").T).astype("int64")


def average_pool(x: Array) -> Array:
    """Mean over y and x, half away from zero: ``[n, C, 1, 1]``."""
    count = x.shape[2] * x.shape[3]
    total = x.sum(axis=(2, 3), keepdims=True)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def requantize(acc: Array, shift: int, clip: tuple[int, int]) -> Array:
    """``clip(acc >> shift)``: arithmetic shift, which floors."""
    return np.clip(acc >> shift, *clip)
