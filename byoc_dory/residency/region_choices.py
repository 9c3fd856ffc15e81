"""`RegionChoices`: the layers of a region with their choices, and the problem that they make."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from byoc_dory.layers import Layer
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.plan import LayerPlan, RegionPlan
from byoc_dory.residency.choices import LayerChoices
from byoc_dory.residency.pairs import Pair
from byoc_dory.residency.preloads import preloads_of
from byoc_dory.residency.problem import Choice, Decision, RegionProblem, Stay
from byoc_dory.residency.tensors import L1Placement, Tensors, tensors_in_l1
from byoc_dory.residency.tiler import Tiler
from byoc_dory.soc.base import round_up

ChoiceCache: TypeAlias = dict[tuple[Any, ...], LayerChoices]
"""The choices of layers by all that they depend on, for one SoC and the same options."""


@dataclass(frozen=True)
class RegionChoices:
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
        layers, early, saved = preloads_of(self.tilers, layers, preloaded or {}, self.starts)
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


def region_choices(
    layers: Sequence[Layer],
    tilers: Sequence[Tiler],
    stored_bytes: Mapping[str, int],
    needed_in_l2: Sequence[str],
    region: str,
    state_inputs: frozenset[str],
    choice_cache: ChoiceCache,
    starts: Mapping[int, int],
    in_place: Collection[int],
) -> RegionChoices:
    """Return the layers of a region with their choices; arguments as of `plan_jointly`."""
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
            tiler.options.objective, always_resident, number in starts,
        )  # fmt: skip
        if key not in choice_cache:
            choice_cache[key] = LayerChoices(
                tiler, input_names, may_find, may_leave, passing, always_resident, number in starts
            )
        layer_choices.append(choice_cache[key])
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
    return RegionChoices(layers, tilers, layer_choices, problem, starts, in_place)


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
