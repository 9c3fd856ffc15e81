"""Drawing 8-bit layers whose outputs provably fit the 7 bits that the analog core reads.

The digital core can only clip to 8 bits, so the sums themselves must stay small: their bound
assumes the worst value of every input.  Weights are drawn such that typical sums are not far below
it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.registry import scheme_of
from byoc_dory.soc.schemes import TernaryScheme

Range: TypeAlias = tuple[int, int]


@cache
def array() -> TernaryScheme:
    """The in-memory array that ternary layers are drawn for: the first one of a known SoC."""
    return scheme_of(TernaryScheme)


# With more inputs than this, typical sums would be far below their bound; the rest get weight 0
# (only the autoencoder's 640 inputs are more).
_INPUTS = 48


def proven(
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
