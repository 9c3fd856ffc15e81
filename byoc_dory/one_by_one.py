"""The published schedule: every layer has L1 to itself, single-buffered."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from byoc_dory.plan import LayerPlan, PlacedBuffer, RegionPlan, alone

if TYPE_CHECKING:
    from byoc_dory.cost import Cost
    from byoc_dory.layers import Layer
    from byoc_dory.soc.base import Accelerator
    from byoc_dory.tiling import Solution, TilingProblem

_LOG = logging.getLogger(__name__)


def plan_one_by_one(
    layers: Sequence[Layer], homes: Mapping[str, Accelerator], cost: Cost
) -> RegionPlan:
    """Return the plan of layers that have L1 to themselves, each with its best tile.

    Args:
        layers: layers in execution order.
        homes: the accelerator of each layer, by the layer's name.
        cost: cycles on the SoC, with the options of the tiler.

    Raises:
        TargetError: the objective is unknown.
        TilingError: no tile of a layer fits.
    """
    solutions: dict[tuple[object, ...], Solution] = {}
    plans, problems, cycles = [], [], 0
    for layer in layers:
        accelerator = homes[layer.name]
        problem = accelerator.problem(cost.soc, layer, cost.options)
        problems.append(problem)
        key = (*cost.alike(accelerator, layer), cost.options.tiles_for(layer.name))
        if key not in solutions:
            solutions[key] = cost.best_tile(accelerator, layer)
        _LOG.debug("%s: tile %s (%s)", layer.name, solutions[key].tile, solutions[key].solver)
        plan = alone(layer, solutions[key], accelerator.name, problem)
        cycles += cost.of(accelerator, layer)(plan)
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
