"""The layout of activations and weights in memory for DIANA's cores.

Activations are stored by channel, with padded rows.  In those, and in the digital core's weights,
each aligned group of four bytes is stored in reverse order: logical byte i is at address ``i ^ 3``.
Weights of a convolution are in blocks of 16 output channels, ``[C][fy][fx][16]`` int8, each
followed by its 16 biases, byte-planar (all lowest bytes first); those of a dense layer in blocks
``[C / 16][16 k][16 c]`` followed by 16 bytes per bias (hardware layout from DORY's DIANA target).

The core's depthwise operation computes one channel, in lane 0.  Four channels share a block: lane
4j holds channel j of the block, and its trigger loads a block's worth of bytes starting 4j bytes
after the block's start, which moves its lane to lane 0.  The reversal does not affect this, as 4
bytes are a whole group.  Where a trigger computes several channels, their weights are those of a
convolution, zero between different channels.

The analog core has images of its array, stored in L2, and the factors behind its converters.  The
array has one row per input value of the window that a pass reads, in the order c, fy, x, and
one column per output channel; if u output columns are computed at a time (unrolled), the window is
wider accordingly, and column ``u' * K + k`` computes output column u' of channel k.

An image is two bit planes ``[rows][columns / 32]`` of little-endian 32-bit words, with rows padded
to ``row_step``, columns to ``column_step``, and the lowest column in the lowest bit.  Row r is
stored as row ``rows - 1 - r``.  A cell has the sign of its weight, or the opposite sign if ``column
+ row // row_block`` is odd; a positive cell has its bit in the first plane, a negative one in the
second.  Sizes and kind of encoding are those of DORY's DIANA target; which cells exactly are
flipped is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import AnalogRequant, Array, Dense, Layer, Weighted
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore


@dataclass(frozen=True)
class Map:
    """A tensor in the accelerator's layout: rows per channel, bytes per row."""

    rows: int
    pitch: int

    @property
    def channel(self) -> int:
        """Bytes of a channel."""
        return self.rows * self.pitch


def stored_bytes(shape: tuple[int, ...], pitch: int) -> int:
    """Return the bytes of a tensor in this layout: rows (or the vector) padded to ``pitch``."""
    if len(shape) == 1:
        return round_up(shape[0], pitch)
    channels, rows, columns = shape
    return channels * rows * round_up(columns, pitch)


def stored_offsets(shape: tuple[int, ...], pitch: int, group: int) -> Array:
    """Return the byte offset of each element of a tensor of bytes in the accelerator's layout.

    Args:
        shape: shape (C, y, x) or (C,).
        pitch: rows (or the vector) are padded to a multiple of this many bytes.
        group: aligned groups of this many bytes are stored in reverse order; a power of two.

    Returns:
        int64 array of that shape: bytes from the tensor's first byte.
    """
    columns = np.arange(shape[-1], dtype=np.int64)
    rows = np.arange(int(np.prod(shape[:-1])), dtype=np.int64) * round_up(shape[-1], pitch)
    return ((rows[:, None] + columns) ^ (group - 1)).reshape(shape)


def pad_filter(size: int, filters: tuple[int, ...]) -> int:
    """The smallest supported size for a filter of ``size`` (or ``size`` if there is none)."""
    return min((entry for entry in filters if entry >= size), default=size)


def reverse_groups(data: Array, group: int = 4) -> Array:
    """Reverse each aligned group of bytes (its own inverse); the length is a multiple of it."""
    return np.asarray(data.reshape(-1, group)[:, ::-1], order="C").reshape(-1)


def pack_digital_weights(core: DigitalCore, layer: Weighted, k_tile: int) -> Array:
    """Return all weights and biases of a layer as uint8 bytes, one channel tile after another.

    Args:
        core: description of the core.
        layer: conv2d, depthwise or dense layer with int8 weights.
        k_tile: number of output channels per tile (irrelevant for dense).

    Returns:
        For a conv ``ceil(k / 16) * (16*C*fy*fx + 64)`` bytes per tile of k channels; for depthwise
        ``ceil(k / 4) * (16*fy*fx + 64)`` bytes per tile and 12 at the end, or with several channels
        c per trigger ``16*k*fy*fx + ceil(k / c) * 64`` bytes per tile; for dense
        ``16*ceil16(C) + 256`` per 16 outputs.
    """
    bias = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    weight = layer.weight.astype(np.int8)
    if isinstance(layer, Dense):
        blocks = [
            _dense_block(weight[k : k + core.lanes, :, 0, 0], bias[k : k + core.lanes], core)
            for k in range(0, layer.K, core.lanes)
        ]
    else:
        weight = _extend_filter(weight, core)
        depthwise = layer.groups > 1
        channels_at_once = core.channels_at_a_time(*weight.shape[2:]) if depthwise else 1
        step, block = core.lanes, _conv_block
        if channels_at_once > 1:
            step, block = channels_at_once, _diagonal_block
        elif depthwise:
            step, block = core.depthwise_block_channels, _depthwise_block
        blocks = [
            block(weight[k : min(k + step, first + k_tile, layer.K)], bias[k:], core)
            for first in range(0, layer.K, k_tile)
            for k in range(first, min(first + k_tile, layer.K), step)
        ]
        if depthwise and channels_at_once == 1:
            # The load of a block's last channel extends this far beyond the block.
            blocks.append(np.zeros(core.lanes - core.group, np.uint8))
    return reverse_groups(np.concatenate(blocks), core.group)


def _extend_filter(weight: Array, core: DigitalCore) -> Array:
    """Return filters extended with zeros at bottom and right to a supported size."""
    _, _, fy, fx = weight.shape
    more_y = pad_filter(fy, core.filters) - fy
    more_x = pad_filter(fx, core.filters) - fx
    return np.pad(weight, ((0, 0), (0, 0), (0, more_y), (0, more_x)))


