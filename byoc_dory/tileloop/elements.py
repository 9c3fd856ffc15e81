"""Mapping tiles to the elements of a layer's result that they compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.tileloop.program import LoopTile, TileProgram
from byoc_dory.tileloop.values import evaluate


def elements_of_tiles(program: TileProgram, offsets: Array) -> Iterator[tuple[LoopTile, Array]]:
    """Yield every tile in the order of execution, with the elements that it is the first to write.

    Args:
        program: tile program of the layer.
        offsets: byte offset of each element of the result, in any shape.

    Yields:
        The tile, and a mask with the shape of ``offsets``.
    """
    unwritten = np.ones(offsets.shape, np.bool_)
    for tile in program.order():
        made = unwritten & _elements_of_block(program, tile, offsets)
        unwritten &= ~made
        yield tile, made


def _elements_of_block(program: TileProgram, tile: LoopTile, offsets: Array) -> Array:
    """Return which elements lie in the block of the result that a tile writes.

    A result that stays in L1 has the same layout as it would have in L2.
    """
    block = program.block(program.result, tile)
    first = evaluate(program.result.offset, tile)
    channels = np.arange(block.channels)[:, None, None] * block.l2_channel_stride
    rows = np.arange(block.rows)[:, None] * block.l2_row_stride
    places = (first + channels + rows + np.arange(block.bytes)).reshape(-1)
    written = np.zeros(max(int(offsets.max()), int(places.max())) + 1, np.bool_)
    written[places] = True
    found: Array = written[offsets]
    return found
