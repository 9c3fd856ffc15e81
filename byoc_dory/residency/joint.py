"""Planning a region: collect choices, pick, place; exclude what cannot be placed, and repeat.

The search takes layers to run one after another.  Afterwards, each accelerator may take the next
layer along (`Accelerator.followed`) or load its constants (`Accelerator.preloads`), where L1 has
room for both at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.plan import Follower, LayerPlan, Preload, RegionPlan
from byoc_dory.residency.choices import LayerChoices
from byoc_dory.residency.milp import solve_joint
from byoc_dory.residency.problem import Choice, Decision, RegionProblem, Stay
from byoc_dory.residency.tensors import L1Placement, Tensors, place, tensors_in_l1
from byoc_dory.residency.tiler import Tiler
from byoc_dory.soc.base import round_up
from byoc_dory.tiling.problem import solution_of


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
    layers: Sequence[Layer], tilers: Sequence[Tiler], plans: Sequence[LayerPlan]
) -> list[Pair]:
    """Return the layers that may compute the next one, those that save most first."""
    pairs: list[Pair] = []
    for first, (tiler, plan) in enumerate(zip(tilers, plans, strict=True)):
        if first + 1 == len(layers):
            break
        follower = Follower(layers[first + 1], plans[first + 1])
        answer = tiler.cost.followed(plan, follower)
        if answer is not None:
            pairs.append(Pair(first, *answer))
    return sorted(pairs, key=lambda pair: -pair.saved)


def tensors_of(
    pairs: Sequence[Pair], tilers: Sequence[Tiler], layer_tensors: Sequence[Tensors]
) -> list[Tensors]:
    """Return each layer's use of L1 if these layers compute the next ones.

    The constants of the next one are behind those of the layer.
    """
    result = list(layer_tensors)
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


def preloads_of(
    tilers: Sequence[Tiler], plans: Sequence[LayerPlan], allowed: Mapping[int, bool]
) -> tuple[list[LayerPlan], list[int], int]:
    """Return the plans under which layers load the next one's constants, if that saves cycles.

    Args:
        tilers, plans: of the layers.
        allowed: the layers whose constants may be loaded with the layer before, and whether they
            may then compute all channels at once, which takes more of L1.

    Returns:
        The plans, the layers whose constants are loaded early, and the predicted cycles saved.
    """
    result, early, saved = list(plans), [], 0
    for number in range(1, len(result)):
        before, plan = result[number - 1 : number + 1]
        if number not in allowed or before.ahead or not tilers[number - 1].cost.preloads:
            continue
        if not tilers[number].cost.first_constants(plan):
            continue
        own = tilers[number].cost
        gains = []
        for way in _ways_to_find(tilers[number], plan, whole=allowed[number]):
            size = own.first_constants(replace(way, preloaded=False))
            loading = replace(before, preload=Preload(size, plan.l1_weights))
            gain = tilers[number - 1].cost.of(before) - tilers[number - 1].cost.of(loading)
            gains.append((gain + own.of(plan) - own.of(way), loading, way))
        gain, loading, way = max(gains, key=lambda each: each[0])
        if gain > 0:
            early.append(number)
            saved += gain
            result[number - 1 : number + 1] = [loading, way]
    return result, early, saved


def _ways_to_find(tiler: Tiler, plan: LayerPlan, *, whole: bool) -> Iterator[LayerPlan]:
    """Yield plans of a layer that finds constants: its own, and all channels at once.

    Ranges of channels hide the loads of constants, of which nothing is left to hide.
    """
    yield replace(plan, preloaded=True)
    tile, problem = plan.solution.tile, tiler.problem
    wider = replace(tile, k=problem.k.size)
    if whole and wider != tile and plan.follower is None and problem.tile_fits(wider):
        yield replace(plan, preloaded=True, solution=solution_of(problem, wider))


ChoiceCache: TypeAlias = dict[tuple[Any, ...], LayerChoices]
"""The choices of layers by all that they depend on, for one SoC and the same options."""

_LOG = logging.getLogger(__name__)

# Largest number of layers per integer program; longer regions are planned in pieces.
_LAYERS_AT_ONCE = 120
# Number of sets of tensors excluded because they cannot be placed together, before nothing may
# stay.
_ATTEMPTS = 12


@dataclass(frozen=True)
class _RegionChoices:
    """The layers, their choices, and the resulting problem."""

    layers: Sequence[Layer]
    tilers: Sequence[Tiler]
    layer_choices: Sequence[LayerChoices]
    problem: RegionProblem
    starts: Mapping[int, int]
    in_place: Collection[int]

    def l1_tensors(self, decision: Decision) -> list[Tensors]:
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
            for offer, choice in self._chosen_layers(decision)
        ]

    def l1_tensors_of(self, plans: Sequence[LayerPlan]) -> list[Tensors]:
        """Return each layer's use of L1 under these plans."""
        return [
            tensors_in_l1(
                tiler.problem,
                plan.solution.tile,
                plan.buffers,
                plan.resident_inputs,
                plan.resident_output,
                tiler.options.loop_order,
                plan.input_buffers,
            )
            for tiler, plan in zip(self.tilers, plans, strict=True)
        ]

    def plan(
        self,
        decision: Decision,
        placement: L1Placement,
        cycles_alone: int,
        pairs: Sequence[Pair] = (),
        preloaded: Mapping[int, bool] | None = None,
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
            for number, (offer, choice) in enumerate(self._chosen_layers(decision))
        ]
        l1_used = [
            choice.bytes + sum(stay.bytes for stay in alive if stay.name in decision.stays)
            for (_, choice), alive in zip(
                self._chosen_layers(decision), self.problem.alive, strict=True
            )
        ]
        for pair in pairs:
            one, other = layers[pair.first : pair.first + 2]
            layers[pair.first : pair.first + 2] = pair.with_offsets(one, other)
        layers, early, saved = preloads_of(self.tilers, layers, preloaded or {})
        if pairs or early:
            l1_used = [
                sum(part.bytes for part in placement.map if part.first <= layer <= part.last)
                for layer in range(len(layers))
            ]
        return RegionPlan(
            layers=tuple(layers),
            resident=decision.stays,
            l1_limit=self.problem.limit,
            l1_peak=placement.plan.peak,
            l1_live=placement.plan.live,
            l1_used=tuple(l1_used),
            cycles=decision.cycles,
            cycles_alone=cycles_alone,
            bound=decision.bound,
            method=decision.method,
            l1_map=placement.map,
            saved_cycles=sum(pair.saved for pair in pairs) + saved,
        )

    def _chosen_layers(self, decision: Decision) -> list[tuple[LayerChoices, Choice]]:
        return [
            (offer, offer.choices[pick])
            for offer, pick in zip(self.layer_choices, decision.picks, strict=True)
        ]


