"""Solving the tiling program: proofs, limits, tie-breaks, and a check of every answer.

Ties are broken in a second solve that fixes the objective and prefers large k, then y, x and c, so
that the answer does not depend on the solver's path if several tiles are equally good.
"""

from __future__ import annotations

import time

from byoc_dory.errors import TilingError
from byoc_dory.solver import solve_program
from byoc_dory.tiling.model import TilingModel
from byoc_dory.tiling.objectives import Objective
from byoc_dory.tiling.problem import Solution, Tile, TilingProblem
from byoc_dory.tiling.shortage import require_feasible


def solve_milp(problem: TilingProblem, objective: Objective, node_limit: int) -> Solution:
    """Solve to proven optimality, or to the node limit with a stated gap.

    Raises:
        TilingError: no tile fits, or the solver returned an unusable answer.
    """
    start = time.perf_counter()
    require_feasible(problem)
    model = TilingModel(problem, objective)
    model.lp.setObjective(model.total)
    outcome = solve_program(model.lp, node_limit)
    if not outcome.found:
        raise TilingError(
            f"the solver found no tile within {node_limit} nodes ({outcome.status})",
            where=f"layer '{problem.name}'",
            hint="raise the node limit or use solver='exhaustive'",
        )
    best = _checked_tile(problem, objective, model.tile())
    nodes = outcome.nodes
    if outcome.proven:
        best, more = _preferred_tile(model, best, node_limit)
        nodes += more
    return Solution(
        best,
        *problem.memory(best),
        objective=objective.of(problem, best),
        objective_name=objective.name,
        status="optimal" if outcome.proven else "feasible",
        gap=0.0 if outcome.proven else outcome.gap,
        solver="milp",
        nodes=nodes,
        seconds=time.perf_counter() - start,
    )


def _preferred_tile(model: TilingModel, best: Tile, node_limit: int) -> tuple[Tile, int]:
    """Return the preferred tile among those as good as ``best``, and the nodes used."""
    problem, objective = model.problem, model.objective
    value = objective.of(problem, best)
    # Values are integers, so half a unit of slack admits only equal values.
    model.lp += model.total >= value - 0.5
    model.lp.setObjective(model.preference())
    outcome = solve_program(model.lp, node_limit)
    if not outcome.found:
        return best, outcome.nodes
    preferred = _checked_tile(problem, objective, model.tile())
    if objective.of(problem, preferred) != value:
        raise TilingError(
            f"the solver called {best} optimal with {value}, then found {preferred} with "
            f"{objective.of(problem, preferred)}",
            where=f"layer '{problem.name}'",
            hint="use solver='exhaustive' for this layer and report the case",
        )
    return preferred, outcome.nodes


def _checked_tile(problem: TilingProblem, objective: Objective, tile: Tile) -> Tile:
    """Check a solver's tile with the exact memory functions."""
    if not problem.tile_fits(tile):
        raise TilingError(
            f"the solver's tile ({tile}) breaks a limit: {problem.memory(tile)} B of input, "
            f"output and weights",
            where=f"layer '{problem.name}', objective '{objective.name}'",
            hint="use solver='exhaustive' for this layer and report the case",
        )
    return tile
