"""`Cost`: the cycles that layers take on a SoC under options of the tiler.

There are three answers for a layer on an accelerator, from the one that knows most to the one that
knows least: of a plan (`Cost.layer_cost`), with the tiles and residents that a region's planning
chose; of the layer's own best choice where the same tensors stay in L1 (`Cost.best_cycles`),
double-buffered under schedules that overlap; and of its best tile by itself (`Cost.cycles_alone`),
with one buffer and all operands in L2, by which placement compares cores before regions are known.
All are computed from the accelerator's tile programs.  On the host (`Cost.host`) they are estimates
from sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias

from byoc_dory.layers import (
    CachedAttention,
    Combination,
    Convolution,
    Dense,
    Elementwise,
    Layer,
    Matmul,
    Pool,
    Rows,
)
from byoc_dory.layers.rowwise import ItaGelu, TableMap
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, plan_alone
from byoc_dory.residency import ChoiceCache
from byoc_dory.residency.choices import LayerChoices
from byoc_dory.residency.tiler import CostAnswers, LayerCost, Tiler
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tiling import Objective, Solution, Tile, TilingProblem, quickest, solve
from byoc_dory.tiling.objectives import objective_named
from byoc_dory.tiling.problem import solution_of
from byoc_dory.work import Work

Basis: TypeAlias = Literal["predicted", "measured", "estimated"]
"""An accelerator's cost model; the code itself, simulated; or sizes, where neither is there."""


class HostEstimates:
    """Estimated cycles on one core of a SoC's host.

    Args:
        soc: description of the SoC.
    """

    basis: ClassVar[Basis] = "estimated"
    """Of all answers."""

    def __init__(self, soc: Soc) -> None:
        self._cost = soc.host.cost

    def layer(self, layer: Layer) -> int:
        """Return the cycles of a layer."""
        cost = self._cost
        if isinstance(layer, CachedAttention):
            # Besides two products: softmax, and four other steps from a product to a weight.
            element_cycles = cost.softmax_element + 4 * cost.move_element
            return round(
                layer.macs * cost.pointwise_mac + layer.macs // (2 * layer.C) * element_cycles
            )
        match layer:
            case Elementwise():
                element_cycles, elements = (
                    cost.add_element,
                    layer.output.elements * (len(layer.inputs) - 1),
                )
            case Rows(function=TableMap() | ItaGelu()):
                element_cycles, elements = cost.move_element, layer.output.elements
            case Rows():
                element_cycles, elements = cost.softmax_element, layer.output.elements
            case Combination():
                steps = 1 + sum(table is not None for table in layer.tables)
                element_cycles, elements = steps * cost.move_element, layer.output.elements
            case Pool():
                element_cycles = cost.pool_element
                elements = layer.output.elements * layer.fy * layer.fx
            case Dense() | Matmul():
                element_cycles, elements = cost.dense_mac, layer.macs
            case Convolution(depthwise=True):
                element_cycles, elements = cost.depthwise_mac, layer.macs
            case Convolution() if (layer.fy, layer.fx) != (1, 1):
                element_cycles, elements = cost.conv_mac, layer.macs
            case _:
                element_cycles, elements = cost.pointwise_mac, layer.macs
        return round(element_cycles * elements)

    def operator(self, work: Work, read: int, written: int) -> int | None:
        """Return the cycles of an operator without a `Layer`; ``None`` if unknown.

        Args:
            work: kind of work of the operator.
            read: number of elements read, counting repeated reads.
            written: number of elements of its result.
        """
        cost = self._cost
        element_cycles, elements = {
            Work.NOTHING: (0.0, 0),
            Work.MOVE: (cost.move_element, written),
            Work.SUM: (cost.add_element, written),
            Work.WINDOW: (cost.pool_element, read),
            Work.SOFTMAX: (cost.softmax_element, written),
            Work.REAL: (cost.real_element, max(read, written)),
        }.get(work, (None, 0))
        return None if element_cycles is None else round(element_cycles * elements)

    def conversion(self, size: int) -> int:
        """Return the cycles of converting ``size`` bytes to or from an accelerator's layout."""
        return round(self._cost.layout_byte * size)


