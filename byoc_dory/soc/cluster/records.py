"""Constants and scratch memory of the kernels for cores with SIMD.

As in ``runtime_c/cluster/simd/cluster_records.h``; kernels of products read quads
(``runtime_c/simd/htvm_quads.h``), depthwise convolutions a record for each channel
(``runtime_c/simd/htvm_channels.h``).
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Array

QUAD = 4
"""Channels of a record of products."""


def _words(size: int) -> int:
    return -(-size // 4)


def quad_bytes(window: int) -> int:
    """Return the bytes of four channels whose windows have ``window`` bytes each."""
    return 16 * _words(window) + 64


def pack_quads(
    weights: Array, bias: Array, mul: Array, add: Array, shift: Array, *, wide: bool = False
) -> Array:
    """Return the records of all channels, four by four; uint8.

    Args:
        weights: [K][bytes of a window], int8, in the order of a window's bytes in memory.
        bias, mul, add, shift: one entry for each channel.
        wide: requantization leaves 32 bits, so that biases cannot be a part of ``add``.
    """
    k, window = weights.shape
    quads, words = -(-k // QUAD), _words(window)
    whole = np.zeros((quads * QUAD, 4 * words), np.int8)
    whole[:k, :window] = weights
    blocks = whole.reshape(quads, QUAD, words, 4).transpose(0, 2, 1, 3)
    factors = np.zeros((quads * QUAD, 3), "<i4")
    rest = np.zeros(quads * QUAD, "<i4")
    factors[:k, 0], factors[:k, 2] = mul, shift
    factors[:k, 1] = add if wide else _folded(bias, mul, add)
    rest[:k] = bias if wide else 0
    parts = (np.asarray(blocks, order="C"), factors, rest)
    images = [part.view(np.uint8).reshape(quads, -1) for part in parts]
    return np.concatenate(images, axis=1).reshape(-1)


def _folded(bias: Array, mul: Array, add: Array) -> Array:
    """Return ``bias * mul + add``, wrapped around at 32 bits as the kernels' sums are."""
    product = np.asarray(bias, np.int64) * np.asarray(mul, np.int64) + np.asarray(add, np.int64)
    return product.astype(np.uint64).astype(np.uint32).view(np.int32)


def channel_bytes(fy: int, fx: int) -> int:
    """Return the bytes of a channel of a depthwise convolution."""
    return 16 + 4 * fx * _words(fy)


def pack_channels(
    weights: Array,
    bias: Array,
    mul: Array,
    add: Array,
    shift: Array,
    *,
    unsigned: bool = False,
    wide: bool = False,
) -> Array:
    """Return the records of all channels of a depthwise convolution; uint8.

    Args:
        weights: [C][fy][fx], int8.
        bias, mul, add, shift: one entry for each channel.
        unsigned: data are uint8.
        wide: requantization leaves 32 bits, so that biases cannot be a part of ``add``.
    """
    c, fy, fx = weights.shape
    columns = np.zeros((c, fx, 4 * _words(fy)), np.int8)
    columns[:, :, :fy] = weights.transpose(0, 2, 1)
    bias = np.asarray(bias, np.int64)
    if unsigned:  # the kernels compute with data - 128
        bias = bias + 128 * weights.astype(np.int64).sum((1, 2))
    numbers = np.zeros((c, 4), "<i4")
    numbers[:, 0] = bias if wide else 0
    numbers[:, 1], numbers[:, 3] = mul, shift
    numbers[:, 2] = add if wide else _folded(bias, mul, add)
    parts = [columns.reshape(c, -1).view(np.uint8), numbers.view(np.uint8)]
    return np.concatenate(parts, axis=1).reshape(-1)


def conv2d_scratch(window: int, cores: int, windows: int = 0) -> int:
    """Return the bytes of scratch memory for windows of ``window`` bytes.

    Args:
        window: bytes of a window.
        cores: number of cores that work.
        windows: how many windows a core may copy at a time; 0: as many as the kernel prefers.
    """
    words = _words(window)
    preferred = 16 if words <= 16 else 8 if words <= 32 else 4
    return cores * (4 * (windows or preferred) * words + 16)


def matmul_scratch(c: int, cores: int) -> int:
    """Return the bytes of scratch memory of products of matrices."""
    return cores * quad_bytes(c)


def depthwise_scratch(fx: int, ox: int, stride: int, cores: int) -> int:
    """Return the bytes of scratch memory of depthwise convolutions."""
    return cores * (32 * ((ox - 1) * stride + fx) + 64 * ox)


def attention_scratch(positions: int, cores: int) -> int:
    """Return the bytes that attention needs: a byte for each position, and a table, per core."""
    return cores * (256 + 4 * _words(positions))