def plan_jointly(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored_bytes: Mapping[str, int],
    needed_in_l2: Sequence[str],
    region: str = "",
    state_offsets: Mapping[str, int] | None = None,
    choice_cache: ChoiceCache | None = None,
    starts: Mapping[int, int] | None = None,
    in_place: Collection[int] = (),
) -> RegionPlan:
    """Return the plan with fewest predicted cycles for all layers of a region together.

    A tensor may stay in L1 if a layer of the region writes it and none outside reads it; it stays
    for all its readers.  The plan is never slower than the best plan of each layer alone.

    Args:
        layers: layers in execution order.
        tilers: tiler of each layer.
        stored_bytes: size in bytes of each tensor in the accelerators' layout.
        needed_in_l2: names of tensors that are needed in L2 afterwards.
        region: name of the region, for messages.
        state_offsets: byte offset in L1 of each input that is there before and after the region.
            L1 as the tilers know it ends before these.
        choice_cache: choices of other regions' layers, for tilers of the same SoC and options; new
            ones are added.
        starts: layers that are started before their turn, each with the layer before which it is.
        in_place: those of them whose result may be written over their only operand.

    Raises:
        TilingError: no tile of a layer fits, or not all that is under way at a time.
    """
    starts = {} if starts is None else starts
    state_offsets = {} if state_offsets is None else state_offsets
    choice_cache = {} if choice_cache is None else choice_cache
    region_choices = _region_choices(
        layers, tilers, stored_bytes, needed_in_l2, region, frozenset(state_offsets), choice_cache,
        starts, in_place,
    )  # fmt: skip
    separate = _layers_alone(region_choices.problem)
    problem, bound = region_choices.problem, 0
    for _ in range(_ATTEMPTS):
        decision = _decide(problem, tilers[0].options.node_limit)
        # Sets that are excluded later because no offsets were found are still allowed here: only
        # the first bound holds.
        bound = bound or decision.bound
        placement = _placed(region_choices, problem, decision, (), (), state_offsets)
        if placement.plan.peak <= problem.limit:
            break
        for group in placement.crowded:
            _LOG.info("region '%s': no room for %s together", region, ", ".join(sorted(group)))
        problem = replace(problem, together=(*problem.together, *placement.crowded))
    else:
        decision = separate
        placement = _placed(region_choices, problem, decision, (), (), state_offsets)
    if starts and placement.plan.peak > problem.limit:
        raise TilingError(
            f"{placement.plan.peak} B are under way at a time, L1 has {problem.limit}",
            where=f"region '{region}'",
            hint="execute its layers one after another",
        )
    decision = replace(decision, bound=bound)
    pairs, placement = _place_pairs(
        region_choices, problem, decision, placement, separate.cycles, state_offsets
    )
    early, placement = _place_preloads(
        region_choices, problem, decision, placement, pairs, separate.cycles, state_offsets
    )
    _LOG.info(
        "region '%s': %d cycles, %d with each layer alone; %d tensors stay in L1 (%s)",
        region, decision.cycles, separate.cycles, len(decision.stays), decision.method,
    )  # fmt: skip
    return region_choices.plan(decision, placement, separate.cycles, pairs, early)


