"""Tiles of a convolution: ranges of rows, of columns, and of channels of its maps.

Maps are rows of pixels of channels.  Ranges of whole rows are one run of bytes; ranges of columns
are one run per row; ranges of channels one per pixel.  A range of columns and of channels has three
dimensions: it is moved row by row.
"""

from __future__ import annotations

from byoc_dory.layers import Convolution
from byoc_dory.plan import LayerPlan
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.planned import input_of, result_of
from byoc_dory.tileloop.program import BlockOf, Operand
from byoc_dory.tileloop.values import Value


def map_tiles(
    layer: Convolution, plan: LayerPlan, y: TileAxis, x: TileAxis, k: TileAxis
) -> tuple[tuple[TileAxis, ...], tuple[Operand, ...], Operand]:
    """Return the axes in the order of the loops, the operand, and the result.

    A depthwise layer's channels are outermost, so that the constants of a range are loaded once;
    other layers load the input once for all their output channels.
    """
    across = (x,) if x.count > 1 else ()
    splits = layer.depthwise and k.count > 1
    axes = (k, y, *across) if splits else (y, *across, k)
    most_in = _most(y, "in_size") * _most(x, "in_size")
    most_out = _most(y, "out_size") * _most(x, "out_size")
    channels, first, step = (k.out_size, k.out_start, k.step) if splits else (layer.C, 0, layer.C)
    whole = x.count == 1
    source_block = BlockOf.of_rows(y.in_size, *(layer.ix * layer.C,) * 3)
    if splits or not whole:
        source_block = _block(y.in_size, x.in_size, channels, layer.ix, layer.C, step, whole=whole)
    source = input_of(
        plan,
        0,
        "in",
        y.in_start * (layer.ix * layer.C) + x.in_start * layer.C + first,
        source_block,
        layer.iy * layer.ix * layer.C,
        most_in * step,
        title="rows of in",
    )
    out = result_of(
        plan,
        y.out_start * layer.ox * layer.K + x.out_start * layer.K + k.out_start,
        _block(y.out_size, x.out_size, k.out_size, layer.ox, layer.K, k.step, whole=whole),
        layer.oy * layer.ox * layer.K,
        most_out * k.step,
        title="result",
    )
    return axes, (source,), out


def _most(axis: TileAxis, field: str) -> int:
    return max(int(getattr(span, field)) for span in axis.spans)


def _block(
    rows: Value, columns: Value, channels: Value, width: int, depth: int, step: int, *, whole: bool
) -> BlockOf:
    """Return the block of a tile.

    Args:
        rows, columns, channels: sizes of the tile.
        width, depth: columns and channels of the map.
        step: bytes from pixel to pixel of the tile in L1.
        whole: whether tiles have all columns.
    """
    if whole:
        return BlockOf.of_rows(rows * width, channels, depth, step)
    if step == depth:
        size = columns * depth
        return BlockOf.of_rows(rows, size, width * depth, size)
    return BlockOf(rows, columns, channels, width * depth, depth, columns * step, step)
