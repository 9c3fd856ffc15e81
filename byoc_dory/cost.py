"""Predicted cycles: DMA, triggers and CPU kernels, from the SoC's description.

The model of a trigger is that of `DigitalCore`: a constant, the weights at the width of their port,
and per block of maps, block of columns and output row ``C*fx*fy' + alpha*C*fy' + beta`` cycles,
where fy' counts the filter rows inside the tile.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from byoc_dory.layer import Layer
from byoc_dory.schedule import ChannelTile, Schedule, SpatialTile
from byoc_dory.soc.accelerator import DigitalCore
from byoc_dory.soc.base import Dma, Soc
from byoc_dory.steps import AddTrigger, Block, ConvTrigger, DenseTrigger, Load, Step, Store

__all__ = [
    "array_cycles",
    "cpu_cycles",
    "cpu_operator_cycles",
    "dma_cycles",
    "layer_cycles",
    "layout_cycles",
    "step_cycles",
]


def _blocks(value: int, step: int) -> int:
    return -(-value // step)


def dma_cycles(block: Block, dma: Dma) -> int:
    """Cycles of one DMA call that moves ``block``."""
    commands, size = block.commands()
    return dma.cycles(size, commands)


def array_cycles(trigger: ConvTrigger, core: DigitalCore) -> int:
    """Cycles a convolution (of one channel if depthwise) keeps the array busy."""
    channels, k = (1, 1) if trigger.depthwise else (trigger.c, trigger.k)
    total = 0
    for row in range(trigger.oy):
        first = row * trigger.stride - trigger.pad_top
        inside = min(trigger.iy, first + trigger.fy) - max(0, first)
        filter_rows = max(0, inside)
        total += (
            channels * trigger.fx * filter_rows
            + core.row_cycles * channels * filter_rows
            + core.output_cycles
        )
    return _blocks(k, core.lanes) * _blocks(trigger.ox, core.columns) * total


def step_cycles(step: Step, dma: Dma, core: DigitalCore) -> int:
    """Cycles of one DMA call or of one driver call of the core, host code included."""
    if isinstance(step, Load | Store):
        return dma_cycles(step.block, dma)
    width = core.weight_bytes_per_cycle
    if isinstance(step, ConvTrigger):
        if step.depthwise:
            weights = core.conv_weight_bytes(1, 1, step.fy, step.fx)
            each = core.depthwise_trigger_cycles + _blocks(weights, width)
            return step.k * (each + array_cycles(step, core))
        weights = core.conv_weight_bytes(step.k, step.c, step.fy, step.fx)
        return core.conv_trigger_cycles + _blocks(weights, width) + array_cycles(step, core)
    if isinstance(step, DenseTrigger):
        weights = core.dense_weight_bytes(step.c)
        array = _blocks(step.c, core.columns) * _blocks(step.k, core.lanes)
        return core.dense_trigger_cycles + _blocks(weights, width) + array
    assert isinstance(step, AddTrigger)
    return core.add_trigger_cycles + _blocks(step.elements, core.columns)


def layer_cycles(schedule: Schedule, soc: Soc, core: DigitalCore) -> int:
    """Cycles of all steps of a layer, DMA and triggers with the driver code they contain.

    Host code around the calls is not counted: what is generated here needs a few tens of cycles.
    Tiles of one shape cost the same, so each shape is looked at once.
    """
    if soc.dma is None:
        raise ValueError(f"SoC '{soc.name}' has no DMA to feed '{core.name}'")
    dma, s = soc.dma, schedule
    per_channel_tile = s.input_follows_k or (
        s.loop_order == "kyx" and len(s.y_tiles) * len(s.x_tiles) > 1
    )
    total = 0
    channel_tiles = _distinct(s.k_tiles)
    for y, y_count in _distinct(s.y_tiles):
        for x, x_count in _distinct(s.x_tiles):
            for number, (k, k_count) in enumerate(channel_tiles):
                tiles = k_count * y_count * x_count
                loads = tiles if per_channel_tile else (y_count * x_count if number == 0 else 0)
                total += loads * len(s.l1_in) * dma_cycles(s.load_block(k, y, x), dma)
                total += tiles * dma_cycles(s.store_block(k, y, x), dma)
                total += tiles * sum(step_cycles(t, dma, core) for t in s.triggers(k, y, x))
    return total


_TileT = TypeVar("_TileT", ChannelTile, SpatialTile)


def _distinct(tiles: tuple[_TileT, ...]) -> list[tuple[_TileT, int]]:
    """One tile of each shape, and how many there are of it."""
    first: dict[tuple[int, ...], _TileT] = {}
    count: Counter[tuple[int, ...]] = Counter()
    for tile in tiles:
        if isinstance(tile, ChannelTile):
            shape: tuple[int, ...] = (tile.size,)
        else:
            shape = (tile.out_size, tile.in_size, tile.pad)
        first.setdefault(shape, tile)
        count[shape] += 1
    return [(first[shape], count[shape]) for shape in first]


def cpu_cycles(layer: Layer, soc: Soc) -> int:
    """Rough cycles of the layer on the host, for verdicts (runs measure the real ones)."""
    cost = soc.host.cost
    if layer.op == "add":
        return round(cost.add_element * layer.output.elements)
    if layer.op == "dense":
        each = cost.dense_mac
    elif layer.op == "depthwise":
        each = cost.depthwise_mac
    else:
        each = cost.pointwise_mac if (layer.fy, layer.fx) == (1, 1) else cost.conv_mac
    return round(each * layer.macs)


def cpu_operator_cycles(kind: str, read: int, written: int, soc: Soc) -> int | None:
    """Rough cycles of an operator without `Layer` on the host; ``None`` for an unknown kind.

    Args:
        kind: as in the integer form: ``average_pool``, ``softmax``, ...
        read: elements its windows read, each as often as it is read.
        written: elements of its result.
        soc: whose host.
    """
    cost = soc.host.cost
    if kind in ("average_pool", "max_pool"):
        return round(cost.pool_element * read)
    if kind == "softmax":
        return round(cost.softmax_element * written)
    if kind == "reshape":
        return 0
    if kind in ("convert", "pad"):
        return round(cost.move_element * written)
    return None


def layout_cycles(size: int, soc: Soc) -> int:
    """Rough cycles of the host to bring ``size`` bytes into an accelerator's layout, or back."""
    return round(soc.host.cost.layout_byte * size)
