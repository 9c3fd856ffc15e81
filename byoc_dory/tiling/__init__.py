"""Choosing tile sizes: the problem, the objectives, and three ways to solve it.

A layer that fits is proved to need no tiling where that can be proved; everything else is an
integer program (`milp`) or, for small layers and for checking, an enumeration (`exhaustive`).
"""

from __future__ import annotations

import time

from byoc_dory.options import TilingOptions
from byoc_dory.tiling.exhaustive import solve_exhaustive
from byoc_dory.tiling.milp import solve_milp
from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole
from byoc_dory.tiling.problem import Axis, Solution, Tile, TilingProblem

__all__ = [
    "Axis",
    "Fill",
    "Heuristic",
    "Objective",
    "Size",
    "Solution",
    "Tile",
    "TilingProblem",
    "Whole",
    "solve",
    "solve_exhaustive",
    "solve_milp",
]


def solve(problem: TilingProblem, objective: Objective, options: TilingOptions) -> Solution:
    """The best tile of a layer.

    Raises:
        TilingError: where no tile fits; names limit, demand and levers.
    """
    start = time.perf_counter()
    whole = problem.whole
    if problem.tile_fits(whole) and objective.whole_is_optimal(problem):
        return Solution(
            whole,
            *problem.memory(whole),
            objective=objective.of(problem, whole),
            objective_name=objective.name,
            status="optimal",
            gap=0.0,
            solver="whole layer",
            seconds=time.perf_counter() - start,
        )
    if options.solver == "exhaustive":
        return solve_exhaustive(problem, objective)
    return solve_milp(problem, objective, options.node_limit)
