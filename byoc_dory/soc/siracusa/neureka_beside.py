"""Sums that the cores compute tile by tile, while the engine computes the next tile of an operand.

A convolution whose result an add reads next leaves the cores idle, and the add the engine.  Where
both results and the add's other operands are in L1 as a whole, the add's kernel is called for the
rows of each tile as soon as the engine has finished it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byoc_dory.layers import Add, Convolution, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Follower, LayerPlan
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.packing import constants_of, has_sum_table
from byoc_dory.soc.cluster.program import sum_fields
from byoc_dory.soc.cluster.tiles import units_of
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_view import keeps_some, view_of
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.program import BlockOf, Operand
from byoc_dory.tileloop.values import Entry, Place
from byoc_dory.tiling.problem import Tile, solution_of

SUM = "sum"
"""The operand that is the sum, and the prefix of the fields of its kernel."""


def followed(
    soc: Soc,
    core: Neureka,
    layer: Layer,
    plan: LayerPlan,
    follower: Follower,
    options: TilingOptions,
) -> tuple[LayerPlan, int] | None:
    """Return the best plan with a sum beside the engine's tiles (see `Accelerator.followed`)."""
    cores = soc.accelerator(follower.plan.accelerator)
    if not isinstance(cores, ClusterCores) or not _may_follow(layer, plan, follower):
        return None
    ahead = replace(follower.plan, ahead=True)
    apart = core.plan_cost(soc, layer, plan, options)
    apart += cores.plan_cost(soc, follower.layer, follower.plan, options)
    rest = cores.plan_cost(soc, follower.layer, ahead, options)
    problem = core.tiling_problem(soc, layer, options)
    found = None
    for rows in _heights(core, layer, plan):
        tile = Tile(layer.K, layer.C, rows, plan.solution.tile.x)
        own = replace(
            plan,
            solution=solution_of(problem, tile),
            buffers=2,
            input_buffers=0,
            follower=Follower(follower.layer, ahead),
        )
        saved = apart - rest - core.plan_cost(soc, layer, own, options)
        if saved > 0 and (found is None or saved > found[1]):
            found = own, saved
    return found


def _may_follow(layer: Layer, plan: LayerPlan, follower: Follower) -> bool:
    """Whether rows of the sum are those of the layer's result, and everything is in L1."""
    after, own = follower.layer, follower.plan
    return (
        isinstance(layer, Convolution)
        and isinstance(after, Add)
        and plan.resident_output
        and all(own.resident_inputs)
        and own.solution.tile.y >= units_of(after)[0]
        and layer.output.name in [tensor.name for tensor in after.inputs]
        and view_of(layer).row_step == 1
        and not keeps_some(layer)
    )


def _heights(core: Neureka, layer: Layer, plan: LayerPlan) -> Iterator[int]:
    """Yield the heights of tiles to try: whole blocks, and that of the plan."""
    yield from range(core.block, layer.oy, core.block)
    own = plan.solution.tile.y
    if own < layer.oy and own % core.block:
        yield own


def constants_behind(plan: LayerPlan) -> bytes:
    """Return the constants of a follower's kernel, which are loaded behind those of the layer."""
    if plan.follower is None:
        return b""
    return bytes(constants_of(plan.follower.layer, simd=True))


def operands_of(layer: Convolution, plan: LayerPlan, y: TileAxis) -> tuple[Operand, ...]:
    """Return the sum, and its operands but for the layer's result; all of them are resident."""
    if plan.follower is None:
        return ()
    after, own = plan.follower.layer, plan.follower.plan
    row = layer.ox * layer.K

    def whole(name: str, l1: int) -> Operand:
        inside = y.out_start * row
        block = BlockOf.run(y.out_size * row)
        return Operand(name, inside, block, l1, layer.oy * row, resident=True, inside=inside)

    terms = [
        whole(f"term{number}", own.l1_inputs[number])
        for number, tensor in enumerate(after.inputs)
        if tensor.name != layer.output.name
    ]
    return (*terms, whole(SUM, own.l1_output))


def sum_of(layer: Convolution, plan: LayerPlan, y: TileAxis, behind: int) -> dict[str, Entry]:
    """Return the fields of the sum of a tile; its table lies ``behind`` the layer's constants."""
    if plan.follower is None:
        return {}
    after = plan.follower.layer
    assert isinstance(after, Add)
    terms = tuple(
        Place("out" if tensor.name == layer.output.name else f"term{number}")
        for number, tensor in enumerate(after.inputs)
    )
    table = Place("weights") + behind if has_sum_table(after) else None
    elements = y.out_size * (layer.ox * layer.K)
    fields = sum_fields(after, terms, Place(SUM), elements, table)
    return {f"{SUM}.{name}": entry for name, entry in fields.items()}
