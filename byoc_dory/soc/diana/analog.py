"""The toolkit of DIANA's analog core: what it takes, what a tile needs, what it costs.

Each rule's docstring is its public statement; it returns `Accepted`, or `Refused` with one
sentence that holds the offending value.  Numbers come from the SoC's description only.
"""

from __future__ import annotations

from byoc_dory.layers.layer import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.planning import alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_emit import AnalogEmitter
from byoc_dory.soc.diana.analog_objectives import OBJECTIVES
from byoc_dory.soc.diana.analog_rules import RULES
from byoc_dory.soc.diana.analog_schedule import analog_schedule
from byoc_dory.soc.diana.analog_tiles import tiling_problem
from byoc_dory.soc.diana.cost import layer_cycles
from byoc_dory.tiling.problem import Tile, solution_of

__all__ = ["OBJECTIVES", "RULES", "cost", "emitter", "plan_cost", "tiling_problem"]


def cost(
    layer: Layer, tile: Tile, core: AnalogCore, soc: Soc, schedule: ScheduleKind = "published"
) -> int:
    """Predicted cycles of the layer with this tile: DMA and passes with their driver code."""
    problem = tiling_problem(layer, core, soc, soc.memory(core.l1).size)
    plan = alone(layer, solution_of(problem, tile), core.name)
    return layer_cycles(analog_schedule(layer, plan, core, schedule), soc, core)


def plan_cost(
    layer: Layer, plan: LayerPlan, core: AnalogCore, soc: Soc, options: TilingOptions
) -> int:
    """Predicted cycles of the layer under a plan: DMA and passes with their driver code."""
    schedule = analog_schedule(layer, plan, core, options.schedule, options.loop_order)
    return layer_cycles(schedule, soc, core)


def emitter(core: AnalogCore, soc: Soc) -> AnalogEmitter:
    """What turns plans into C for this core."""
    return AnalogEmitter(core, soc)
