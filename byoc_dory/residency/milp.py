"""The joint problem as an integer program.

Variables: for each layer one binary variable per choice, exactly one of which is 1; for each tensor
that may stay one binary variable.  A second solve fixes the cycles and prefers choices that are
listed earlier, so that the answer does not depend on the solver's path if several plans are equally
good.
"""

from __future__ import annotations

import pulp

from byoc_dory.residency.problem import Decision, RegionProblem
from byoc_dory.solver import solve_program


def solve_joint(problem: RegionProblem, node_limit: int) -> Decision | None:
    """Return the plan with fewest cycles, or the best one within the node limit, if there is one.

    Raises:
        TilingError: the solver returned an unusable answer.
    """
    model = _Model(problem)
    model.lp.setObjective(model.cycles)
    outcome = solve_program(model.lp, node_limit)
    if not outcome.found:
        return None
    picks, stays = model.answer()
    fastest = problem.decision(picks, stays, 0, "milp")
    if not outcome.proven:
        bound = int(fastest.cycles * (1 - min(1.0, outcome.gap)))
        return problem.decision(picks, stays, max(bound, problem.floor), "milp, node limit")
    best = problem.decision(picks, stays, fastest.cycles, "milp")
    model.lp += model.cycles <= best.cycles + 0.5
    model.lp.setObjective(model.preference)
    if solve_program(model.lp, node_limit).found:
        preferred = problem.decision(*model.answer(), best.cycles, "milp")
        if preferred.cycles == best.cycles:
            return preferred
    return best


class _Model:
    """Variables and constraints."""

    def __init__(self, problem: RegionProblem) -> None:
        self.problem = problem
        self.lp = pulp.LpProblem("region", pulp.LpMinimize)
        new = self.lp.add_variable
        self.stay = {
            stay.name: new(f"r{number}", cat=pulp.LpBinary)
            for number, stay in enumerate(problem.stays)
        }
        self.pick = [
            [new(f"z{layer}_{number}", cat=pulp.LpBinary) for number in range(len(offered))]
            for layer, offered in enumerate(problem.choices)
        ]
        for layer in range(len(self.pick)):
            self._layer(layer)
        for group in problem.together:
            names = sorted(group)
            self.lp += pulp.lpSum(self.stay[name] for name in names) <= len(names) - 1

    @property
    def cycles(self) -> pulp.LpAffineExpression:
        """The objective: the sum of cycles."""
        return self._sum(lambda layer, number: self.problem.choices[layer][number].cycles)

    @property
    def preference(self) -> pulp.LpAffineExpression:
        """The second objective: prefers choices that are listed early."""
        return self._sum(lambda _, number: number)

    def answer(self) -> tuple[list[int], list[str]]:
        """Return (picks, tensors that stay) from the solver's solution."""
        picks = [
            max(range(len(row)), key=lambda number, row=row: row[number].value())  # type: ignore[misc]
            for row in self.pick
        ]
        return picks, [name for name, variable in self.stay.items() if variable.value() > 0.5]

    def _sum(self, weight: object) -> pulp.LpAffineExpression:
        assert callable(weight)
        return pulp.LpAffineExpression(
            [
                (variable, weight(layer, number))
                for layer, row in enumerate(self.pick)
                for number, variable in enumerate(row)
            ]
        )

    def _layer(self, layer: int) -> None:
        problem, row = self.problem, self.pick[layer]
        offered = problem.choices[layer]
        self.lp += pulp.lpSum(row) == 1
        demands = [problem.resident(layer, choice) for choice in offered]
        for name in demands[0]:
            if name in self.stay:
                inside = [z for z, demand in zip(row, demands, strict=True) if demand[name]]
                self.lp += pulp.lpSum(inside) == self.stay[name]
        own = pulp.LpAffineExpression(
            [(z, choice.bytes) for z, choice in zip(row, offered, strict=True)]
        )
        held = pulp.LpAffineExpression(
            [(self.stay[stay.name], stay.bytes) for stay in problem.alive[layer]]
        )
        self.lp += own + held <= problem.room(layer)
