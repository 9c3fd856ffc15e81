"""Choosing tile sizes: the problem, the objectives, and the ways to solve it.

For a heuristic objective, a layer that fits is proved to need no tiling if that is possible;
otherwise an integer program is solved (`milp`) or, for small layers and for testing, all tiles are
enumerated.  For latency, a search evaluates the cycle model (both in `latency`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from math import prod

from byoc_dory.options import TilingOptions
from byoc_dory.tiling.latency import (
    Prune,
    TileCandidate,
    TileCost,
    best_tiles,
    candidates,
    solve_exhaustive,
    solve_latency,
)
from byoc_dory.tiling.objectives import LATENCY, Fill, Heuristic, Objective, Size, Whole
from byoc_dory.tiling.problem import (
    Axis,
    FixedBytes,
    InputWindow,
    Rounding,
    Solution,
    Tile,
    TileWeights,
    TilingProblem,
)
from byoc_dory.tiling.shortage import Shortage, require_feasible, shortage_of

__all__ = [
    "LATENCY",
    "Axis",
    "TileCandidate",
    "TileCost",
    "Fill",
    "FixedBytes",
    "Heuristic",
    "Objective",
    "Rounding",
    "Shortage",
    "Size",
    "Solution",
    "Tile",
    "TileWeights",
    "TilingProblem",
    "Whole",
    "InputWindow",
    "candidates",
    "quickest",
    "shortage_of",
    "solve",
    "solve_exhaustive",
    "solve_latency",
]


_DEFAULTS = TilingOptions()


def solve(problem: TilingProblem, objective: Objective, options: TilingOptions) -> Solution:
    """Return the best tile of a layer.

    Raises:
        TilingError: no tile fits; the message names limit, demand and options that would help.
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
    # Imported here, because descriptions of accelerators import problems without solving any.
    from byoc_dory.tiling.milp import solve_milp

    return solve_milp(problem, objective, options.node_limit)


# For larger layers, the heuristics' tiles come from the integer program, not from an enumeration.
_MANY_TILES = 500_000


def quickest(
    problem: TilingProblem,
    cost: TileCost,
    heuristics: Iterable[Objective] = (),
    options: TilingOptions = _DEFAULTS,
    prune: Prune = lambda tile: None,
) -> Solution:
    """Return the tile with fewest cycles, never slower than the tiles of ``heuristics``.

    Args:
        problem: tiling problem, including its limits.
        cost: the accelerator's cycle model.
        heuristics: heuristics whose tiles are also candidates.
        options: ``solver="exhaustive"`` evaluates all tiles.
        prune: finds tiles that need not be evaluated if the best one is faster than their bound.

    Raises:
        TilingError: no tile fits.
    """
    start = time.perf_counter()
    if options.solver == "exhaustive":
        return solve_latency(problem, cost, every_tile=True)
    require_feasible(problem)
    if prod(len(axis.sizes()) for axis in problem.axes) <= _MANY_TILES:
        heuristic_tiles = best_tiles(problem, heuristics)
    else:
        heuristic_tiles = tuple(solve(problem, objective, options).tile for objective in heuristics)
    found = solve_latency(problem, cost, heuristic_tiles, prune=prune)
    return replace(found, seconds=time.perf_counter() - start)
