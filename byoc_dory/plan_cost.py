"""Predicted cycles of one layer under the plans that a search compares."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.tileloop.cycles import Prices

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.options import TilingOptions
    from byoc_dory.plan import Follower, LayerPlan
    from byoc_dory.soc.base import Accelerator, Soc
    from byoc_dory.tiling import Tile

__all__ = ["PlanCost"]

_Priced: TypeAlias = "tuple[Tile, tuple[bool, ...], bool]"


class PlanCost:
    """The cycles of a layer's plans; offsets in L1 do not matter.

    Plans that differ only in the number of buffers have the same prices, and the same sums of
    computations and transfers, below which overlap cannot get.
    """

    def __init__(
        self, layer: Layer, accelerator: Accelerator, soc: Soc, options: TilingOptions
    ) -> None:
        self._layer, self._accelerator, self._soc, self._options = layer, accelerator, soc, options
        self._prices: defaultdict[_Priced, Prices] = defaultdict(Prices)

    def __call__(self, plan: LayerPlan) -> int:
        """Return the predicted cycles under a plan."""
        known = self._prices[plan.solution.tile, plan.resident_inputs, plan.resident_output]
        return self._accelerator.plan_cost(self._layer, plan, self._soc, self._options, known)

    def followed(self, plan: LayerPlan, follower: Follower) -> tuple[LayerPlan, int] | None:
        """Return a plan under which the next layer is computed beside this one (`followed`)."""
        return self._accelerator.followed(self._layer, plan, follower, self._soc, self._options)

    def least(self, tile: Tile, resident_inputs: tuple[bool, ...], resident_output: bool) -> int:
        """Return a lower bound for any number of buffers; 0 before the first such plan."""
        known = self._prices.get((tile, resident_inputs, resident_output))
        return 0 if known is None else known.least
