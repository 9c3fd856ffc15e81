"""Planning a region: the tile of every layer, and the offsets of everything in L1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from byoc_dory.one_by_one import plan_one_by_one
from byoc_dory.residency import plan_jointly

if TYPE_CHECKING:
    from byoc_dory.cost import Cost
    from byoc_dory.plan import RegionPlan
    from byoc_dory.region import Region
    from byoc_dory.soc.base import Accelerator


def plan_region(
    region: Region,
    homes: Mapping[str, Accelerator],
    cost: Cost,
    held: Mapping[str, int] | None = None,
) -> RegionPlan:
    """Return the plan of each layer of a region.

    Under the published schedule every layer has L1 to itself, single-buffered; under the decoupled
    one double-buffered.  Under the overlapped one, tiles, double buffers and the tensors that stay
    in L1 between layers are chosen together.

    Args:
        region: its layers, and the tensors that leave it.
        homes: the accelerator of each layer, by the layer's name; it takes the layer.
        cost: cycles on the SoC, with the options of the tiler.
        held: under the overlapped schedule, byte offset in L1 of each input that is there before
            and after the region; the budget in the options ends before these.

    Raises:
        TargetError: the objective is unknown.
        TilingError: no tile of a layer fits.
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
    return plan_jointly(region.layers, tilers, stored, leaving, region.name, held, cost.choices)
