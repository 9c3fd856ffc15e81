"""Layers that load the next one's constants while they compute (`Accelerator.preloads`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_dory.plan import LayerPlan, Preload
from byoc_dory.residency.leaving import leave_last
from byoc_dory.residency.tiler import Tiler
from byoc_dory.tiling.problem import solution_of


def preloads_of(
    tilers: Sequence[Tiler],
    plans: Sequence[LayerPlan],
    allowed: Mapping[int, bool],
    starts: Mapping[int, int] | None = None,
) -> tuple[list[LayerPlan], dict[int, int], int]:
    """Return the plans under which layers load the next one's constants, if that saves cycles.

    Args:
        tilers, plans: of the layers.
        allowed: the layers whose constants may be loaded with the layer before, and whether they
            may then compute all channels at once, which takes more of L1.
        starts: layers that are only waited for in their turn, each with the layer before which it
            is started; they load nothing for others.

    Returns:
        The plans, the layers whose constants are loaded early, each with the one that loads them,
        and the predicted cycles saved.
    """
    starts = {} if starts is None else starts
    result, early, saved = list(plans), dict[int, int](), 0
    for number in range(len(plans)):
        loader = layer_before(number, starts)
        if number not in allowed or loader < 0:
            continue
        before, plan = result[loader], result[number]
        if before.ahead or before.preload is not None or not tilers[loader].cost.preloads:
            continue
        if not tilers[number].cost.first_constants(plan):
            continue
        own = tilers[number].cost
        gains = []
        for way in _ways_to_find(tilers[number], plan, whole=allowed[number]):
            size = own.first_constants(replace(way, preloaded=False))
            loading = replace(before, preload=Preload(size, plan.l1_weights))
            gain = tilers[loader].cost.of(before) - tilers[loader].cost.of(loading)
            gains.append((gain + own.of(plan) - own.of(way), loading, way))
        gain, loading, way = max(gains, key=lambda each: each[0])
        if gain > 0:
            early[number] = loader
            saved += gain
            result[loader], result[number] = loading, way
    result, further = leave_last(tilers, result, allowed, early, starts)
    return result, early, saved + further


def layer_before(number: int, starts: Mapping[int, int]) -> int:
    """Return the last layer computed in its turn before this one begins; -1 if there is none."""
    begin = starts.get(number, number)
    return next((layer for layer in reversed(range(begin)) if layer not in starts), -1)


def _ways_to_find(tiler: Tiler, plan: LayerPlan, *, whole: bool) -> Iterator[LayerPlan]:
    """Yield plans of a layer that finds constants: its own, and all channels at once.

    Ranges of channels hide the loads of constants, of which nothing is left to hide.
    """
    yield replace(plan, preloaded=True)
    tile, problem = plan.solution.tile, tiler.problem
    wider = replace(tile, k=problem.k.size)
    if whole and wider != tile and plan.follower is None and problem.tile_fits(wider):
        yield replace(plan, preloaded=True, solution=solution_of(problem, wider))
