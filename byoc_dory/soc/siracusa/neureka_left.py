"""Layers on N-EUREKA whose last tile is left to the next one, which is on it, too.

The next layer writes the registers of its first job while that tile is computed, or while the cores
complete it.  If its first tile reads none of the rows of the last one, its job waits behind that in
the engine's queue, and the engine computes it while the cores complete the last tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byoc_dory.layers import Convolution, Weighted
from byoc_dory.plan import Follower, LayerPlan
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_layer import keeps_some, view_of
from byoc_dory.soc.siracusa.neureka_program import axes_of, neureka_program
from byoc_dory.tiling.problem import TilingProblem, solution_of


def leaving(
    core: Neureka,
    layer: Weighted,
    plan: LayerPlan,
    following: Follower,
    problem: TilingProblem,
) -> Iterator[tuple[LayerPlan, int]]:
    """Yield plans under which the last tile is left (see `Accelerator.leaving`)."""
    if not _may_leave(plan, following):
        return
    for own in _plans(core, layer, plan, problem):
        if _first_is_apart(core, layer, own, following):
            yield own, 1
        yield own, 0


def _may_leave(plan: LayerPlan, following: Follower) -> bool:
    """Whether nothing is to be stored behind the last tile, or loaded or copied for the next."""
    next_layer, next_plan = following.layer, following.plan
    assert isinstance(next_layer, Weighted), next_layer  # on the engine
    return (
        plan.resident_output
        and plan.follower is None
        and all(next_plan.resident_inputs)
        and next_plan.preloaded
        and not view_of(next_layer).copied
    )


def _plans(
    core: Neureka, layer: Weighted, plan: LayerPlan, problem: TilingProblem
) -> Iterator[LayerPlan]:
    """Yield a layer's own plan, and, if all of it is in L1, those with other heights of tiles."""
    yield replace(plan, leaves=True)
    tile = plan.solution.tile
    if not all(plan.resident_inputs) or tile.k != layer.K:
        return
    heights = {*range(core.block, layer.oy, core.block), -(-layer.oy // 2), -(-layer.oy // 3)}
    for rows in sorted(heights):
        other = replace(tile, y=rows)
        if other != tile and problem.tile_fits(other):
            solution = solution_of(problem, other)
            yield replace(plan, leaves=True, buffers=2, solution=solution)


def _first_is_apart(core: Neureka, layer: Weighted, plan: LayerPlan, following: Follower) -> bool:
    """Whether the next layer's first tile needs nothing of the last one.

    Pixels that the cores keep are copied from L1 that is free for others with the next layer.
    """
    next_layer, next_plan = following.layer, following.plan
    assert isinstance(next_layer, Weighted), next_layer
    program = neureka_program(core, next_layer, next_plan)
    if program.tiles == 1 or program.loaded or keeps_some(layer):
        return False
    if layer.output.name not in [tensor.name for tensor in next_layer.inputs]:
        return True
    if not (isinstance(layer, Convolution) and isinstance(next_layer, Convolution)):
        return False
    y, k = axes_of(layer, plan.solution.tile)
    first = axes_of(next_layer, next_plan.solution.tile)[0].spans[0]
    return k.count == 1 and first.in_start + first.in_size <= y.spans[-1].out_start
