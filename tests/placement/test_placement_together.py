"""The plan for operators that accelerators take together, and the scheme of those that multiply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from byoc_dory.cost import Cost
from byoc_dory.errors import PolicyError
from byoc_dory.layers import MulShift
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from byoc_dory.soc.schemes import ShiftScheme
from htvm import zoo
from htvm.placement.plan import Placement, place
from htvm.quantization import retarget
from patterns.dispatch.dispatching import dispatch
from patterns.dispatch.together import together_in
from patterns.reading.graph import Graph
from patterns.reading.read import graph_of
from tests.patterns.fake import fake, target_of
from tests.quantization.sources import residual

SIZES = {"sequence": 16, "embedding": 8, "projection": 4, "feed_forward": 12, "stacked": 1}
SINGLE = ("dense", "add", "gemm", "matmul", "rows")
PLAIN, SPECIAL = fake("plain", SINGLE), fake("special", ("mha", "gemm"))


def encoder() -> Any:
    return zoo.encoder(1, heads=2, **SIZES)


def planned(policy: Any = None) -> Placement:
    target = target_of(SPECIAL, PLAIN)
    return place(encoder().graph, target, Cost(target.soc, TilingOptions()), policy)


def confirmed(plan: Placement) -> dict[str, str]:
    """Where operators run after dispatch, which confirms the plan."""
    target = target_of(SPECIAL, PLAIN)
    placed = dispatch(encoder().graph, target.soc, target.accelerators, plan.places, plan.binding)
    assert {name: placed.placement[name] for name in plan.places} == dict(plan.places)
    return dict(placed.placement)


def test_an_attention_is_placed_as_a_whole() -> None:
    plan = planned()
    assert plan.final
    heads = [name for name in plan.places if name.startswith("layer_0_head")]
    assert len(heads) == 19 and {plan.places[name] for name in heads} == {"special"}
    assert [name for name in plan.candidates if name.startswith("layer_0_head")] == [
        "layer_0_heads"
    ]
    places = confirmed(plan)
    assert places["layer_0_attention_add"] == "plain" and places["layer_0_ffn_0_inner"] == "special"


def test_a_table_names_the_attention_by_its_last_operator() -> None:
    plan = planned({"layer_0_heads": "plain", "layer_0_head_0_scores": "cpu"})
    places = confirmed(plan)
    assert places["layer_0_heads"] == "plain"
    assert places["layer_0_head_0_scores"] == places["layer_0_head_0_similarity"] == "cpu"
    assert places["layer_0_head_1_scores"] == places["layer_0_head_1_similarity"] == "plain"
    plan = planned({"layer_0_heads": "special"})
    assert confirmed(plan)["layer_0_head_0_softmax"] == "special"
    with pytest.raises(PolicyError, match="cannot take the layer: the operator is add"):
        planned({"layer_0_attention_add": "special"})
    with pytest.raises(PolicyError, match="no layer 'layer_0_head_0_mixture'"):
        planned({"layer_0_head_0_mixture": "plain"})


def test_who_multiplies_gets_multiplications() -> None:
    source = residual(3).model()
    target = target_of(PLAIN)
    changed = retarget(source, target.accelerators)
    assert changed.model.scheme == "mul_shift"
    layers = [n.scaled for n in graph_of(changed.model.module).in_order if n.scaled is not None]
    for layer in layers:
        assert isinstance(layer.requant, MulShift) and 0 < layer.requant.mul[0] < 256
    assert retarget(changed.model, target.accelerators).model is changed.model
    assert retarget(encoder(), target.accelerators).report.changed is False
    form = PLAIN.scheme.form_of(layers[0])
    assert isinstance(form.requant, MulShift)
    shifting = replace(PLAIN, form=ShiftScheme())
    assert retarget(source, (shifting,)).model.scheme == "shift"


def test_the_other_core_says_no() -> None:
    target = resolve("diana")
    graph = encoder().graph
    placed = dispatch(graph, target.soc, target.accelerators)
    assert set(placed.placement.values()) == {"cpu"}
    said = {verdict.reason for verdict in placed.verdicts if verdict.accelerator == "digital"}
    assert "attention of 2 heads: the operator is mha" in said
    assert {"the operator is gemm", "the operator is matmul", "the operator is rows"} <= said
    assert "the requantization is MulShift, not one shift" in said
    plan = place(graph, target, Cost(target.soc, TilingOptions()))
    assert set(plan.places.values()) <= {"digital"}


def kinds(plan: Placement) -> set[str]:
    """What was offered."""
    return {candidate.kind for offered in plan.candidates.values() for candidate in offered}


def test_what_the_module_returns_is_no_part_of_a_group() -> None:
    target, graph = target_of(SPECIAL, PLAIN), encoder().graph
    attention = together_in(graph).groups[0]
    returning = Graph(graph.in_order, (*graph.results, attention.parts[0]))
    assert "mha" in kinds(place(graph, target, Cost(target.soc, TilingOptions())))
    plan = place(returning, target, Cost(target.soc, TilingOptions()))
    placed = dispatch(returning, target.soc, target.accelerators, plan.places, plan.binding)
    assert attention.name not in placed.groups
    assert "mha" not in kinds(plan)
    assert {name: placed.placement[name] for name in plan.places} == dict(plan.places)
