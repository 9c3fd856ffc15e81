"""Cycles of one tile on ITA, without what its transfers and orders cost."""

from __future__ import annotations

from byoc_dory.geometry import ChannelTile, SpatialTile
from byoc_dory.layers import Attend, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.pipeline import Overheads, device_cycles
from byoc_dory.soc.snitch_ita.walk import Walk

__all__ = ["layer_cycles", "tile_cycles"]


def layer_cycles(layer: Layer, walk: Walk, core: Ita, soc: Soc) -> int:
    """Predicted cycles of a layer: tasks, transfers, and what hides behind what."""
    assert soc.dma is not None
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=core.program_cycles if _varies(walk) else core.constant_cycles,
        call=core.call_cycles,
    )
    # A task that waits in the second context has its first weights loaded.
    ahead = walk.double and walk.tiles > 1
    fill = core.fill_cycles + core.drain_cycles

    def compute(tile: int) -> int:
        exposed = 0 if ahead and tile else fill
        return exposed + tile_cycles(layer, *walk.at(tile), core)

    return device_cycles(walk, soc.dma, overheads, compute)


def _varies(walk: Walk) -> bool:
    """Whether tiles lie in different places in L1."""
    whole = walk.result.resident or any(operand.resident for operand in walk.operands)
    return walk.tiles > 1 and (walk.double or whole)


def tile_cycles(layer: Layer, y: SpatialTile, k: ChannelTile, core: Ita) -> int:
    """Cycles of a tile."""
    rows = round_up(y.out_size, core.tile)
    if isinstance(layer, Attend):
        keys, size = round_up(layer.keys, core.tile), round_up(layer.head_size, core.tile)
        turns = rows // core.tile * layer.heads
        return turns * core.attention_turn_cycles(keys, size)
    return core.product_cycles(rows, round_up(k.size, core.tile), round_up(layer.C, core.tile))
