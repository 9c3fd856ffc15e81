"""Layers that compute the next one, too, tile by tile (`Accelerator.followed`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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

    def with_offsets(self, leader: LayerPlan, follower: LayerPlan) -> tuple[LayerPlan, LayerPlan]:
        """Return both plans with the offsets of these."""
        assert self.plan.follower is not None
        ahead = replace(follower, ahead=True)
        plan = replace(
            self.plan,
            l1_inputs=leader.l1_inputs,
            l1_output=leader.l1_output,
            l1_weights=leader.l1_weights,
            follower=Follower(self.plan.follower.layer, ahead),
        )
        return plan, ahead


def pairs_of(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    plans: Sequence[LayerPlan],
    starts: Collection[int],
) -> list[Pair]:
    """Return the layers that may compute the next one, those that save most first.

    Neither may be among ``starts``, the layers that are started before their turn.
    """
    pairs: list[Pair] = []
    for first, (tiler, plan) in enumerate(zip(tilers, plans, strict=True)):
        if first + 1 == len(layers):
            break
        if first in starts or first + 1 in starts:
            continue
        follower = Follower(layers[first + 1], plans[first + 1])
        answer = tiler.cost.followed(plan, follower)
        if answer is not None:
            pairs.append(Pair(first, *answer))
    return sorted(pairs, key=lambda pair: -pair.saved)


def tensors_of_plan(tiler: Tiler, plan: LayerPlan) -> Tensors:
    """Return a layer's use of L1 under a plan."""
    return tensors_in_l1(
        tiler.problem,
        plan.solution.tile,
        plan.buffers,
        plan.resident_inputs,
        plan.resident_output,
        tiler.options.loop_order,
        plan.input_buffers,
    )


def tensors_of(
    pairs: Sequence[Pair], tilers: Sequence[Tiler], layer_tensors: Sequence[Tensors]
) -> list[Tensors]:
    """Return each layer's use of L1 if these layers compute the next ones.

    The constants of the next one are behind those of the layer.
    """
    result = list(layer_tensors)
    for pair in pairs:
        own = tensors_of_plan(tilers[pair.first], pair.plan)
        next_ = result[pair.first + 1]
        result[pair.first] = replace(own, weights=own.weights + next_.weights)
        result[pair.first + 1] = replace(next_, weights=0)
    return result
