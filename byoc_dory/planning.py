"""Planning a region: the tile of every layer, and the offsets of everything in L1."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, PlacedBuffer, RegionPlan, alone
from byoc_dory.plan_cost import PlanCost
from byoc_dory.region import Region
from byoc_dory.residency import Known, plan_jointly
from byoc_dory.residency.choices import Offer, Tiler
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tileloop.checks import check
from byoc_dory.tiling import Objective, Solution, Tile, quickest, solve
from byoc_dory.tiling.named import objective_named
from byoc_dory.tiling.problem import TilingProblem, solution_of
from byoc_dory.verdict import Refused

__all__ = ["alike", "cycles_like", "plan_region", "require_accepted", "tile_layer"]

_LOG = logging.getLogger(__name__)


def plan_region(
    region: Region,
    homes: Mapping[str, Accelerator],
    soc: Soc,
    options: TilingOptions,
    held: Mapping[str, int] | None = None,
    known: Known | None = None,
) -> RegionPlan:
    """Return the plan of each layer of a region.

    Under the published schedule every layer has L1 to itself, single-buffered; under the decoupled
    one double-buffered.  Under the overlapped one, tiles, double buffers and the tensors that stay
    in L1 between layers are chosen together.

    Args:
        region: its layers, and the tensors that leave it.
        homes: the accelerator of each layer, by the layer's name.
        soc: description of the SoC.
        options: options of the tiler.
        held: under the overlapped schedule, byte offset in L1 of each input that is there before
            and after the region; the budget in ``options`` ends before these.
        known: choices of layers that were planned for this SoC with these options; new ones are
            added.

    Raises:
        UnsupportedError: an accelerator's rules refuse a layer.
        TargetError: the objective is unknown.
        TilingError: no tile of a layer fits.
    """
    require_accepted(region.layers, homes, soc)
    if options.schedule == "published":
        return _one_by_one(region.layers, homes, soc, options)
    stored = {
        layer.output.name: homes[layer.name].layout(soc).stored_bytes(layer.output)
        for layer in region.layers
    }
    tilers = [_tiler(layer, homes[layer.name], soc, options) for layer in region.layers]
    leaving = list(stored)
    if options.schedule == "overlapped":
        leaving = [tensor.name for tensor in region.outputs]
    return plan_jointly(region.layers, tilers, stored, leaving, region.name, held, known)


def _one_by_one(
    layers: Sequence[Layer],
    homes: Mapping[str, Accelerator],
    soc: Soc,
    options: TilingOptions,
) -> RegionPlan:
    solutions: dict[tuple[Any, ...], Solution] = {}
    plans, problems, cycles = [], [], 0
    for layer in layers:
        accelerator = homes[layer.name]
        problem = accelerator.problem(layer, soc, options)
        problems.append(problem)
        key = (*alike(layer, accelerator, soc, options), options.tiles_for(layer.name))
        if key not in solutions:
            solutions[key] = tile_layer(layer, soc, accelerator, options)
        _LOG.debug("%s: tile %s (%s)", layer.name, solutions[key].tile, solutions[key].solver)
        plan = alone(layer, solutions[key], accelerator.name, problem)
        cycles += accelerator.plan_cost(layer, plan, soc, options)
        plans.append(plan)
    tiles = [plan.solution.tile for plan in plans]
    used = tuple(
        int(problem.l1_bytes(tile.k, tile.c, tile.y, tile.x))
        for problem, tile in zip(problems, tiles, strict=True)
    )
    return RegionPlan(
        layers=tuple(plans),
        resident=(),
        l1_limit=min(problem.l1_limit for problem in problems),
        l1_peak=max(used),
        l1_live=max(used),
        l1_used=used,
        cycles=cycles,
        apart=cycles,
        bound=cycles,
        method="each layer alone",
        l1_map=tuple(
            buffer
            for number, (layer, plan) in enumerate(zip(layers, plans, strict=True))
            for buffer in _buffers_alone(layer, plan, problems[number], number)
        ),
    )


def _buffers_alone(
    layer: Layer, plan: LayerPlan, problem: TilingProblem, number: int
) -> list[PlacedBuffer]:
    """Return the buffers of a layer that has L1 to itself: tiles of its operands and its result."""
    further = problem.fixed.operands
    tiled = len(layer.inputs) - len(further)
    sizes = (plan.solution.l1_in // tiled,) * tiled + further
    found = [
        PlacedBuffer(tensor.name, offset, size, number, number, False)
        for tensor, offset, size in zip(layer.inputs, plan.l1_inputs, sizes, strict=True)
    ]
    result = PlacedBuffer(
        layer.output.name, plan.l1_output, plan.solution.l1_out, number, number, False
    )
    scratch = problem.scratch_bytes(plan.solution.tile.x)
    weights = scratch + (plan.solution.l1_weights if problem.weights.in_l1 else 0)
    if weights:
        name = f"weights of {layer.output.name}"
        found.append(PlacedBuffer(name, plan.l1_weights, weights, number, number, False))
    return [*found, result]


def _tiler(layer: Layer, accelerator: Accelerator, soc: Soc, options: TilingOptions) -> Tiler:
    objective = _objective(layer, accelerator, options)
    chosen = dict(options.layers).get(layer.name, options.objective)
    own = replace(options, objective=chosen)
    return Tiler(
        accelerator=accelerator.name,
        problem=_problem(layer, soc, accelerator, options),
        cost=PlanCost(layer, accelerator, soc, options),
        objective=objective,
        heuristics=tuple(accelerator.objectives.values()),
        options=own,
        alike=alike(layer, accelerator, soc, options),
    )


def alike(
    layer: Layer, accelerator: Accelerator, soc: Soc, options: TilingOptions
) -> tuple[object, ...]:
    """Return a key that is equal for layers that take the same cycles in every tile.

    It has all that a cost model is given, so that whatever the model reads is in it.  Of the
    layer's numbers, the accelerator may leave out what its model does not read
    (`Accelerator.counts`).
    """
    own = replace(options, objective=None, layers=())
    return (accelerator.counts(layer), accelerator, soc, own)


def tile_layer(
    layer: Layer, soc: Soc, accelerator: Accelerator, options: TilingOptions
) -> Solution:
    """Return the best tile under these options.

    Raises:
        TargetError: unknown objective.
        TileProgramError: the accelerator's tile program contradicts itself.
        TilingError: no tile fits.
    """
    problem = _problem(layer, soc, accelerator, options)
    objective = _objective(layer, accelerator, options)
    if objective is None:

        def cycles(tile: Tile) -> int:
            plan = alone(layer, solution_of(problem, tile), accelerator.name, problem)
            return accelerator.plan_cost(layer, plan, soc, options)

        return quickest(problem, cycles, accelerator.objectives.values(), options)
    return solve(problem, objective, options)


def _problem(
    layer: Layer, soc: Soc, accelerator: Accelerator, options: TilingOptions
) -> TilingProblem:
    """Return the tiling problem of a layer, after checking the programs of its smallest tile.

    There is one for each number of buffers that plans may have.
    """
    problem = accelerator.problem(layer, soc, options)
    if len(accelerator.expand(layer, soc)) == 1:
        plan = alone(layer, solution_of(problem, problem.smallest), accelerator.name, problem)
        plans = [plan]
        if options.overlapping:
            plans.append(replace(plan, buffers=2))
            if problem.inputs_once:
                plans.append(replace(plan, buffers=2, input_buffers=1))
        for each in plans:
            check(accelerator.tile_program(layer, each, soc, options))
    return problem


def cycles_like(
    layer: Layer,
    plan: LayerPlan | None,
    soc: Soc,
    accelerator: Accelerator,
    options: TilingOptions,
) -> int:
    """Return the predicted cycles of a layer at its own best tile, with another plan's residents.

    This estimates how a layer with other sizes would do in place of the planned one.

    Args:
        layer: a layer that the accelerator takes.
        plan: the plan whose residents are assumed where they fit; ``None`` for no residents.
        soc: description of the SoC.
        accelerator: the accelerator that runs the layer.
        options: options of the tiler.

    Raises:
        TargetError: the objective is unknown.
        TileProgramError: the accelerator's tile program contradicts itself.
        TilingError: no tile fits.
    """
    if options.schedule == "published":
        solution = tile_layer(layer, soc, accelerator, options)
        problem = accelerator.problem(layer, soc, options)
        own = alone(layer, solution, accelerator.name, problem)
        return accelerator.plan_cost(layer, own, soc, options)
    none = (False,) * len(layer.inputs)
    find = none if plan is None or len(plan.resident_inputs) != len(none) else plan.resident_inputs
    leave = plan is not None and plan.resident_output
    reads = tuple(tensor.name for tensor in layer.inputs)
    offer = Offer(_tiler(layer, accelerator, soc, options), reads, find, leave, 0)
    # The search for tiles without residents takes longest, so it is left out where possible.
    same = offer.with_residents(find, leave) if leave or any(find) else []
    return min(choice.cycles for choice in same or offer.choices)


def require_accepted(layers: Sequence[Layer], homes: Mapping[str, Accelerator], soc: Soc) -> None:
    """Check that the rules of each layer's accelerator accept it.

    Raises:
        UnsupportedError: they refuse a layer; the message has the reason and the rule.
    """
    for layer in layers:
        accelerator = homes[layer.name]
        verdict = accelerator.judge(layer, soc)
        if isinstance(verdict, Refused):
            raise UnsupportedError(
                verdict.reason,
                where=f"layer '{layer.name}' on '{accelerator.name}'",
                hint=f"rule: {verdict.rule}",
            )


def _objective(layer: Layer, accelerator: Accelerator, options: TilingOptions) -> Objective | None:
    """Return what a layer's tiles are chosen for; None for latency."""
    name = options.tiles_for(layer.name)
    return objective_named(name, accelerator.objectives, f"accelerator '{accelerator.name}'")
