"""Solving the tiling program with HiGHS: proofs, limits, tie-breaks, replay of every answer.

Determinism: one thread, a fixed seed, a node limit and no clock; ties are broken in a second
solve that fixes the objective and prefers large k, then y, x and c.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import highspy
import pulp

from byoc_dory.errors import TilingError
from byoc_dory.tiling.model import TilingModel
from byoc_dory.tiling.objectives import Objective
from byoc_dory.tiling.problem import Solution, Tile, TilingProblem

__all__ = ["solve_milp"]

_SEED = 0
# Objective values are integers; anything below one unit is as good as closed.
_GAP = 1e-3
# Products of sizes reach 1e5 bytes; integrality this tight keeps them exact to well below a byte.
_INTEGRALITY = 1e-9


class _NodeLimitedHiGHS(pulp.HiGHS):
    """PuLP's interface to HiGHS, which does not know the status at a node limit."""

    def findSolutionValues(self, lp: pulp.LpProblem) -> tuple[int, int]:  # noqa: N802
        highs = lp.solverModel
        if highs.getModelStatus() != highspy.HighsModelStatus.kSolutionLimit:
            return super().findSolutionValues(lp)
        values = highs.getSolution().col_value
        for variable in lp.variables():
            variable.varValue = values[variable.index]
        found = (
            highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        )
        return (
            pulp.LpStatusNotSolved,
            pulp.LpSolutionIntegerFeasible if found else pulp.LpSolutionNoSolutionFound,
        )


@dataclass(frozen=True)
class _Outcome:
    """How a solve ended: with a proof, with some tile, or with nothing."""

    proven: bool
    found: bool
    gap: float
    nodes: int
    status: str


def solve_milp(problem: TilingProblem, objective: Objective, node_limit: int) -> Solution:
    """Solve to proven optimality, or to the node limit with a stated gap.

    Raises:
        TilingError: where no tile fits, or the solver returned an unusable answer.
    """
    start = time.perf_counter()
    problem.require_feasible()
    model = TilingModel(problem, objective)
    model.lp.setObjective(model.total)
    outcome = _run(model.lp, node_limit)
    if not outcome.found:
        raise TilingError(
            f"the solver found no tile within {node_limit} nodes ({outcome.status})",
            where=f"layer '{problem.name}'",
            hint="raise the node limit or use solver='exhaustive'",
        )
    best = _checked(problem, objective, model.tile())
    nodes = outcome.nodes
    if outcome.proven:
        best, more = _preferred(model, best, node_limit)
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


def _preferred(model: TilingModel, best: Tile, node_limit: int) -> tuple[Tile, int]:
    """The preferred tile among those as good as ``best``, and the nodes it took."""
    problem, objective = model.problem, model.objective
    value = objective.of(problem, best)
    # Values are integers, so half a unit of slack admits equals only.
    model.lp += model.total >= value - 0.5
    model.lp.setObjective(model.preference())
    outcome = _run(model.lp, node_limit)
    if not outcome.found:
        return best, outcome.nodes
    preferred = _checked(problem, objective, model.tile())
    if objective.of(problem, preferred) != value:
        raise TilingError(
            f"the solver called {best} optimal with {value}, then found {preferred} with "
            f"{objective.of(problem, preferred)}",
            where=f"layer '{problem.name}'",
            hint="use solver='exhaustive' for this layer and report the case",
        )
    return preferred, outcome.nodes


def _run(lp: pulp.LpProblem, node_limit: int) -> _Outcome:
    """Solve what is in ``lp``."""
    lp.solve(
        _NodeLimitedHiGHS(
            msg=False,
            threads=1,
            gapRel=0.0,
            gapAbs=_GAP,
            random_seed=_SEED,
            mip_max_nodes=node_limit,
            mip_feasibility_tolerance=_INTEGRALITY,
        )
    )
    info = lp.solverModel.getInfo()
    status = lp.solverModel.getModelStatus()
    # PuLP calls several stops "Optimal"; the solver's own status and sol_status decide.
    proven = status == highspy.HighsModelStatus.kOptimal
    return _Outcome(
        proven=proven and lp.sol_status == pulp.LpSolutionOptimal,
        found=lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible),
        gap=float(info.mip_gap),
        nodes=max(0, int(info.mip_node_count)),
        status=lp.solverModel.modelStatusToString(status),
    )


def _checked(problem: TilingProblem, objective: Objective, tile: Tile) -> Tile:
    """Replay a solver's tile on the exact memory functions."""
    if not problem.tile_fits(tile):
        raise TilingError(
            f"the solver's tile ({tile}) breaks a limit: {problem.memory(tile)} B of input, "
            f"output and weights",
            where=f"layer '{problem.name}', objective '{objective.name}'",
            hint="use solver='exhaustive' for this layer and report the case",
        )
    return tile
