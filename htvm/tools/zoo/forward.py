"""Integer operators in numpy, as far as they are needed to choose the zoo's shifts.

Activations are int64 arrays ``[n, C, y, x]`` or ``[n, C]``.  Products are summed in float64, which
is exact: every partial sum is far below 2**53.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.layers.rowwise import ItaSoftmax

Pad = tuple[int, int, int, int]


def conv2d(x: Array, weight: Array, stride: int, pad: Pad, depthwise: bool) -> Array:
    """Return accumulators ``[n, K, oy, ox]`` of ``x`` with ``weight`` ``[K, C or 1, fy, fx]``.

    Args:
        x: input ``[n, C, y, x]``.
        weight: weights ``[K, C, fy, fx]``, ``[K, 1, fy, fx]`` if depthwise.
        stride: stride along both axes.
        pad: zeros at (top, left, bottom, right).
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
    """Return accumulators ``[n, K]`` of ``x`` ``[n, C]`` with ``weight`` ``[K, C]``."""
    return matmul(x, weight.T)


def matmul(a: Array, b: Array) -> Array:
    """Return products of matrices, ``[..., M, C]`` with ``[..., C, K]``."""
    largest = int(np.abs(a).max(initial=0)) * int(np.abs(b.astype("int64")).max(initial=0))
    # float32 adds integers up to 2**24 exactly, and does so twice as fast.
    kind = "float32" if largest * a.shape[-1] <= 1 << 24 else "float64"
    return (a.astype(kind) @ b.astype(kind)).astype("int64")


def ita_softmax(x: Array, parameters: ItaSoftmax) -> Array:
    """Return the accelerator's softmax of int8 rows ``[..., n]``; see `ItaSoftmax`."""

    def steps(distance: Array) -> Array:
        bits = parameters.step_bits
        return np.minimum((distance + ((1 << bits) >> 1)) >> bits, 31)

    width = parameters.group or x.shape[-1]
    largest = np.full((*x.shape[:-1], 1), -128, "int64")
    total = np.zeros_like(largest)
    for start in range(0, x.shape[-1], width):
        group = x[..., start : start + width]
        raised = np.maximum(largest, group.max(axis=-1, keepdims=True))
        added = (256 >> steps(raised - group)).sum(axis=-1, keepdims=True)
        total, largest = (total >> steps(raised - largest)) + added, raised
    return (parameters.numerator // total) >> steps(largest - x)


def average_pool(x: Array) -> Array:
    """Return the mean over y and x, rounded half away from zero: ``[n, C, 1, 1]``."""
    count = x.shape[2] * x.shape[3]
    total = x.sum(axis=(2, 3), keepdims=True)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def requantize(acc: Array, shift: int, clip: tuple[int, int]) -> Array:
    """Return ``clip(acc >> shift)``: an arithmetic shift, which floors."""
    return np.clip(acc >> shift, *clip)
