"""Planning a region: collect choices, pick, place; exclude what cannot be placed, and repeat.

The search takes layers to run one after another.  Afterwards, each accelerator may take the next
layer along (`Accelerator.followed`), where L1 has room for both at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from byoc_dory.layers import Layer
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.plan import Follower, LayerPlan, RegionPlan
from byoc_dory.residency.choices import Offer
from byoc_dory.residency.milp import solve_joint
from byoc_dory.residency.problem import Choice, Decision, RegionProblem, Stay
from byoc_dory.residency.tensors import L1Placement, Tensors, place, tensors_in_l1
from byoc_dory.residency.tiler import Tiler
from byoc_dory.soc.base import round_up


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


Known: TypeAlias = dict[tuple[Any, ...], Offer]
"""The choices of layers by all that they depend on, for one SoC and the same options."""

_LOG = logging.getLogger(__name__)

# Largest number of layers per integer program; longer regions are planned in pieces.
_LAYERS_AT_ONCE = 120
# Number of sets of tensors excluded because they cannot be placed together, before nothing may
# stay.
_ATTEMPTS = 12


@dataclass(frozen=True)
class _Region:
    """The layers, their choices, and the resulting problem."""

    layers: Sequence[Layer]
    tilers: Sequence[Tiler]
    offers: Sequence[Offer]
    problem: RegionProblem

    def taken(self, decision: Decision) -> list[Tensors]:
        """Return each layer's use of L1."""
        return [
            tensors_in_l1(
                offer.tiler.problem,
                choice.tile,
                choice.buffers,
                choice.resident_inputs,
                choice.resident_output,
                offer.tiler.options.loop_order,
                choice.input_buffers,
            )
            for offer, choice in self._chosen(decision)
        ]

    def plan(
        self, decision: Decision, placement: L1Placement, apart: int, pairs: Sequence[Pair] = ()
    ) -> RegionPlan:
        """Return the decision in the form that later stages use."""
        layers = [
            LayerPlan(
                accelerator=offer.tiler.accelerator,
                solution=offer.solution(choice),
                buffers=choice.buffers,
                resident_inputs=choice.resident_inputs,
                resident_output=choice.resident_output,
                l1_inputs=placement.inputs[number],
                l1_output=placement.outputs[number],
                l1_weights=placement.weights[number],
                input_buffers=choice.input_buffers,
            )
            for number, (offer, choice) in enumerate(self._chosen(decision))
        ]
        used = [
            choice.bytes + sum(stay.bytes for stay in alive if stay.name in decision.stays)
            for (_, choice), alive in zip(self._chosen(decision), self.problem.alive, strict=True)
        ]
        for pair in pairs:
            one, other = layers[pair.first : pair.first + 2]
            layers[pair.first : pair.first + 2] = pair.placed(one, other)
        if pairs:
            used = [
                sum(part.bytes for part in placement.map if part.first <= layer <= part.last)
                for layer in range(len(layers))
            ]
        return RegionPlan(
            layers=tuple(layers),
            resident=decision.stays,
            l1_limit=self.problem.limit,
            l1_peak=placement.plan.peak,
            l1_live=placement.plan.live,
            l1_used=tuple(used),
            cycles=decision.cycles,
            apart=apart,
            bound=decision.bound,
            method=decision.method,
            l1_map=placement.map,
            beside=sum(pair.saved for pair in pairs),
        )

    def _chosen(self, decision: Decision) -> list[tuple[Offer, Choice]]:
        return [
            (offer, offer.choices[pick])
            for offer, pick in zip(self.offers, decision.picks, strict=True)
        ]


def plan_jointly(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored: Mapping[str, int],
    leaving: Sequence[str],
    region: str = "",
    held: Mapping[str, int] | None = None,
    known: Known | None = None,
) -> RegionPlan:
    """Return the plan with fewest predicted cycles for all layers of a region together.

    A tensor may stay in L1 if a layer of the region writes it and none outside reads it; it stays
    for all its readers.  The plan is never slower than the best plan of each layer alone.

    Args:
        layers: layers in execution order.
        tilers: tiler of each layer.
        stored: size in bytes of each tensor in the accelerators' layout.
        leaving: names of tensors that are needed in L2 afterwards.
        region: name of the region, for messages.
        held: byte offset in L1 of each input that is there before and after the region.  L1 as the
            tilers know it ends before these.
        known: choices of other regions' layers, for tilers of the same SoC and options; new ones
            are added.

    Raises:
        TilingError: no tile of a layer fits.
    """
    held = {} if held is None else held
    known = {} if known is None else known
    whole = _region(layers, tilers, stored, leaving, region, frozenset(held), known)
    apart = _apart(whole.problem)
    problem, bound = whole.problem, 0
    for _ in range(_ATTEMPTS):
        decision = _decide(problem, tilers[0].options.node_limit)
        # Sets that are excluded later because no offsets were found are still allowed here: only
        # the first bound holds.
        bound = bound or decision.bound
        placement = place(problem, decision, whole.taken(decision), held=held)
        if placement.plan.peak <= problem.limit:
            break
        for group in placement.crowded:
            _LOG.info("region '%s': no room for %s together", region, ", ".join(sorted(group)))
        problem = replace(problem, together=(*problem.together, *placement.crowded))
    else:
        decision = apart
        placement = place(problem, apart, whole.taken(apart), held=held)
    decision = replace(decision, bound=bound)
    pairs, beside = _beside(whole, problem, decision, placement, apart.cycles, held)
    _LOG.info(
        "region '%s': %d cycles, %d with each layer alone; %d tensors stay in L1 (%s)",
        region, decision.cycles, apart.cycles, len(decision.stays), decision.method,
    )  # fmt: skip
    return whole.plan(decision, beside, apart.cycles, pairs)