def _place_pairs(
    region_choices: _RegionChoices,
    problem: RegionProblem,
    decision: Decision,
    placement: L1Placement,
    cycles_alone: int,
    state_offsets: Mapping[str, int],
) -> tuple[list[Pair], L1Placement]:
    """Return the layers that compute the next one, too, and the places of everything with them."""
    plans = region_choices.plan(decision, placement, cycles_alone).layers
    pairs = pairs_of(region_choices.layers, region_choices.tilers, plans)
    while pairs:
        paired_placement = _placed(region_choices, problem, decision, pairs, (), state_offsets)
        if paired_placement.plan.peak <= problem.limit:
            return pairs, paired_placement
        pairs.pop()  # the one that saves least
    return [], placement


def _place_preloads(
    region_choices: _RegionChoices,
    problem: RegionProblem,
    decision: Decision,
    placement: L1Placement,
    pairs: Sequence[Pair],
    cycles_alone: int,
    state_offsets: Mapping[str, int],
) -> tuple[dict[int, bool], L1Placement]:
    """Return what `preloads_of` is allowed, and everything's places with what it then finds.

    Where L1 has no room, layers keep their tiles first, then load constants themselves.
    """
    if region_choices.tilers[0].options.schedule != "overlapped":
        return {}, placement
    alone = region_choices.plan(decision, placement, cycles_alone, pairs).layers
    starts = region_choices.starts
    allowed = {n: True for n in range(len(alone)) if n not in starts and n - 1 not in starts}
    while allowed:
        plans, early, _ = preloads_of(region_choices.tilers, alone, allowed)
        if not early:
            break
        own = region_choices.l1_tensors_of(plans)
        found = _placed(region_choices, problem, decision, pairs, early, state_offsets, own)
        if found.plan.peak <= problem.limit:
            return allowed, found
        crowded = {
            layer
            for part in found.map
            if part.offset + part.bytes > problem.limit
            for layer in range(part.first, part.last + 1)
        }
        near = [layer for layer in early if {layer - 1, layer} & crowded]
        wider = [n for n in near if plans[n].solution.tile != alone[n].solution.tile]
        if wider:
            allowed |= dict.fromkeys(wider, False)
        else:
            kept = [layer for layer in early if layer not in near] if near else []
            allowed = {layer: allowed[layer] for layer in kept}
    return {}, placement


def _placed(
    region_choices: _RegionChoices,
    problem: RegionProblem,
    decision: Decision,
    pairs: Sequence[Pair],
    early: Collection[int],
    state_offsets: Mapping[str, int],
    own: Sequence[Tensors] | None = None,
) -> L1Placement:
    """Return the places of everything if these layers compute the next ones, or are preloaded.

    ``own``: each layer's use of L1 by itself, if other than decided.
    """
    own = region_choices.l1_tensors(decision) if own is None else own
    layer_tensors = tensors_of(pairs, region_choices.tilers, own)
    begins = {pair.first + 1: pair.first for pair in pairs}
    return place(
        problem,
        decision,
        layer_tensors,
        begins={**begins, **region_choices.starts},
        in_place=region_choices.in_place,
        state_offsets=state_offsets,
        preloaded=early,
    )


# ---------------------------------------------------------------------- the problem


def _region_choices(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored_bytes: Mapping[str, int],
    needed_in_l2: Sequence[str],
    region: str,
    state_inputs: frozenset[str],
    choice_cache: ChoiceCache,
    starts: Mapping[int, int],
    in_place: Collection[int],
) -> _RegionChoices:
    limit = min(tiler.problem.l1_limit for tiler in tilers)
    stays = _stay_candidates(layers, tilers, stored_bytes, needed_in_l2, limit)
    may_stay = {stay.name for stay in stays}
    layer_choices = []
    for number, (layer, tiler) in enumerate(zip(layers, tilers, strict=True)):
        always_resident = tuple(tensor.name in state_inputs for tensor in layer.inputs)
        may_find = tuple(tensor.name in may_stay for tensor in layer.inputs)
        may_leave = layer.output.name in may_stay
        passing = _passing_bytes(number, stays) if tiler.objective is not None else 0
        input_names = tuple(tensor.name for tensor in layer.inputs)
        operand_groups = tuple(input_names.index(name) for name in input_names)
        key = (
            *tiler.cost_key, operand_groups, may_find, may_leave, passing, tiler.objective,
            tiler.options.objective, always_resident,
        )  # fmt: skip
        if key not in choice_cache:
            choice_cache[key] = LayerChoices(
                tiler, input_names, may_find, may_leave, passing, always_resident
            )
        offer = choice_cache[key]
        layer_choices.append(offer.in_one_tile() if number in starts else offer)
    problem = RegionProblem(
        name=region,
        limit=limit,
        reads=tuple(tuple(tensor.name for tensor in layer.inputs) for layer in layers),
        writes=tuple(layer.output.name for layer in layers),
        choices=tuple(offer.choices for offer in layer_choices),
        stays=stays,
        state_inputs=state_inputs,
        held=_held(layer_choices, starts, in_place),
    )
    return _RegionChoices(layers, tilers, layer_choices, problem, starts, in_place)


