"""Layers that are computed beside the one before, tile by tile, once a region is planned.

The search takes layers to run one after another.  Afterwards, each accelerator may take the next
layer along (`Accelerator.followed`), where L1 has room for both at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from byoc_dory.layers import Layer
from byoc_dory.plan import Follower, LayerPlan
from byoc_dory.residency.tensors import Tensors, tensors_in_l1
from byoc_dory.residency.tiler import Tiler


@dataclass(frozen=True)
class Pair:
    """A layer that computes the next one, too.

    Attributes:
        first: its index.
        plan: its plan, with the follower, without offsets in L1.
        saved: predicted cycles saved.
    """

    first: int
    plan: LayerPlan
    saved: int

    def placed(self, own: LayerPlan, follower: LayerPlan) -> tuple[LayerPlan, LayerPlan]:
        """Return both plans with the offsets of these."""
        assert self.plan.follower is not None
        ahead = replace(follower, ahead=True)
        plan = replace(
            self.plan,
            l1_inputs=own.l1_inputs,
            l1_output=own.l1_output,
            l1_weights=own.l1_weights,
            follower=Follower(self.plan.follower.layer, ahead),
        )
        return plan, ahead


def pairs_of(
    layers: Sequence[Layer], tilers: Sequence[Tiler], plans: Sequence[LayerPlan]
) -> list[Pair]:
    """Return the layers that may compute the next one, those that save most first."""
    found: list[Pair] = []
    for first, (tiler, plan) in enumerate(zip(tilers, plans, strict=True)):
        if first + 1 == len(layers):
            break
        follower = Follower(layers[first + 1], plans[first + 1])
        answer = tiler.cost.followed(plan, follower)
        if answer is not None:
            found.append(Pair(first, *answer))
    return sorted(found, key=lambda pair: -pair.saved)


def tensors_of(
    pairs: Sequence[Pair], tilers: Sequence[Tiler], taken: Sequence[Tensors]
) -> list[Tensors]:
    """Return each layer's use of L1 if these layers compute the next ones.

    The constants of the next one are behind those of the layer.
    """
    result = list(taken)
    for pair in pairs:
        plan, tiler = pair.plan, tilers[pair.first]
        own = tensors_in_l1(
            tiler.problem,
            plan.solution.tile,
            plan.buffers,
            plan.resident_inputs,
            plan.resident_output,
            tiler.options.loop_order,
            plan.input_buffers,
        )
        next_ = result[pair.first + 1]
        result[pair.first] = replace(own, weights=own.weights + next_.weights)
        result[pair.first + 1] = replace(next_, weights=0)
    return result
