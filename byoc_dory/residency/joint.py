"""Planning a region: collect choices, pick, place; exclude what cannot be placed, and repeat.

The search takes layers to run one after another.  Afterwards, each accelerator may take the next
layer along (`pairs`) or load its constants (`preloads`), where L1 has room for both at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.plan import RegionPlan
from byoc_dory.residency.milp import solve_joint
from byoc_dory.residency.pairs import Pair, pairs_of, tensors_of, tensors_of_plan
from byoc_dory.residency.preloads import preloads_of
from byoc_dory.residency.problem import Decision, RegionProblem
from byoc_dory.residency.region_choices import ChoiceCache, RegionChoices, region_choices
from byoc_dory.residency.tensors import L1Placement, Tensors, place
from byoc_dory.residency.tiler import Tiler

_LOG = logging.getLogger(__name__)

# Largest number of layers per integer program; longer regions are planned in pieces.
_LAYERS_AT_ONCE = 120
# Number of sets of tensors excluded because they cannot be placed together, before nothing may
# stay.
_ATTEMPTS = 12


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
    given = region_choices(
        layers, tilers, stored_bytes, needed_in_l2, region, frozenset(state_offsets), choice_cache,
        starts, in_place,
    )  # fmt: skip
    separate = _layers_alone(given.problem)
    problem, bound = given.problem, 0
    for _ in range(_ATTEMPTS):
        decision = _decide(problem, tilers[0].options.node_limit)
        # Sets that are excluded later because no offsets were found are still allowed here: only
        # the first bound holds.
        bound = bound or decision.bound
        placement = _placed(given, problem, decision, (), {}, state_offsets)
        if placement.plan.peak <= problem.limit:
            break
        for group in placement.crowded:
            _LOG.info("region '%s': no room for %s together", region, ", ".join(sorted(group)))
        problem = replace(problem, together=(*problem.together, *placement.crowded))
    else:
        decision = separate
        placement = _placed(given, problem, decision, (), {}, state_offsets)
    if starts and placement.plan.peak > problem.limit:
        raise TilingError(
            f"{placement.plan.peak} B are under way at a time, L1 has {problem.limit}",
            where=f"region '{region}'",
            hint="execute its layers one after another",
        )
    decision = replace(decision, bound=bound)
    pairs, placement = _place_pairs(
        given, problem, decision, placement, separate.cycles, state_offsets
    )
    early, placement = _place_preloads(
        given, problem, decision, placement, pairs, separate.cycles, state_offsets
    )
    _LOG.info(
        "region '%s': %d cycles, %d with each layer alone; %d tensors stay in L1 (%s)",
        region, decision.cycles, separate.cycles, len(decision.stays), decision.method,
    )  # fmt: skip
    return given.plan(decision, placement, separate.cycles, pairs, early)


def _place_pairs(
    given: RegionChoices,
    problem: RegionProblem,
    decision: Decision,
    placement: L1Placement,
    cycles_alone: int,
    state_offsets: Mapping[str, int],
) -> tuple[list[Pair], L1Placement]:
    """Return the layers that compute the next one, too, and the places of everything with them."""
    plans = given.plan(decision, placement, cycles_alone).layers
    pairs = pairs_of(given.layers, given.tilers, plans, given.starts)
    while pairs:
        paired_placement = _placed(given, problem, decision, pairs, {}, state_offsets)
        if paired_placement.plan.peak <= problem.limit:
            return pairs, paired_placement
        pairs.pop()  # the one that saves least
    return [], placement


def _place_preloads(
    given: RegionChoices,
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
    if given.tilers[0].options.schedule != "overlapped":
        return {}, placement
    alone = given.plan(decision, placement, cycles_alone, pairs).layers
    # A layer that is started before its turn has one tile, which does not become wider.
    allowed = {n: n not in given.starts for n in range(len(alone))}
    while allowed:
        plans, early, _ = preloads_of(given.tilers, alone, allowed, given.starts)
        if not early:
            break
        own = list(map(tensors_of_plan, given.tilers, plans))
        found = _placed(given, problem, decision, pairs, early, state_offsets, own)
        if found.plan.peak <= problem.limit:
            return allowed, found
        crowded = {
            layer
            for part in found.map
            if part.offset + part.bytes > problem.limit
            for layer in range(part.first, part.last + 1)
        }
        near = [
            layer
            for layer, loader in early.items()
            if crowded.intersection(range(loader, layer + 1))
        ]
        wider = [n for n in near if plans[n].solution.tile != alone[n].solution.tile]
        if wider:
            allowed |= dict.fromkeys(wider, False)
        else:
            kept = [layer for layer in early if layer not in near] if near else []
            allowed = {layer: allowed[layer] for layer in kept}
    return {}, placement


def _placed(
    given: RegionChoices,
    problem: RegionProblem,
    decision: Decision,
    pairs: Sequence[Pair],
    early: Mapping[int, int],
    state_offsets: Mapping[str, int],
    own: Sequence[Tensors] | None = None,
) -> L1Placement:
    """Return the places of everything if these layers compute the next ones, or are preloaded.

    ``own``: each layer's use of L1 by itself, if other than decided.
    """
    own = given.l1_tensors(decision) if own is None else own
    layer_tensors = tensors_of(pairs, given.tilers, own)
    begins = {pair.first + 1: pair.first for pair in pairs}
    return place(
        problem,
        decision,
        layer_tensors,
        begins={**begins, **given.starts},
        in_place=given.in_place,
        state_offsets=state_offsets,
        preloaded=early,
    )


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
