"""Layers whose last tile the next one waits for, and completes (`Accelerator.leaving`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from byoc_dory.plan import LayerPlan, Preload
from byoc_dory.residency.tiler import Tiler


def leave_last(
    tilers: Sequence[Tiler],
    plans: Sequence[LayerPlan],
    allowed: Mapping[int, bool],
    early: Mapping[int, int],
    starts: Mapping[int, int],
) -> tuple[list[LayerPlan], int]:
    """Return plans under which layers leave their last tile to the next, where that saves cycles.

    A layer may have tiles of another height then, so that the engine is busy with the last one
    while the cores complete the one before.

    Args:
        tilers, plans: of the layers; what is loaded early is decided.
        allowed: the layers that may have other tiles than planned: those with true.
        early: the layers whose constants others load, each with the one that does.
        starts: layers that are started before their turn, which neither leave nor complete tiles.

    Returns:
        The plans, and the predicted cycles saved.
    """
    result = list(plans)
    # Backwards, as the next layer's tiles decide which of them do not depend on the last one.
    for number in range(len(result) - 1, 0, -1):
        before, plan = result[number - 1 : number + 1]
        cost, next_cost = tilers[number - 1].cost, tilers[number].cost
        if before.ahead or plan.ahead or number - 1 in starts or number in starts:
            continue
        best = cost.of(before) + next_cost.of(plan)
        for own, tiles in cost.leaving(before, next_cost, plan):
            if own.solution.tile != before.solution.tile and not allowed.get(number - 1):
                continue
            following = replace(plan, left=cost.left(own, tiles))
            cycles = cost.of(own) + next_cost.of(following)
            if cycles < best:
                best, result[number - 1 : number + 1] = cycles, [own, following]
    saved = 0
    for number, tiler in enumerate(tilers):
        plan = result[number]
        if plan.left is not None:
            left = tilers[number - 1].cost.left(result[number - 1], plan.left.tiles)
            plan = result[number] = replace(plan, left=left)
        if number in early and plan.solution != plans[number].solution:
            size = tiler.cost.first_constants(replace(plan, preloaded=False))
            preload = Preload(size, plan.l1_weights)
            result[early[number]] = replace(result[early[number]], preload=preload)
    for tiler, before, plan in zip(tilers, plans, result, strict=True):
        if before != plan:
            saved += tiler.cost.of(before) - tiler.cost.of(plan)
    return result, saved
