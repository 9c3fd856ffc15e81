"""Exploring tilings: sweeps over objectives, their weights and L1 budgets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions, check_count
from byoc_dory.plan import LayerPlan, plan_alone
from byoc_dory.residency import plan_jointly
from byoc_dory.residency.tiler import Tiler
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tiling import (
    LATENCY,
    Objective,
    Shortage,
    Tile,
    TilingProblem,
    quickest,
    shortage_of,
    solve,
)
from byoc_dory.tiling.objectives import objective_named
from byoc_dory.tiling.problem import solution_of

Status: TypeAlias = Literal["optimal", "feasible", "infeasible"]


@dataclass(frozen=True)
class Sweep:
    """The choices to try; all combinations are tried.

    Attributes:
        objectives: names of the accelerator's objectives, ``"latency"``, or the user's own
            objectives; empty for all of the accelerator's and ``"latency"``.
        alphas: weights of a byte of L1 in every objective except ``"latency"``; empty to keep each
            objective's own.
        betas: weights by the name of the heuristic, for the objectives that have this heuristic.
        l1_budgets: L1 budgets in bytes; empty for that of ``options``.
        options: all other options of the tiler.

    Raises:
        TargetError: a weight or a budget is not a whole number.
    """

    objectives: tuple[str | Objective, ...] = ()
    alphas: tuple[int, ...] = ()
    betas: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    l1_budgets: tuple[int, ...] = ()
    options: TilingOptions = TilingOptions()

    def __post_init__(self) -> None:
        for budget in self.l1_budgets:
            check_count("l1_budgets", budget)
        weights = {"alphas": self.alphas, **{f"betas[{k!r}]": v for k, v in self.betas.items()}}
        for option, values in weights.items():
            for value in values:
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TargetError(
                        f"{option} cannot be {value!r}",
                        where=f"option '{option}'",
                        hint="give whole numbers; weights are relative to each other",
                    )

    def variants(self, accelerator: Accelerator) -> tuple[Objective | None, ...]:
        """Return every objective to try, with all weights; None stands for latency.

        Raises:
            TargetError: the accelerator has no such objective, or none of the objectives has such a
                heuristic.
        """
        names = self.objectives or (*accelerator.objectives, LATENCY)
        chosen = [_named(entry, accelerator) for entry in names]
        known = {term.name for entry in chosen if entry is not None for term in entry.heuristics}
        for name in self.betas:
            if name not in known:
                raise TargetError(
                    f"there is no heuristic {name!r}",
                    where=f"objectives of accelerator '{accelerator.name}'",
                    hint=f"one of {', '.join(sorted(known)) or 'none: give other objectives'}",
                )
        found: list[Objective | None] = []
        for entry in chosen:
            found += [None] if entry is None else self._weighted(entry)
        return tuple(dict.fromkeys(found))

    def _weighted(self, objective: Objective) -> Iterator[Objective]:
        terms = objective.heuristics
        choices = [self.betas.get(term.name, (term.weight,)) for term in terms]
        for alpha in self.alphas or (objective.alpha,):
            for weights in itertools.product(*choices):
                weighted = tuple(
                    replace(term, weight=weight)
                    for term, weight in zip(terms, weights, strict=True)
                )
                yield replace(objective, alpha=alpha, heuristics=weighted)


def _named(entry: str | Objective, accelerator: Accelerator) -> Objective | None:
    if isinstance(entry, Objective):
        return entry
    return objective_named(entry, accelerator.objectives, f"accelerator '{accelerator.name}'")


@dataclass(frozen=True)
class Tried:
    """The result for one layer, one objective and one budget.

    Attributes:
        layer, op, shape: the layer's name, operator and sizes.
        accelerator: name of the accelerator.
        objective: name of the objective.
        alpha: weight of a byte of L1; None for latency.
        betas: (name, weight) of each heuristic.
        l1_budget: L1 budget in bytes.
        status: whether the tile is proven to be the objective's best.
        tile: the tile; None if none fits, and then also all the following.
        tiles: number of tiles.
        buffers: copies of the tile in L1: 2 if transfers overlap with computation.
        cycles: predicted cycles of the layer alone, with the chosen schedule.
        optimum: cycles of the fastest tile found under this budget.
        utilisation: MACs divided by the array's peak in these cycles; None for an add, too.
        l1_in, l1_out, l1_weights: bytes of one copy of the tile; weights also in another memory.
        solver: the solver that found the tile.
        seconds: time it took.
        shortage: the reason if no tile fits.
        energy_uj: energy in microjoules: the SoC's published average power while this accelerator
            works, times ``cycles``; None if the description has no power.
        l1_bytes: bytes of L1 that all copies of the tile take, weights only where they are in L1.
    """

    layer: str
    op: str
    shape: str
    accelerator: str
    objective: str
    alpha: int | None
    betas: tuple[tuple[str, int], ...]
    l1_budget: int
    status: Status
    tile: Tile | None = None
    tiles: int | None = None
    buffers: int | None = None
    cycles: int | None = None
    optimum: int | None = None
    utilisation: float | None = None
    l1_in: int | None = None
    l1_out: int | None = None
    l1_weights: int | None = None
    solver: str = ""
    seconds: float = field(default=0.0, compare=False)
    shortage: Shortage | None = None
    energy_uj: float | None = None
    l1_bytes: int | None = None

    @property
    def gap(self) -> float | None:
        """Slowdown against the fastest tile, as a fraction of its cycles."""
        if self.cycles is None or not self.optimum:
            return None
        return self.cycles / self.optimum - 1


def explore_layer(
    soc: Soc, accelerator: Accelerator, layer: Layer, sweep: Sweep
) -> Iterator[Tried]:
    """Tile one layer in every combination of the sweep, budget by budget.

    A budget that no tile fits is a result (``status="infeasible"``), not an error.

    Raises:
        TargetError: an objective or a heuristic is unknown.
    """
    variants = sweep.variants(accelerator)
    for budget in sweep.l1_budgets or (sweep.options.l1_budget,):
        options = replace(sweep.options, l1_budget=budget)
        problem = accelerator.problem(soc, layer, options)
        yield from _Budget(soc, accelerator, layer, options, problem).try_all(variants)


class _Budget:
    """One layer with one budget."""

    def __init__(
        self,
        soc: Soc,
        accelerator: Accelerator,
        layer: Layer,
        options: TilingOptions,
        problem: TilingProblem,
    ) -> None:
        self.layer = layer
        self.accelerator = accelerator
        self.soc = soc
        self.options = options
        self._cycles = Cost(soc, options).layer_cost(accelerator, layer)
        self.problem = problem

    def try_all(self, variants: Sequence[Objective | None]) -> Iterator[Tried]:
        """Yield one result per variant."""
        lacking = shortage_of(self.problem)
        if lacking is not None:
            for variant in variants:
                yield replace(self._head(variant), shortage=lacking)
            return
        rivals = [entry for entry in variants if entry is not None]
        heuristics = tuple(dict.fromkeys([*rivals, *self.accelerator.objectives.values()]))
        # Latency first, even if not requested: the others are compared with it.
        plans = {}
        for variant in dict.fromkeys([None, *variants]):
            start = time.perf_counter()
            plan = self._plan(variant, heuristics)
            plans[variant] = plan, self._cycles(plan), time.perf_counter() - start
        # The overlapped schedule's planner gives up a few percent of latency for smaller weights.
        optimum = min(cycles for _, cycles, _ in plans.values())
        for variant in variants:
            plan, cycles, seconds = plans[variant]
            yield self._tried(variant, plan, cycles, optimum, seconds)

    def _plan(self, objective: Objective | None, heuristics: tuple[Objective, ...]) -> LayerPlan:
        """Return the plan of the layer with L1 to itself; without an objective, the fastest."""
        if self.options.overlapping:
            return self._overlapped(objective, heuristics)
        if objective is None:
            found = quickest(self.problem, self._cycles_of_tile, heuristics, self.options)
        else:
            found = solve(self.problem, objective, self.options)
        return plan_alone(self.layer, found, self.accelerator.name, self.problem)

    def _overlapped(
        self, objective: Objective | None, heuristics: tuple[Objective, ...]
    ) -> LayerPlan:
        output = self.layer.output
        tiler = Tiler(
            accelerator=self.accelerator.name,
            problem=self.problem,
            cost=self._cycles,
            objective=objective,
            heuristics=heuristics,
            # If requested by name, latency is not traded for room in L2.
            options=self.options if objective else replace(self.options, objective=LATENCY),
        )
        stored = {output.name: self.accelerator.layout(self.soc).stored_bytes(output)}
        region = plan_jointly([self.layer], [tiler], stored, [output.name], self.layer.name)
        return region.layers[0]

    def _cycles_of_tile(self, tile: Tile) -> int:
        solution = solution_of(self.problem, tile)
        return self._cycles(plan_alone(self.layer, solution, self.accelerator.name, self.problem))

    def _head(self, variant: Objective | None) -> Tried:
        terms = () if variant is None else variant.terms(self.problem)
        return Tried(
            layer=self.layer.name,
            op=self.layer.op,
            shape=self.layer.shape_text,
            accelerator=self.accelerator.name,
            objective=LATENCY if variant is None else variant.name,
            alpha=None if variant is None else variant.alpha,
            betas=tuple((term.name, term.weight) for term in terms),
            l1_budget=self.problem.l1_limit,
            status="infeasible",
        )

    def _tried(
        self,
        variant: Objective | None,
        plan: LayerPlan,
        cycles: int,
        optimum: int,
        seconds: float,
    ) -> Tried:
        found = plan.solution
        peak = self.accelerator.peak_macs
        power = self.soc.power(self.accelerator.name)
        weights = found.l1_weights if self.problem.weights.in_l1 else 0
        return replace(
            self._head(variant),
            status=found.status,
            tile=found.tile,
            tiles=_count(self.problem, found.tile),
            buffers=plan.buffers,
            cycles=cycles,
            energy_uj=None if power is None else power.milliwatts * self.soc.cycles_to_ms(cycles),
            optimum=optimum,
            utilisation=self.layer.macs / (cycles * peak) if peak and self.layer.macs else None,
            l1_in=found.l1_in,
            l1_out=found.l1_out,
            l1_weights=found.l1_weights,
            l1_bytes=plan.buffers * (found.l1_in + found.l1_out + weights),
            solver=found.solver,
            seconds=seconds,
        )


def _count(problem: TilingProblem, tile: Tile) -> int:
    """Return the number of tiles of a layer."""
    count = 1
    for axis, size in zip(problem.axes, (tile.k, tile.c, tile.y, tile.x), strict=True):
        count *= -(-axis.size // size)
    return count
