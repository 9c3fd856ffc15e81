"""The toolkit of the compute cores: what their kernels take, what a tile needs, what it costs.

Rules as in every toolkit: the docstring is the public statement.
"""

from __future__ import annotations

from collections.abc import Mapping

from byoc_dory.layers.layer import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.planning import alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores
from byoc_dory.soc.snitch_ita.cluster_cost import layer_cycles
from byoc_dory.soc.snitch_ita.cluster_emit import ClusterEmitter
from byoc_dory.soc.snitch_ita.cluster_rules import RULES
from byoc_dory.soc.snitch_ita.cluster_tiles import tiling_problem, walk_of
from byoc_dory.tiling import Heuristic, Objective, Size
from byoc_dory.tiling.problem import Tile, solution_of

__all__ = ["OBJECTIVES", "RULES", "cost", "emitter", "plan_cost", "tiling_problem"]

OBJECTIVES: Mapping[str, Objective] = {
    entry.name: entry
    for entry in (
        Objective("none"),
        Objective(
            "array",
            (Heuristic("rows", Size("y"), 64, "rows are what the cores share"),),
        ),
    )
}


# ---------------------------------------------------------------------- cost


def cost(
    layer: Layer, tile: Tile, core: ClusterCores, soc: Soc, schedule: ScheduleKind = "published"
) -> int:
    """Predicted cycles of the layer with this tile, alone in L1 with one buffer."""
    problem = tiling_problem(layer, core, soc, soc.memory(core.l1).size)
    plan = alone(layer, solution_of(problem, tile), core.name, problem)
    return plan_cost(layer, plan, core, soc, TilingOptions(schedule=schedule))


def plan_cost(
    layer: Layer, plan: LayerPlan, core: ClusterCores, soc: Soc, options: TilingOptions
) -> int:
    """Predicted cycles of the layer under a plan: kernels, transfers, and what hides behind
    what."""
    return layer_cycles(layer, walk_of(layer, plan), core, soc)


def emitter(core: ClusterCores, soc: Soc) -> ClusterEmitter:
    """What turns plans into C for the cores."""
    return ClusterEmitter(core, soc)
