"""Where the tiles of a layer lie along each of its axes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ChannelTile", "SpatialTile", "channel_tiles", "spatial_tiles"]


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
