"""Images of the analog core's array as stored in L2, and the factors behind its converters.

The array has one row per input value of the window that a pass reads, in the order c, fy, x, and
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

import numpy as np

from byoc_dory.layers import AnalogRequant, Array, Layer, Weighted
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.analog_core import AnalogCore

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
    each = core.pass_channels(layer.fy, layer.fx)
    images = sum(
        core.image_bytes(min(each, layer.C - first) * window, unroll * k)
        for first in range(0, layer.C, each)
    )
    return images + _FACTOR_BYTES * k


def pack_weights(core: AnalogCore, layer: Layer, k_tile: int, unroll: int) -> Array:
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
    each = core.pass_channels(layer.fy, layer.fx)
    parts = []
    for k in range(0, layer.K, k_tile):
        weight = layer.weight[k : k + k_tile].astype(np.int8)
        for c in range(0, layer.C, each):
            parts.append(encode_image(unrolled(weight[:, c : c + each], unroll), core))
        parts.append(factors[k : k + k_tile].reshape(-1).view(np.uint8))
    return np.concatenate(parts)
