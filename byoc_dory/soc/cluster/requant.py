"""Requantizations as the cluster's kernels take them, and the numbers that cycles depend on.

Cycles on the cores, and on engines beside them, depend on little besides a layer's sizes.

Transformers have hundreds of products of few sizes: they would all be tiled anew if their weights
were part of the key under which tiles are shared.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from functools import lru_cache

import numpy as np

from byoc_dory.layers import Add, Combination, Layer, Matmul, MulShift, Rows, Shift, Weighted
from byoc_dory.layers.layer import sizes_of, value_of
from byoc_dory.layers.rowwise import AffineNorm, LayerNorm, RmsNorm

_INT32_MAX = 2**31 - 1

HALF = MulShift((1,), (1,), (0,))
"""Of which kernels for SIMD compute four sums of two operands at once, and need no table."""


def mul_shift(layer: Layer) -> MulShift | None:
    """The layer's requantization as multiplication, addition and shift; None if it is not one."""
    if isinstance(layer.requant, Shift):
        return MulShift((1,), (layer.requant.shift,), (0,))
    return layer.requant if isinstance(layer.requant, MulShift) else None


@lru_cache(maxsize=64)  # called for every tile size that is considered
def leaves_32_bits(layer: Layer, requant: MulShift) -> bool:
    """Whether ``acc * mul + add`` may exceed 32 bits for some input."""
    low, high = layer.input_range
    unsigned = any(tensor.dtype == "uint8" for tensor in layer.inputs)
    largest = 255 if unsigned else max(-low, high)
    if isinstance(layer, Weighted):
        bias = 0 if layer.bias is None else np.abs(layer.bias.astype(np.int64))
        weights = np.abs(layer.weight.astype(np.int64)).reshape(layer.K, -1).sum(1)
        sums = weights * largest + bias
    elif isinstance(layer, Matmul):
        sums = np.full(1, layer.C * largest * 128, np.int64)
    elif isinstance(layer, Combination) and layer.function == "multiply":
        sums = np.full(1, 128 * 128, np.int64)
    else:
        sums = np.full(1, len(layer.inputs) * largest, np.int64)
    mul = np.abs(np.asarray(requant.mul, np.int64))
    add = np.abs(np.asarray(requant.add, np.int64))
    return bool((sums * mul + add > _INT32_MAX).any())


def norm_leaves_32_bits(layer: Rows) -> bool:
    """Whether the values that a norm shifts may exceed 32 bits for some input."""
    function = layer.function
    if not isinstance(function, AffineNorm | LayerNorm):
        return False
    weight, bias = (np.abs(part.astype(np.int64)) for part in (function.weight, function.bias))
    # Bytes, or their distances from a mean.
    worst = 255 * weight + bias
    factor = abs(function.mul) if isinstance(function, AffineNorm) else 1
    return bool((worst * factor > _INT32_MAX).any())


class Division(Enum):
    """How a norm divides by its rows' deviations; kernels have functions for each.

    Attributes:
        SHORT: by a reciprocal of 31 bits, which is exact for weights of 16 bits.
        LONG: by one of 32 bits behind its leading one, exact for weights of 23 bits.
        SLOW: element by element.
    """

    SHORT = "short"
    LONG = "long"
    SLOW = "slow"


@lru_cache(maxsize=64)  # called for every tile size that is considered
def division_of(layer: Rows) -> Division | None:
    """Return how a norm divides; None for functions that do not."""
    function = layer.function
    if not isinstance(function, LayerNorm | RmsNorm):
        return None
    weight = function.weight.astype(np.int64)
    bits = int(np.bitwise_or.reduce(weight ^ weight >> 31, axis=None)).bit_length()
    if bits > 22 or norm_leaves_32_bits(layer):
        return Division.SLOW
    return Division.SHORT if bits < 16 else Division.LONG


def numbers_that_count(layer: Layer) -> Hashable:
    """Return a key that is equal for layers with equal cycles; of most layers, everything.

    Products and sums read how results are scaled, and not by how much.
    """
    requant = mul_shift(layer)
    if requant is None or not isinstance(layer, Weighted | Matmul | Add):
        return value_of(layer)
    scales = tuple(map(len, (requant.mul, requant.shift, requant.add)))
    bias = isinstance(layer, Weighted) and layer.bias is not None
    wide = leaves_32_bits(layer, requant)
    return (sizes_of(layer), layer.clip, scales, bias, wide, requant == HALF)
