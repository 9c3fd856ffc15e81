"""The toolkit of ITA: what it takes, how attention is split, what a tile needs and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byoc_dory.layers import Layer, MultiHeadAttention
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.planning import alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.heads import heads_of
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.ita_cost import layer_cycles
from byoc_dory.soc.snitch_ita.ita_emit import ItaEmitter
from byoc_dory.soc.snitch_ita.ita_rules import RULES
from byoc_dory.soc.snitch_ita.ita_tiles import tiling_problem as _tiling_problem
from byoc_dory.soc.snitch_ita.ita_tiles import walk_of
from byoc_dory.tiling import Heuristic, Objective, Size
from byoc_dory.tiling.problem import Tile, TilingProblem, solution_of

__all__ = ["OBJECTIVES", "RULES", "cost", "emitter", "expand", "plan_cost", "tiling_problem"]

_CORES = "cluster"

OBJECTIVES: Mapping[str, Objective] = {
    entry.name: entry
    for entry in (
        Objective("none"),
        Objective(
            "array",
            (Heuristic("rows", Size("y"), 64, "weights are loaded once for all rows"),),
        ),
    )
}


def expand(layer: Layer, core: Ita, soc: Soc) -> Sequence[tuple[Layer, str]]:
    """Attention as products, heads and sums; anything else as it is."""
    if not isinstance(layer, MultiHeadAttention):
        return ((layer, core.name),)
    return heads_of(layer, core.name, _CORES)


def tiling_problem(layer: Layer, core: Ita, soc: Soc, l1_budget: int) -> TilingProblem:
    """What a tile of this layer needs of L1; of whole attention, what its largest part does."""
    if not isinstance(layer, MultiHeadAttention):
        return _tiling_problem(layer, core, soc, l1_budget)
    problems = [
        soc.accelerator(name).tiling_problem(part, soc, l1_budget)
        for part, name in expand(layer, core, soc)
    ]
    smallest = [problem.smallest for problem in problems]
    most = max(
        range(len(problems)),
        key=lambda n: int(
            problems[n].l1_bytes(smallest[n].k, smallest[n].c, smallest[n].y, smallest[n].x)
        ),
    )
    return problems[most]


def cost(
    layer: Layer, tile: Tile, core: Ita, soc: Soc, schedule: ScheduleKind = "published"
) -> int:
    """Predicted cycles of the layer with this tile, alone in L1 with one buffer; of attention,
    of its parts with the tiles they would have alone."""
    if isinstance(layer, MultiHeadAttention):
        return _attention_cycles(layer, core, soc)
    problem = tiling_problem(layer, core, soc, soc.memory(core.l1).size)
    plan = alone(layer, solution_of(problem, tile), core.name, problem)
    return layer_cycles(layer, walk_of(layer, plan, core), core, soc)


def _attention_cycles(layer: Layer, core: Ita, soc: Soc) -> int:
    total = 0
    for part, name in expand(layer, core, soc):
        home = soc.accelerator(name)
        problem = home.tiling_problem(part, soc)
        tile = problem.whole if problem.tile_fits(problem.whole) else problem.smallest
        total += home.cost(part, tile, soc)
    return total


def plan_cost(layer: Layer, plan: LayerPlan, core: Ita, soc: Soc, options: TilingOptions) -> int:
    """Predicted cycles of the layer under a plan: tasks, transfers, and what hides behind what."""
    if isinstance(layer, MultiHeadAttention):
        return _attention_cycles(layer, core, soc)
    return layer_cycles(layer, walk_of(layer, plan, core), core, soc)


def emitter(core: Ita, soc: Soc) -> ItaEmitter:
    """What turns plans into C for ITA."""
    return ItaEmitter(core, soc)
