"""Planning a region: the tile of every layer, and the offsets of everything in L1."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError, TilingError
from byoc_dory.layers import Add, Layer
from byoc_dory.plan import LayerPlan, PlacedBuffer, RegionPlan, plan_alone
from byoc_dory.region import Region
from byoc_dory.residency import plan_jointly
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tiling import Solution, TilingProblem
from byoc_dory.verdict import Accepted

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
        key = (*cost.cost_key(accelerator, layer), cost.options.tiles_for(layer.name))
        if key not in solutions:
            solutions[key] = cost.best_tile(accelerator, layer)
        _LOG.debug("%s: tile %s (%s)", layer.name, solutions[key].tile, solutions[key].solver)
        plan = plan_alone(layer, solutions[key], accelerator.name, problem)
        cycles += cost.layer_cost(accelerator, layer)(plan)
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
        cycles_alone=cycles,
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


@dataclass(frozen=True, eq=False)
class Expanded:
    """A region whose layers are executed as they are.

    Attributes:
        region: the region, with expanded layers in place of the original ones.
        homes: the accelerator of each layer, by the layer's name.
    """

    region: Region
    homes: Mapping[str, Accelerator]


def expand(cost: Cost, region: Region, accelerator: str | None = None) -> Expanded:
    """Return the layers that a region is executed as.

    Args:
        cost: cycles on the SoC, with the options of the tiler.
        region: the region.
        accelerator: name of the accelerator for layers without a home in the region; the SoC's
            first one by default.

    Raises:
        TargetError: the SoC has no such accelerator.
    """
    soc = cost.soc
    homes = {layer.name: _accelerator(soc, accelerator) for layer in region.layers}
    for layer, name in zip(region.layers, region.homes, strict=False):
        homes[layer.name] = soc.accelerator(name)
    layers: list[Layer] = []
    accelerators: dict[str, Accelerator] = {}
    for layer in region.layers:
        home = homes[layer.name]
        parts = [
            (part, home if name == home.name else soc.accelerator(name))
            for part, name in home.expand(soc, layer)
        ]
        others = [other for _, other in parts]
        for part, own in parts:
            layers.append(part)
            accelerators[part.name] = _quickest(own, others, part, cost)
    return Expanded(replace(region, layers=tuple(layers), homes=()), accelerators)


def _quickest(
    own: Accelerator, others: Sequence[Accelerator], part: Layer, cost: Cost
) -> Accelerator:
    """Return the accelerator of a part of a layer: its own, or a quicker one of another part.

    Only those are asked that compute something else with the same result (`Accelerator.instead`).
    """
    if cost.options.schedule == "published":
        return own
    answers = {own.name: own}
    for other in others:
        if other.instead(part) and isinstance(other.judge(cost.soc, part), Accepted):
            answers.setdefault(other.name, other)
    if len(answers) == 1:
        return own
    return min(answers.values(), key=lambda each: _cycles_alone(each, part, cost))


def _cycles_alone(accelerator: Accelerator, layer: Layer, cost: Cost) -> float:
    try:
        return cost.cycles_alone(accelerator, layer)
    except TilingError:
        return inf


def _accelerator(soc: Soc, name: str | None) -> Accelerator:
    if name is not None:
        return soc.accelerator(name)
    if not soc.accelerators:
        raise TargetError("there is no accelerator to generate code for", where=f"SoC {soc.name}")
    return soc.accelerators[0]


def with_long_before_sums(region: Region, homes: Mapping[str, Accelerator]) -> Region:
    """Return the region with the longest operand of each add directly before it.

    An accelerator that takes the next layer along (`Accelerator.takes_next`) hides most of an add
    behind a long layer, and little behind a short one.  Layers move only past those that do not
    read their results.  Without such an add, the region itself is returned.
    """
    layers = list(region.layers)
    for add in [layer for layer in layers if isinstance(layer, Add)]:
        position = layers.index(add)
        reads = {tensor.name for tensor in add.inputs}
        writers = [layer for layer in layers[:position] if layer.output.name in reads]
        writers_ahead = [layer for layer in writers if homes[layer.name].takes_next]
        if not writers_ahead:
            continue
        longest = max(writers_ahead, key=lambda layer: layer.macs)
        between = layers[layers.index(longest) + 1 : position]
        passes = all(
            longest.output.name not in [tensor.name for tensor in layer.inputs] for layer in between
        )
        if between and passes:
            layers.remove(longest)
            layers.insert(position - 1, longest)
    if layers == list(region.layers):
        return region
    return replace(region, layers=tuple(layers))


def plan_region(
    region: Region,
    homes: Mapping[str, Accelerator],
    cost: Cost,
    state_offsets: Mapping[str, int] | None = None,
    starts: Mapping[str, int] | None = None,
    host: Callable[[int], int] = lambda number: 0,
) -> RegionPlan:
    """Return the plan of each layer of a region.

    Under the published schedule every layer has L1 to itself, single-buffered; under the decoupled
    one double-buffered.  Under the overlapped one, tiles, double buffers and the tensors that stay
    in L1 between layers are chosen together.

    Args:
        region: its layers, and the tensors that leave it.
        homes: the accelerator of each layer, by the layer's name; it takes the layer.
        cost: cycles on the SoC, with the options of the tiler.
        state_offsets: under the overlapped schedule, byte offset in L1 of each input that is there
            before and after the region; the budget in the options ends before these.
        starts: under the overlapped schedule, layers that are started before their turn: name of
            each, and number of the layer before which it is started.
        host: returns the cycles of other work of the host while a layer that was started computes,
            by the layer's number.

    Raises:
        TargetError: the objective is unknown.
        TilingError: no tile of a layer fits, or not all that is under way at a time.
    """
    schedule = cost.options.schedule
    if schedule == "published":
        return plan_one_by_one(region.layers, homes, cost)
    stored = {
        layer.output.name: homes[layer.name].layout(cost.soc).stored_bytes(layer.output)
        for layer in region.layers
    }
    tilers = [cost.tiler(homes[layer.name], layer) for layer in region.layers]
    leaving = list(stored)
    if schedule == "overlapped":
        leaving = [tensor.name for tensor in region.outputs]
        tensors = [each for layer in region.layers for each in (*layer.inputs, layer.output)]
        leaving += [
            name
            for tensor in tensors
            if tensor.stored is not tensor
            for name in (tensor.name, tensor.stored.name)
        ]
    numbers = {layer.name: number for number, layer in enumerate(region.layers)}
    begins = {numbers[name]: first for name, first in (starts or {}).items()}
    in_place = [
        number
        for number, first in begins.items()
        if homes[region.layers[number].name].overwrites(region.layers[number])
        and not _others_read(region.layers, number, first)
    ]
    plan = plan_jointly(
        region.layers, tilers, stored, leaving, region.name, state_offsets, cost.choices, begins,
        in_place,
    )  # fmt: skip
    return _with_starts(plan, region, homes, cost, begins, host) if begins else plan


def _others_read(layers: Sequence[Layer], number: int, first: int) -> bool:
    """Return whether other layers read a layer's operands from layer ``first`` on."""
    own = {tensor.name for tensor in layers[number].inputs}
    others = (*layers[first:number], *layers[number + 1 :])
    return any(tensor.name in own for other in others for tensor in other.inputs)


def _with_starts(
    plan: RegionPlan,
    region: Region,
    homes: Mapping[str, Accelerator],
    cost: Cost,
    starts: Mapping[int, int],
    host: Callable[[int], int],
) -> RegionPlan:
    """Return the plan with layers that are started, and the cycles that this saves."""
    cycles = [
        cost.layer_cost(homes[layer.name], layer).of(own)
        for layer, own in zip(region.layers, plan.layers, strict=True)
    ]
    plans, saved = list(plan.layers), plan.saved_cycles
    for number, first in starts.items():
        layer, home = region.layers[number], homes[region.layers[number].name]
        beside = sum(cycles[first:number]) + host(number)
        hidden = min(beside, home.started_cycles(cost.soc, layer, cost.options))
        plans[number] = replace(plan.layers[number], hidden=hidden)
        apart = home.plan_cost(cost.soc, layer, plans[number], cost.options)
        saved += cycles[number] - apart + hidden
    return replace(plan, layers=tuple(plans), starts=starts, saved_cycles=saved)
