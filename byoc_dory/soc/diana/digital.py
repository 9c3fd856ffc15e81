"""The toolkit of DIANA's digital core: what it takes, what a tile needs, what it costs.

Each rule's docstring is its public statement; it returns `Accepted`, or `Refused` with one
sentence that holds the offending value.  Numbers come from the SoC's description only.
"""

from __future__ import annotations

from byoc_dory.layers.layer import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.planning import alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.cost import layer_cycles
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_emit import DianaEmitter
from byoc_dory.soc.diana.digital_objectives import OBJECTIVES
from byoc_dory.soc.diana.digital_rules import RULES
from byoc_dory.soc.diana.digital_schedule import schedule_layer
from byoc_dory.soc.diana.digital_tiles import tiling_problem
from byoc_dory.tiling.problem import Tile, solution_of

__all__ = ["OBJECTIVES", "RULES", "cost", "emitter", "plan_cost", "tiling_problem"]


def cost(
    layer: Layer, tile: Tile, core: DigitalCore, soc: Soc, schedule: ScheduleKind = "published"
) -> int:
    """Predicted cycles of the layer with this tile: DMA and triggers with their driver code."""
    problem = tiling_problem(layer, core, soc, soc.memory(core.l1).size)
    plan = alone(layer, solution_of(problem, tile), core.name)
    return layer_cycles(schedule_layer(layer, plan, core, schedule), soc, core)


def plan_cost(
    layer: Layer, plan: LayerPlan, core: DigitalCore, soc: Soc, options: TilingOptions
) -> int:
    """Predicted cycles of the layer under a plan: DMA and triggers with their driver code."""
    schedule = schedule_layer(layer, plan, core, options.schedule, options.loop_order)
    return layer_cycles(schedule, soc, core)


def emitter(core: DigitalCore, soc: Soc) -> DianaEmitter:
    """What turns plans into C for this core."""
    return DianaEmitter(core, soc)