def _beside(
    whole: _Region,
    problem: RegionProblem,
    decision: Decision,
    placement: L1Placement,
    apart: int,
    held: Mapping[str, int],
) -> tuple[list[Pair], L1Placement]:
    """Return the layers that compute the next one, too, and the places of everything with them."""
    plans = whole.plan(decision, placement, apart).layers
    pairs = pairs_of(whole.layers, whole.tilers, plans)
    while pairs:
        taken = tensors_of(pairs, whole.tilers, whole.taken(decision))
        ahead = {pair.first + 1 for pair in pairs}
        found = place(problem, decision, taken, ahead, held)
        if found.plan.peak <= problem.limit:
            return pairs, found
        pairs.pop()  # the one that saves least
    return [], placement


# ---------------------------------------------------------------------- the problem


def _region(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored: Mapping[str, int],
    leaving: Sequence[str],
    region: str,
    held: frozenset[str],
    known: Known,
) -> _Region:
    limit = min(tiler.problem.l1_limit for tiler in tilers)
    stays = _candidates(layers, tilers, stored, leaving, limit)
    may = {stay.name for stay in stays}
    offers = []
    for number, (layer, tiler) in enumerate(zip(layers, tilers, strict=True)):
        found_there = tuple(tensor.name in held for tensor in layer.inputs)
        may_find = tuple(tensor.name in may for tensor in layer.inputs)
        may_leave = layer.output.name in may
        passing = _passing(number, stays) if tiler.objective is not None else 0
        reads = tuple(tensor.name for tensor in layer.inputs)
        same = tuple(reads.index(name) for name in reads)
        key = (
            *tiler.alike, same, may_find, may_leave, passing, tiler.objective,
            tiler.options.objective, found_there,
        )  # fmt: skip
        if key not in known:
            known[key] = Offer(tiler, reads, may_find, may_leave, passing, found_there)
        offers.append(known[key])
    problem = RegionProblem(
        name=region,
        limit=limit,
        reads=tuple(tuple(tensor.name for tensor in layer.inputs) for layer in layers),
        writes=tuple(layer.output.name for layer in layers),
        choices=tuple(offer.choices for offer in offers),
        stays=stays,
        held=held,
    )
    return _Region(layers, tilers, offers, problem)


def _candidates(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored: Mapping[str, int],
    leaving: Sequence[str],
    limit: int,
) -> tuple[Stay, ...]:
    """Tensors that may stay: written and read here, and small enough to fit beside any layer."""
    found = []
    for first, layer in enumerate(layers):
        name = layer.output.name
        readers = [
            number
            for number, other in enumerate(layers)
            if name in (tensor.name for tensor in other.inputs)
        ]
        size = round_up(stored[name], ALIGNMENT)
        willing = tilers[first].problem.may_stay and all(
            tilers[reader].problem.may_find for reader in readers
        )
        if name in leaving or not readers or size >= limit or not willing:
            continue
        found.append(Stay(name, size, first, max(readers)))
    return tuple(found)


def _passing(number: int, stays: Sequence[Stay]) -> int:
    """Return the bytes of tensors that may be in L1 during a layer that does not touch them.

    (Tensors that it reads or writes itself are among its residents, or have tile buffers.)
    """
    return sum(stay.bytes for stay in stays if stay.first < number < stay.last)


# ---------------------------------------------------------------------- decisions


def _apart(problem: RegionProblem) -> Decision:
    """Return the best choice of each layer without residents."""
    picks = []
    for layer, offered in enumerate(problem.choices):
        alone = [
            number
            for number, choice in enumerate(offered)
            if not any(problem.resident(layer, choice).values()) and choice.bytes <= problem.limit
        ]
        picks.append(min(alone, key=lambda number, offered=offered: offered[number].cycles))  # type: ignore[misc]
    return problem.decided(picks, (), problem.floor, "each layer alone")


def _decide(problem: RegionProblem, node_limit: int) -> Decision:
    """Return the best plan found, which is never slower than each layer alone."""
    apart = _apart(problem)
    if not problem.stays:
        return replace(apart, bound=apart.cycles)
    count = len(problem.choices)
    if count <= _LAYERS_AT_ONCE:
        found = solve_joint(problem, node_limit)
    else:
        found = _in_pieces(problem, node_limit)
    return found if found is not None and found.cycles <= apart.cycles else apart


def _in_pieces(problem: RegionProblem, node_limit: int) -> Decision | None:
    """Plan runs of consecutive layers together, with no tensor staying between the pieces."""
    picks: list[int] = []
    stays: list[str] = []
    for first in range(0, len(problem.choices), _LAYERS_AT_ONCE):
        end = min(first + _LAYERS_AT_ONCE, len(problem.choices))
        part = problem.part(first, end)
        found = solve_joint(part, node_limit)
        if found is None:
            return None
        for layer, pick in zip(range(first, end), found.picks, strict=True):
            picks.append(problem.choices[layer].index(part.choices[layer - first][pick]))
        stays += found.stays
    return problem.decided(picks, stays, problem.floor, "milp, in pieces")
