"""Integer programs, solved the same way on every machine: HiGHS through PuLP.

Deterministic: one thread, a fixed seed, a node limit and no time limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import pulp

_SEED = 0
# Objective values are integers; a gap below one unit counts as closed.
_GAP = 1e-3
# Products of sizes reach 1e5 bytes; this tight integrality keeps them exact to well below a byte.
_INTEGRALITY = 1e-9


@dataclass(frozen=True)
class Outcome:
    """How a search ended: with a proof, with a solution, or with neither.

    Attributes:
        proven: whether the solution in the program's variables is an optimum.
        found: whether there is a solution in the program's variables.
        gap: bound minus objective, relative to the objective; infinite without a solution.
        nodes: number of branch-and-bound nodes.
        status: the solver's own status text.
    """

    proven: bool
    found: bool
    gap: float
    nodes: int
    status: str


class _NodeLimitedHiGHS(pulp.HiGHS):  # type: ignore[misc]
    """PuLP's interface to HiGHS, extended by the status at a node limit."""

    def findSolutionValues(self, lp: pulp.LpProblem) -> tuple[int, int]:  # noqa: N802
        highs = lp.solverModel
        if highs.getModelStatus() != highspy.HighsModelStatus.kSolutionLimit:
            status: tuple[int, int] = super().findSolutionValues(lp)
            return status
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


def solve_program(lp: pulp.LpProblem, node_limit: int) -> Outcome:
    """Solve a program with an integer-valued objective; the solution is in its variables.

    Args:
        lp: the program, with its objective.
        node_limit: branch-and-bound nodes after which the search ends.
    """
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
    # PuLP reports several ways to stop as "Optimal"; the solver's own status and sol_status decide.
    proven = status == highspy.HighsModelStatus.kOptimal
    return Outcome(
        proven=proven and lp.sol_status == pulp.LpSolutionOptimal,
        found=lp.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible),
        gap=float(info.mip_gap),
        nodes=max(0, int(info.mip_node_count)),
        status=lp.solverModel.modelStatusToString(status),
    )