def _held(
    layer_choices: Sequence[LayerChoices], starts: Mapping[int, int], in_place: Collection[int]
) -> tuple[int, ...]:
    """Return for each layer the bytes of layers that were started before it and are not done."""
    held = [0] * len(layer_choices) if starts else []
    for layer, first in starts.items():
        offer = layer_choices[layer]
        saved = offer.tiler.problem.memory(offer.tiler.problem.whole)[1] * (layer in in_place)
        most = max((choice.bytes for choice in offer.choices), default=0) - round_up(
            saved, ALIGNMENT
        )
        for number in range(first, layer):
            held[number] += most
    return tuple(held)


def _stay_candidates(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored_bytes: Mapping[str, int],
    needed_in_l2: Sequence[str],
    limit: int,
) -> tuple[Stay, ...]:
    """Tensors that may stay: written and read here, and small enough to fit beside any layer."""
    candidates = []
    for first, layer in enumerate(layers):
        name = layer.output.name
        readers = [
            number
            for number, other in enumerate(layers)
            if name in (tensor.name for tensor in other.inputs)
        ]
        size = round_up(stored_bytes[name], ALIGNMENT)
        willing = tilers[first].problem.may_stay and all(
            tilers[reader].problem.may_find for reader in readers
        )
        if name in needed_in_l2 or not readers or size >= limit or not willing:
            continue
        candidates.append(Stay(name, size, first, max(readers)))
    return tuple(candidates)


def _passing_bytes(number: int, stays: Sequence[Stay]) -> int:
    """Return the bytes of tensors that may be in L1 during a layer that does not touch them.

    (Tensors that it reads or writes itself are among its residents, or have tile buffers.)
    """
    return sum(stay.bytes for stay in stays if stay.first < number < stay.last)


# ---------------------------------------------------------------------- decisions


def _layers_alone(problem: RegionProblem) -> Decision:
    """Return the best choice of each layer without residents."""
    picks = []
    for layer, offered in enumerate(problem.choices):
        fitting = [
            number
            for number, choice in enumerate(offered)
            if not any(problem.resident(layer, choice).values())
            and choice.bytes <= problem.room(layer)
        ]
        if not fitting:
            raise TilingError(
                f"layer {layer} does not fit L1 beside layers that are under way",
                where=f"region '{problem.name}'",
                hint="execute its layers one after another",
            )
        picks.append(min(fitting, key=lambda number, offered=offered: offered[number].cycles))  # type: ignore[misc]
    return problem.decision(picks, (), problem.floor, "each layer alone")


def _decide(problem: RegionProblem, node_limit: int) -> Decision:
    """Return the best plan found, which is never slower than each layer alone."""
    separate = _layers_alone(problem)
    if not problem.stays:
        return replace(separate, bound=separate.cycles)
    count = len(problem.choices)
    if count <= _LAYERS_AT_ONCE:
        decision = solve_joint(problem, node_limit)
    else:
        decision = _in_pieces(problem, node_limit)
    return decision if decision is not None and decision.cycles <= separate.cycles else separate


def _in_pieces(problem: RegionProblem, node_limit: int) -> Decision | None:
    """Plan runs of consecutive layers together, with no tensor staying between the pieces."""
    picks: list[int] = []
    stays: list[str] = []
    for first in range(0, len(problem.choices), _LAYERS_AT_ONCE):
        end = min(first + _LAYERS_AT_ONCE, len(problem.choices))
        part = problem.part(first, end)
        decision = solve_joint(part, node_limit)
        if decision is None:
            return None
        for layer, pick in zip(range(first, end), decision.picks, strict=True):
            picks.append(problem.choices[layer].index(part.choices[layer - first][pick]))
        stays += decision.stays
    return problem.decision(picks, stays, problem.floor, "milp, in pieces")
