"""Checks of a region in which layers leave their last tile to the next one (`LayerPlan.leaves`).

Generation calls `check_left` with the tile programs that become C, whatever planned them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from byoc_dory.tileloop.program import LoopTile, Operand, TileProgram


def check_left(running: Sequence[tuple[str, TileProgram]]) -> None:
    """Check that each tile that is left is completed before anything depends on it.

    Args:
        running: name of the accelerator and tile program of each layer, in execution order.

    Raises:
        TileProgramError: nobody completes it, its result is still to be stored, or the layer that
            completes it loads over it or reads of it before.
    """
    for each, following in itertools.pairwise([*running, None]):
        assert each is not None  # only the last one is
        accelerator, program = each
        if not program.leaves:
            if following is not None and following[1].left is not None:
                raise following[1].error(
                    f"'{program.layer}' leaves nothing to it", "let that layer leave its last tile"
                )
            continue
        if following is None or following[1].left is None or following[0] != accelerator:
            raise program.error(
                "nobody completes the last tile that it leaves",
                f"leave it to a layer that is next on '{accelerator}', and completes it",
            )
        for what in _conflicts(program, following[1], following[1].left.tiles):
            raise following[1].error(
                f"{what} before the last tile of '{program.layer}' is complete",
                "let that layer complete its own tiles",
            )


def _conflicts(before: TileProgram, program: TileProgram, tiles: int) -> list[str]:
    """Return what a program does too early if it starts this many tiles first."""
    found = []
    if not before.result.resident:
        found.append("the result should be stored")
    loaded = [each for each in program.loaded if tiles or not each.preloaded]
    found += [f"'{each.name}' is loaded" for each in loaded]
    if tiles >= program.tiles:
        return [*found, "all tiles are started"]
    written = _bytes(before, before.result, list(before.order())[-1])
    for tile in itertools.islice(program.order(), tiles):
        for operand in (*program.operands, program.result):
            if program.pipelined and operand.name in program.compute.beside:
                continue  # the next tile is started first
            own = _bytes(program, operand, tile)
            if operand.resident and own.start < written.stop and written.start < own.stop:
                found.append(f"tile {tile.number} takes '{operand.name}'")
    return found


def _bytes(program: TileProgram, operand: Operand, tile: LoopTile) -> range:
    """Return the bytes of L1 from the first to the last of a tile of a resident tensor."""
    block, start = program.block(operand, tile), tile.place(operand.name)
    rows, channels = block.rows - 1, block.channels - 1
    size = channels * block.l2_channel_stride + rows * block.l2_row_stride + block.bytes
    return range(start, start + size)