def _conv_block(weight: Array, bias: Array, core: DigitalCore) -> Array:
    """Return ``[C][fy][fx][lanes]`` and the byte-planar biases, before reversal."""
    used, channels, fy, fx = weight.shape
    lanes = np.zeros((channels, fy, fx, core.lanes), np.int8)
    lanes[..., :used] = weight.transpose(1, 2, 3, 0)
    padded = np.zeros(core.lanes, np.dtype("<i4"))
    padded[:used] = bias[:used]
    planes = padded.view(np.uint8).reshape(core.lanes, 4).T
    return np.concatenate([lanes.reshape(-1).view(np.uint8), planes.reshape(-1)])


def _depthwise_block(weight: Array, bias: Array, core: DigitalCore) -> Array:
    """Return a block whose lanes 0, 4, ... hold one channel each, before reversal."""
    used, _, fy, fx = weight.shape
    lanes = np.zeros((core.lanes, 1, fy, fx), np.int8)
    lanes[: used * core.group : core.group] = weight
    biases = np.zeros(core.lanes, np.int32)
    biases[: used * core.group : core.group] = bias[:used]
    return _conv_block(lanes, biases, core)


def _diagonal_block(weight: Array, bias: Array, core: DigitalCore) -> Array:
    """Return the block of a convolution over some channels that computes each from itself alone."""
    used, _, fy, fx = weight.shape
    whole = np.zeros((used, used, fy, fx), np.int8)
    whole[np.arange(used), np.arange(used)] = weight[:, 0]
    return _conv_block(whole, bias, core)


def _dense_block(weight: Array, bias: Array, core: DigitalCore) -> Array:
    """Return ``[C / columns][lanes][columns]`` and 16 bytes per bias, before reversal."""
    used, channels = weight.shape
    columns = core.columns
    padded = np.zeros((core.lanes, round_up(channels, columns)), np.int8)
    padded[:used, :channels] = weight
    blocked = padded.reshape(core.lanes, -1, columns).transpose(1, 0, 2)
    biases = np.zeros((core.lanes, core.dense_bias_bytes // core.lanes // 4), np.dtype("<i4"))
    biases[:used, 0] = bias
    return np.concatenate([blocked.reshape(-1).view(np.uint8), biases.reshape(-1).view(np.uint8)])


# mul and add of a channel, both int16.
_FACTOR_BYTES = 4


def encode_image(cells: Array, core: AnalogCore) -> Array:
    """Return the image of an array whose used part holds ``cells`` (-1, 0, 1; [rows, columns])."""
    rows, columns = cells.shape
    stored = np.zeros((round_up(rows, core.row_step), round_up(columns, core.column_step)), np.int8)
    stored[:rows, :columns] = cells * signs_of(rows, columns, core)
    stored = stored[::-1]
    planes = [np.packbits(stored == sign, axis=1, bitorder="little") for sign in (1, -1)]
    return np.concatenate([plane.reshape(-1) for plane in planes])


def signs_of(rows: int, columns: int, core: AnalogCore) -> Array:
    """Return 1, or -1 for cells stored with the opposite sign."""
    odd = (np.arange(rows)[:, None] // core.row_block + np.arange(columns)[None]) % 2
    return np.where(odd == 1, -1, 1).astype(np.int8)


def unrolled(weight: Array, unroll: int) -> Array:
    """Return the cells for a filter [K, c, fy, fx], with ``unroll`` output columns at a time."""
    k, c, fy, fx = weight.shape
    width = fx + unroll - 1
    cells = np.zeros((c, fy, width, unroll, k), np.int8)
    for column in range(unroll):
        cells[:, :, column : column + fx, column] = weight.transpose(1, 2, 3, 0)
    return cells.reshape(c * fy * width, unroll * k)


def tile_bytes(core: AnalogCore, layer: Layer, k: int, unroll: int) -> int:
    """Return the bytes of the images and factors of ``k`` output channels."""
    window = layer.fy * (layer.fx + unroll - 1)
    pass_channels = core.pass_channels(layer.fy, layer.fx)
    images = sum(
        core.image_bytes(min(pass_channels, layer.C - first) * window, unroll * k)
        for first in range(0, layer.C, pass_channels)
    )
    return images + _FACTOR_BYTES * k


def pack_analog_weights(core: AnalogCore, layer: Layer, k_tile: int, unroll: int) -> Array:
    """Return all images and factors of a layer as uint8 bytes, one channel tile after another.

    Args:
        core: description of the core.
        layer: conv2d or dense layer with weights -1, 0, 1, requantized by `AnalogRequant`.
        k_tile: number of output channels per tile.
        unroll: number of output columns computed at a time.

    Returns:
        For each tile of k channels: the image of every pass, and 4 bytes per channel for mul and
            add.
    """
    requant = layer.requant
    if not isinstance(layer, Weighted) or not isinstance(requant, AnalogRequant):
        raise ValueError(f"layer '{layer.name}' is not a layer for an in-memory array")
    factors = np.empty((layer.K, 2), np.dtype("<i2"))
    factors[:, 0], factors[:, 1] = requant.mul, requant.add
    pass_channels = core.pass_channels(layer.fy, layer.fx)
    parts = []
    for k in range(0, layer.K, k_tile):
        weight = layer.weight[k : k + k_tile].astype(np.int8)
        for c in range(0, layer.C, pass_channels):
            parts.append(encode_image(unrolled(weight[:, c : c + pass_channels], unroll), core))
        parts.append(factors[k : k + k_tile].reshape(-1).view(np.uint8))
    return np.concatenate(parts)
