"""Weights as N-EUREKA reads them: words of 32 bytes that hold the weights' bits in planes.

The engine adds one offset to all weights of a job: stored are unsigned numbers ``weight - offset``,
where the offset is the smallest weight.  Bits of a word count from the lowest bit of its first
byte; those without a weight are zero.

=============  ================================  ================================
mode           words                             bit of a weight
=============  ================================  ================================
3x3            ``[K][ceil(C / 28)][bits]``       ``28 * tap + channel``
depthwise 3x3  ``[ceil(C / 28)][bits]``          ``28 * tap + channel``
1x1            ``[K][ceil(C / 32)]``             ``32 * (channel // 4) + 4 * plane + channel % 4``
=============  ================================  ================================

In 3x3 modes each word is one plane; channels count within their tile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka

# Channels of a 1x1 word whose bits of one plane are side by side.
_GROUP = 4


@dataclass(frozen=True)
class PackedWeights:
    """Weights for one job.

    Attributes:
        data: uint8 bytes.
        offset: value of the offset register.
        bits: bits of each weight.
    """

    data: Array
    offset: int
    bits: int


def smallest_bits(weights: Array, core: Neureka) -> int:
    """Return how many bits these integers need at least, after subtracting the smallest.

    Raises:
        ValueError: they need more than the engine has.
    """
    span = int(weights.max()) - int(weights.min())
    bits = max(span.bit_length(), core.min_weight_bits)
    if bits > core.max_weight_bits:
        raise ValueError(
            f"weights from {weights.min()} to {weights.max()} need {bits} bits; "
            f"N-EUREKA has at most {core.max_weight_bits}"
        )
    return bits


def packed_bytes(mode: Mode, outputs: int, inputs: int, bits: int, core: Neureka) -> int:
    """Return the bytes of packed weights.

    Args:
        mode: of the job.
        outputs: number of output channels.
        inputs: number of input channels; irrelevant for depthwise.
        bits: bits of each weight; irrelevant for 1x1, which always takes 8.
        core: the engine's numbers.
    """
    if mode == Mode.DEPTHWISE3X3:
        return core.word_bytes * bits * -(-outputs // core.input_channels[mode])
    words = outputs * -(-inputs // core.input_channels[mode])
    return core.word_bytes * words * (1 if mode == Mode.CONV1X1 else bits)


def pack_weights(
    weights: Array, mode: Mode, core: Neureka, bits: int | None = None
) -> PackedWeights:
    """Return weights as the engine reads them.

    Args:
        weights: integers ``[K, C, 3, 3]``, depthwise ``[C, 1, 3, 3]``, or ``[K, C, 1, 1]``.
        mode: of the job.
        core: the engine's numbers.
        bits: bits of each weight; by default the fewest.

    Raises:
        ValueError: the shape does not fit the mode, or the weights do not fit the bits.
    """
    _check_shape(weights, mode, core)
    needed = smallest_bits(weights, core)
    bits = needed if bits is None else bits
    if not needed <= bits <= core.max_weight_bits:
        raise ValueError(
            f"weights from {weights.min()} to {weights.max()} do not fit {bits} bits; "
            f"use {needed} to {core.max_weight_bits}"
        )
    offset = int(weights.min())
    stored = (weights.astype(np.int64) - offset).astype(np.uint8)
    # [outputs, channels, taps]; depthwise has one row, with all channels.
    outputs = 1 if mode == Mode.DEPTHWISE3X3 else len(stored)
    rows = stored.reshape(outputs, -1, core.taps(mode))
    channels = core.input_channels[mode]
    tiles = -(-rows.shape[1] // channels)
    padded = np.zeros((outputs, tiles * channels, rows.shape[2]), np.uint8)
    padded[:, : rows.shape[1]] = rows
    tiled = padded.reshape(outputs * tiles, channels, -1)
    data = _pointwise_words(tiled) if mode == Mode.CONV1X1 else _plane_words(tiled, bits, core)
    return PackedWeights(data, offset, bits)


def _check_shape(weights: Array, mode: Mode, core: Neureka) -> None:
    side = core.window(mode)
    depthwise = mode == Mode.DEPTHWISE3X3
    fits = weights.ndim == 4 and weights.shape[2:] == (side, side) and weights.size > 0
    if not fits or (depthwise and weights.shape[1] != 1):
        wanted = f"[C, 1, {side}, {side}]" if depthwise else f"[K, C, {side}, {side}]"
        raise ValueError(f"weights of a {mode.name} job are {wanted}, not {list(weights.shape)}")


def _plane_words(tiled: Array, bits: int, core: Neureka) -> Array:
    """Return uint8 [tiles, channels, taps] as one word per tile and plane."""
    by_tap = tiled.transpose(0, 2, 1).reshape(len(tiled), 1, -1)
    planes = by_tap >> np.arange(bits, dtype=np.uint8)[None, :, None] & 1
    words = np.zeros((len(tiled), bits, 8 * core.word_bytes), np.uint8)
    words[:, :, : planes.shape[2]] = planes
    return np.packbits(words, axis=2, bitorder="little").reshape(-1)


def _pointwise_words(tiled: Array) -> Array:
    """Return uint8 [tiles, channels, 1] as one word per tile."""
    groups = tiled.reshape(len(tiled), -1, 1, _GROUP)
    planes = groups >> np.arange(8, dtype=np.uint8)[None, None, :, None] & 1
    return np.packbits(planes.reshape(len(tiled), -1), axis=1, bitorder="little").reshape(-1)
