"""Integer operators in numpy, as far as they are needed to choose the zoo's shifts.

Activations are int64 arrays ``[n, C, y, x]`` or ``[n, C]``.  Products are summed in float64, which
is exact: every partial sum is far below 2**53.

8-bit layers before the analog core have outputs that provably fit the 7 bits that it reads.  The
digital core can only clip to 8 bits, so the sums themselves must stay small: their bound assumes
the worst value of every input.  Weights are drawn such that typical sums are not far below it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.layers.rowwise import ItaSoftmax
from byoc_dory.soc.registry import scheme_of
from byoc_dory.soc.schemes import TernaryScheme

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


Range: TypeAlias = tuple[int, int]


@cache
def array() -> TernaryScheme:
    """The in-memory array that ternary layers are drawn for: the first one of a known SoC."""
    return scheme_of(TernaryScheme)


# With more inputs than this, typical sums would be far below their bound; the rest get weight 0
# (only the autoencoder's 640 inputs are more).
_INPUTS = 48


def proven_requant(
    weight: Array, bias: Array, inputs: Range, pad: tuple[int, ...], clip: Range
) -> tuple[int, Range]:
    """Return the smallest shift with which no input takes an output beyond 7 bits.

    Args:
        weight: weights ``[K, ...]``.
        bias: bias ``[K]``, without half a step for rounding.
        inputs: inclusive range of the inputs.
        pad: number of zeros on each side.
        clip: inclusive range of the output, as the layer clips it.

    Returns:
        The shift, and the range of the outputs.
    """
    low, high = inputs
    if any(pad):
        low, high = min(low, 0), max(high, 0)
    rows = weight.reshape(len(weight), -1).astype("int64")
    up, down = np.maximum(rows, 0).sum(axis=1), np.minimum(rows, 0).sum(axis=1)
    least = int((bias + up * low + down * high).min())
    most = int((bias + up * high + down * low).max())
    return narrowing(least, most, clip, half=True)


def narrowing(least: int, most: int, clip: Range, *, half: bool = False) -> tuple[int, Range]:
    """Return the smallest shift that takes ``least..most`` to 7 bits, and the range of the result.

    Args:
        least, most: range of the sums.
        clip: inclusive range that the layer clips to.
        half: whether half a step is added before the shift.
    """
    low, high = array().activation_range
    shift = 0
    while True:
        more = (1 << shift) >> 1 if half else 0
        ends = [min(max((end + more) >> shift, clip[0]), clip[1]) for end in (least, most)]
        if low <= ends[0] and ends[1] <= high:
            return shift, (ends[0], ends[1])
        shift += 1


def thinned(weight: Array) -> Array:
    """Return weights ``[K, C]`` where each output reads only a few inputs, others in each row."""
    k, channels = weight.shape
    every = max(channels // _INPUTS, 1)
    kept = (np.arange(channels) + np.arange(k)[:, None]) % every == 0
    return np.where(kept, weight, 0).astype("int8")


def peaked(weight: Array) -> Array:
    """Depthwise weights ``[C, 1, fy, fx]`` with one dominant tap, another one per channel."""
    flat = weight.reshape(len(weight), -1) // 8
    rows = np.arange(len(flat))
    flat[rows, rows % flat.shape[1]] = 72
    return flat.reshape(weight.shape).astype("int8")


def passes(weight: Array) -> list[slice]:
    """Return the input channels of each pass over the analog array."""
    channels = array().rows // math.prod(weight.shape[2:])
    return [slice(start, start + channels) for start in range(0, weight.shape[1], channels)]
