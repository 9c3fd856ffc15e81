"""Where the tiles of a layer lie: along each axis, and in the accelerator's layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers.layer import Array
from byoc_dory.soc.base import round_up

__all__ = [
    "ChannelTile",
    "Map",
    "SpatialTile",
    "channel_tiles",
    "spatial_tiles",
    "stored_bytes",
    "stored_offsets",
]


def stored_bytes(shape: tuple[int, ...], pitch: int) -> int:
    """Bytes of a tensor in the accelerator's layout: rows (or the vector) padded to ``pitch``."""
    if len(shape) == 1:
        return round_up(shape[0], pitch)
    channels, rows, columns = shape
    return channels * rows * round_up(columns, pitch)


def stored_offsets(shape: tuple[int, ...], pitch: int, group: int) -> Array:
    """Where each element of a tensor of bytes lies in the accelerator's layout.

    Args:
        shape: (C, y, x) or (C,).
        pitch: rows (or the vector) are padded to so many bytes.
        group: aligned groups of so many bytes are stored reversed; a power of two.

    Returns:
        int64 of that shape: bytes from the tensor's first.
    """
    columns = np.arange(shape[-1], dtype=np.int64)
    rows = np.arange(int(np.prod(shape[:-1])), dtype=np.int64) * round_up(shape[-1], pitch)
    return ((rows[:, None] + columns) ^ (group - 1)).reshape(shape)


@dataclass(frozen=True)
class ChannelTile:
    """Channels start..start+size of the layer."""

    start: int
    size: int


@dataclass(frozen=True)
class SpatialTile:
    """Rows (or columns) of one tile.

    Attributes:
        out_start, out_size: what it produces.
        in_start, in_size: what it reads, clipped to the input.
        pad: zeros before the input; negative: leading elements to skip.
    """

    out_start: int
    out_size: int
    in_start: int
    in_size: int
    pad: int


@dataclass(frozen=True)
class Map:
    """A tensor in the accelerator's layout: rows per channel, bytes per row."""

    rows: int
    pitch: int

    @property
    def channel(self) -> int:
        """Bytes of a channel."""
        return self.rows * self.pitch


def channel_tiles(size: int, tile: int) -> tuple[ChannelTile, ...]:
    """Tiles of ``tile`` channels, the last with what is left."""
    return tuple(ChannelTile(start, min(tile, size - start)) for start in range(0, size, tile))


def spatial_tiles(
    out: int, tile: int, size: int, kernel: int, stride: int, pad: int, align: int
) -> tuple[SpatialTile, ...]:
    """Tiles along one axis of ``out`` outputs; their inputs start at multiples of ``align``."""
    if tile >= out:
        return (SpatialTile(0, out, 0, size, pad),)
    tiles = []
    for start in range(0, out, tile):
        count = min(tile, out - start)
        first = start * stride - pad
        low = max(0, first) // align * align
        high = min(size, first + (count - 1) * stride + kernel)
        tiles.append(SpatialTile(start, count, low, high - low, low - first))
    return tuple(tiles)
