"""How the tiles of one layer are found, and the predicted cycles of its plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Follower, LayerPlan, Left, plan_alone
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tileloop.checks import check
from byoc_dory.tileloop.cycles import Prices, left_by
from byoc_dory.tiling import Objective, Solution, Tile, TilingProblem
from byoc_dory.tiling.problem import solution_of

_Priced: TypeAlias = "tuple[Tile, tuple[bool, ...], bool]"
_Planned: TypeAlias = "tuple[_Priced, int, int]"


@dataclass(frozen=True)
class CostAnswers:
    """What an accelerator's model has answered about layers that are alike.

    Attributes:
        prices: prices of tiles, which plans share that differ only in the number of buffers.
        plans: cycles of plans, each with the lower bound for any number of buffers.
        checked: the plans whose tile programs were checked.
    """

    prices: defaultdict[_Priced, Prices] = field(default_factory=lambda: defaultdict(Prices))
    plans: dict[_Planned, tuple[int, int]] = field(default_factory=dict)
    checked: set[_Planned] = field(default_factory=set)


class LayerCost:
    """The predicted cycles of one layer's plans; offsets in L1 do not matter.

    Plans that differ only in the number of buffers have the same sums of computations and
    transfers, below which overlap cannot get.

    Args:
        soc: description of the SoC.
        accelerator: the accelerator that runs the layer.
        layer: a layer that the accelerator takes.
        options: options of the tiler.
        answers: answers about layers that are alike; new ones are added.
    """

    def __init__(
        self,
        soc: Soc,
        accelerator: Accelerator,
        layer: Layer,
        options: TilingOptions,
        answers: CostAnswers,
    ) -> None:
        self._soc, self._accelerator, self._layer = soc, accelerator, layer
        self._options, self._answers = options, answers
        self._lower_bounds: dict[_Priced, int] = {}

    def __call__(self, plan: LayerPlan) -> int:
        """Return the predicted cycles under a plan."""
        key = _key(plan)
        answer = self._answers.plans.get(key)
        if answer is None:
            prices = self._answers.prices[key[0]]
            cycles = self._predicted_cycles(plan, prices)
            answer = self._answers.plans[key] = cycles, prices.least
        cycles, self._lower_bounds[key[0]] = answer
        return cycles

    def _predicted_cycles(self, plan: LayerPlan, prices: Prices) -> int:
        """Ask the model; a layer that is executed as several takes what these take one by one."""
        soc, options = self._soc, self._options
        parts = self._accelerator.expand(soc, self._layer)
        if len(parts) == 1:
            return self._accelerator.plan_cost(soc, self._layer, plan, options, prices)
        total = 0
        for part, name in parts:
            accelerator = soc.accelerator(name)
            problem = accelerator.problem(soc, part, options)
            tile = problem.whole if problem.tile_fits(problem.whole) else problem.smallest
            part_plan = plan_alone(part, solution_of(problem, tile), name, problem)
            total += accelerator.plan_cost(soc, part, part_plan, options)
        return total

    def check(self, plan: LayerPlan) -> None:
        """Check the tile program of a plan.

        Raises:
            TileProgramError: the accelerator's tile program contradicts itself.
        """
        key = _key(plan)
        if key not in self._answers.checked:
            check(self._accelerator.tile_program(self._soc, self._layer, plan, self._options))
            self._answers.checked.add(key)

    def followed(self, plan: LayerPlan, follower: Follower) -> tuple[LayerPlan, int] | None:
        """Return a plan under which the next layer is computed beside this one (`followed`)."""
        return self._accelerator.followed(self._soc, self._layer, plan, follower, self._options)

    def first_constants(self, plan: LayerPlan) -> int:
        """Return the bytes of constants that the first tile loads and the layer before could.

        0 if there are none, or the accelerator takes no part (`Accelerator.preloads`).
        """
        if not self._accelerator.preloads or plan.ahead:
            return 0
        program = self._accelerator.tile_program(self._soc, self._layer, plan, self._options)
        first = program.at((0,) * len(program.axes))
        return sum(program.block(each, first).size for each in program.loaded if each.constant)

    @property
    def preloads(self) -> bool:
        """Whether the layer can load the next one's constants."""
        return self._accelerator.preloads

    def leaving(
        self, plan: LayerPlan, following: LayerCost, next_plan: LayerPlan
    ) -> Iterator[tuple[LayerPlan, int]]:
        """Yield plans that leave the last tile to the next layer (`Accelerator.leaving`)."""
        if plan.accelerator == next_plan.accelerator:
            next_layer = Follower(following._layer, next_plan)  # noqa: SLF001
            yield from self._accelerator.leaving(
                self._soc, self._layer, plan, next_layer, self._options
            )

    def left(self, plan: LayerPlan, tiles: int) -> Left:
        """Return what a plan leaves to the next layer; ``tiles`` as in `Left`."""
        soc, layer, options = self._soc, self._layer, self._options
        program = self._accelerator.tile_program(soc, layer, plan, options)
        return left_by(program, self._accelerator.costs(soc, layer, program, options), tiles)

    def of(self, plan: LayerPlan) -> int:
        """Return the predicted cycles under a plan that depends on the layers around this one."""
        return self._predicted_cycles(plan, Prices())

    def lower_bound(
        self, tile: Tile, resident_inputs: tuple[bool, ...], resident_output: bool
    ) -> int:
        """Return a lower bound for any number of buffers; 0 before the first such plan."""
        return self._lower_bounds.get((tile, resident_inputs, resident_output), 0)


def _key(plan: LayerPlan) -> _Planned:
    """Return what cycles depend on of a plan of a layer by itself."""
    assert plan.follower is None and not plan.ahead, plan
    priced = plan.solution.tile, plan.resident_inputs, plan.resident_output
    return priced, plan.buffers, plan.input_buffers


@dataclass(frozen=True)
class Tiler:
    """The way to find tiles for one layer.

    Attributes:
        accelerator: name of the accelerator.
        problem: tiling problem of the layer with all of L1.
        cost: the accelerator's cycle model.
        objective: the heuristic that picks the tiles; ``None`` searches for the fastest.
        heuristics: the accelerator's heuristics, whose tiles are candidates in this search.
        options: options of the tiler.
        cost_key: key that is equal for layers with the same cycles in every tile; regions share
            choices by it.
    """

    accelerator: str
    problem: TilingProblem
    cost: LayerCost
    objective: Objective | None
    heuristics: tuple[Objective, ...]
    options: TilingOptions
    cost_key: tuple[object, ...] = ()

    def plan(
        self,
        solution: Solution,
        buffers: int,
        resident_inputs: tuple[bool, ...],
        resident_output: bool,
        input_buffers: int = 0,
    ) -> LayerPlan:
        """Return a plan of the layer without offsets in L1."""
        return LayerPlan(
            self.accelerator,
            solution,
            buffers,
            resident_inputs,
            resident_output,
            (0,) * len(resident_inputs),
            0,
            input_buffers=input_buffers,
        )