class Cost:
    """Answers how many cycles layers take, and remembers it for all layers that are alike.

    The stages of a build hand it on, so that each asks only what none before has asked.

    Args:
        soc: description of the SoC.
        options: options of the tiler.
        other: another one for the same SoC, whose answers hold here where the model reads nothing
            of what differs in the options (`Accelerator.counts`).

    Attributes:
        soc, options: as given.
        host: estimates of cycles on the host.
        choices: the choices of layers in regions that were planned with these options.
    """

    basis: ClassVar[Basis] = "predicted"
    """Of all answers but those of ``host``."""

    def __init__(self, soc: Soc, options: TilingOptions, other: Cost | None = None) -> None:
        self.soc = soc
        self.options = options
        self.host = HostEstimates(soc)
        self.choices: ChoiceCache = {}
        self._answers: dict[object, CostAnswers] = {} if other is None else other._answers
        self._cycles_alone: dict[object, int] = {}
        self._best_cycles: dict[object, int] = {}

    def with_options(self, options: TilingOptions) -> Cost:
        """Return the cost on the same SoC under other options."""
        return self if options == self.options else Cost(self.soc, options, self)

    # ------------------------------------------------------------------ plans and tiles

    def cost_key(self, accelerator: Accelerator, layer: Layer) -> tuple[object, ...]:
        """Return a key that is equal for layers that take the same cycles in every tile."""
        return accelerator, accelerator.counts(self.soc, layer, self.options)

    def layer_cost(self, accelerator: Accelerator, layer: Layer) -> LayerCost:
        """Return the predicted cycles of a layer as a function of its plan."""
        answers = self._answers.setdefault(self.cost_key(accelerator, layer), CostAnswers())
        return LayerCost(self.soc, accelerator, layer, self.options, answers)

    def tile_cycles(self, accelerator: Accelerator, layer: Layer, tile: Tile) -> int:
        """Return the predicted cycles with this tile, alone in L1 with one buffer."""
        problem = accelerator.problem(self.soc, layer, self.options)
        plan = plan_alone(layer, solution_of(problem, tile), accelerator.name, problem)
        return self.layer_cost(accelerator, layer)(plan)

    # ------------------------------------------------------------------ layers

    def best_tile(self, accelerator: Accelerator, layer: Layer) -> Solution:
        """Return the best tile of a layer that is alone in L1 with one buffer.

        Raises:
            TargetError: unknown objective.
            TileProgramError: the accelerator's tile program contradicts itself.
            TilingError: no tile fits.
        """
        cost = self.layer_cost(accelerator, layer)
        problem = self._problem(accelerator, layer, cost)
        objective = self._objective(accelerator, layer)
        if objective is not None:
            return solve(problem, objective, self.options)

        def cycles(tile: Tile) -> int:
            return cost(plan_alone(layer, solution_of(problem, tile), accelerator.name, problem))

        return quickest(problem, cycles, accelerator.objectives.values(), self.options)

    def cycles_alone(self, accelerator: Accelerator, layer: Layer) -> int:
        """Return the predicted cycles of a layer with its `best_tile`.

        Raises:
            The errors of `best_tile`.
        """
        key = (*self.cost_key(accelerator, layer), self.options.tiles_for(layer.name))
        if key not in self._cycles_alone:
            tile = self.best_tile(accelerator, layer).tile
            self._cycles_alone[key] = self.tile_cycles(accelerator, layer, tile)
        return self._cycles_alone[key]

    def best_cycles(
        self, accelerator: Accelerator, layer: Layer, plan: LayerPlan | None = None
    ) -> int:
        """Return the predicted cycles of a layer's own best choice, with a plan's residents.

        This tells how a layer would do in place of the planned one, e.g. with other sizes.

        Args:
            accelerator: the accelerator that runs the layer.
            layer: a layer that it takes.
            plan: the plan whose residents are assumed where they fit; ``None`` for no residents.

        Raises:
            The errors of `best_tile`.
        """
        if self.options.schedule == "published":
            return self.tile_cycles(accelerator, layer, self.best_tile(accelerator, layer).tile)
        resident_inputs, resident_output = (False,) * len(layer.inputs), False
        if plan is not None:
            resident_output = plan.resident_output
            if len(plan.resident_inputs) == len(resident_inputs):
                resident_inputs = plan.resident_inputs
        input_names = tuple(tensor.name for tensor in layer.inputs)
        operand_groups = tuple(input_names.index(name) for name in input_names)
        key = (
            *self.cost_key(accelerator, layer),
            operand_groups,
            self._objective_name(layer),
            resident_inputs,
            resident_output,
        )
        if key not in self._best_cycles:
            layer_choices = LayerChoices(
                self.tiler(accelerator, layer), input_names, resident_inputs, resident_output, 0
            )
            # The search for tiles without residents takes longest, so it is left out if possible.
            choices = (
                layer_choices.with_residents(resident_inputs, resident_output)
                if resident_output or any(resident_inputs)
                else []
            )
            self._best_cycles[key] = min(
                choice.cycles for choice in choices or layer_choices.choices
            )
        return self._best_cycles[key]

    def tiler(self, accelerator: Accelerator, layer: Layer) -> Tiler:
        """Return the way to find tiles for a layer of a region.

        Raises:
            TargetError: unknown objective.
            TileProgramError: the accelerator's tile program contradicts itself.
        """
        objective = self._objective(accelerator, layer)
        cost = self.layer_cost(accelerator, layer)
        return Tiler(
            accelerator=accelerator.name,
            problem=self._problem(accelerator, layer, cost),
            cost=cost,
            objective=objective,
            heuristics=tuple(accelerator.objectives.values()),
            options=replace(self.options, objective=self._objective_name(layer)),
            cost_key=self.cost_key(accelerator, layer),
        )

    def _problem(self, accelerator: Accelerator, layer: Layer, cost: LayerCost) -> TilingProblem:
        """Return the tiling problem of a layer, after checking the programs of its smallest tile.

        There is one for each number of buffers that plans may have.
        """
        problem = accelerator.problem(self.soc, layer, self.options)
        if len(accelerator.expand(self.soc, layer)) == 1:
            plan = plan_alone(
                layer, solution_of(problem, problem.smallest), accelerator.name, problem
            )
            cost.check(plan)
            if self.options.overlapping:
                cost.check(replace(plan, buffers=2))
                if problem.inputs_once:
                    cost.check(replace(plan, buffers=2, input_buffers=1))
        return problem

    def _objective_name(self, layer: Layer) -> str | None:
        """Return the name of the objective that the options give for a layer, if any."""
        return dict(self.options.layers).get(layer.name, self.options.objective)

    def _objective(self, accelerator: Accelerator, layer: Layer) -> Objective | None:
        """Return what a layer's tiles are chosen for; None for latency."""
        name = self.options.tiles_for(layer.name)
        return objective_named(name, accelerator.objectives, f"accelerator '{accelerator.name}'")
