"""Cycles of one tile on ITA, without those for starting transfers and tasks."""

from __future__ import annotations

from byoc_dory.layers import Attend, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.cluster.rows import moved
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Overheads
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tileloop.steps import Call


def costs_of(soc: Soc, core: Ita, layer: Layer, program: TileProgram) -> Costs:
    """Return the costs of a layer's tasks and transfers."""
    dma = soc.dma
    assert dma is not None
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=core.program_cycles if _varies(program) else core.constant_cycles,
        call=core.call_cycles,
    )
    # A task that waits in the second context has its first weights loaded already.
    fill = core.fill_cycles + core.drain_cycles
    return Costs(
        compute=lambda call: ComputeCost(_task_cycles(core, layer, call), fill=fill),
        move=lambda block, by_rows: moved(block, dma),
        overheads=overheads,
    )


def _varies(program: TileProgram) -> bool:
    """Whether tiles are in different places in L1."""
    resident = any(operand.resident for operand in (*program.operands, program.result))
    return program.tiles > 1 and (program.pipelined or resident)


def _task_cycles(core: Ita, layer: Layer, call: Call) -> int:
    """Return the cycles of a tile."""
    if isinstance(layer, Attend):
        keys, size = round_up(layer.keys, core.tile), round_up(layer.head_size, core.tile)
        turns = round_up(call.number("rows"), core.tile) // core.tile * layer.heads
        return turns * core.attention_turn_cycles(keys, size)
    return core.product_cycles(call.number("rows"), call.number("cols"), call.number("inner"))
