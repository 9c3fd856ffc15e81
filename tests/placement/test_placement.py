"""Placement: policies on whole networks, the user's own, what is refused, and who confirms it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.cost import Cost
from byoc_dory.layers import Layer, Shift, TfliteRequant
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU
from htvm import zoo
from htvm.errors import PolicyError, TilingError
from htvm.placement.plan import Placement, place
from htvm.policy import Candidate, LayerInfo, Policy
from htvm.tools.zoo.schemes import Scheme
from patterns.dispatch.dispatching import dispatch
from patterns.names import emit
from patterns.ops.convolution import Window, conv2d_of
from patterns.reading.graph import Graph
from patterns.reading.read import graph_of


@cache
def graph_of_zoo(name: str, scheme: Scheme = "8-bit") -> Graph:
    return zoo.build(name, scheme=scheme).graph


def planned(
    name: str,
    policy: Policy | None = None,
    target: str = "diana",
    scheme: Scheme = "8-bit",
) -> Placement:
    place_ = resolve(target)
    return place(graph_of_zoo(name, scheme), place_, Cost(place_.soc, TilingOptions()), policy)


def where(plan: Placement, home: str) -> list[str]:
    return [name for name, place in plan.places.items() if place == home]


# ------------------------------------------------------------------------------ built-in policies


def test_every_target_has_its_own_policy() -> None:
    for target, policy in (
        ("diana", "bitwidth"),
        ("diana.digital", "bitwidth"),
        ("diana.analog", "bitwidth"),
        ("diana.mixed", "mixed"),
    ):
        assert planned("toyadmos", target=target).policy == policy


def test_bits_place_a_network_of_either_kind() -> None:
    assert set(planned("resnet8").places.values()) == {"digital"}
    ternary = planned("resnet8", scheme="ternary")
    assert where(ternary, "digital") == ["add_0", "add_1", "add_2"]
    assert len(where(ternary, "analog")) == 10


def test_one_core_takes_what_it_can() -> None:
    analog = planned("ds_cnn_7x5", target="diana.analog")
    assert where(analog, CPU) == [f"depthwise_{i}" for i in range(4)]
    assert where(analog, "analog") == [*(f"conv2d_{i}" for i in range(5)), "dense_0"]
    assert set(planned("ds_cnn_7x5", target="diana.digital").places.values()) == {"digital"}
    assert set(planned("ds_cnn_7x5", target="diana.cpu").places.values()) == {CPU}


@pytest.mark.parametrize("scheme", ["8-bit", "mixed"])
def test_the_published_rule_on_the_published_networks(scheme: Scheme) -> None:
    """The layers that HTVM's scripts gave the analog core."""
    wanted = {
        "resnet8": [f"conv2d_{i}" for i in range(1, 8)],
        "ds_cnn_7x5": [f"conv2d_{i}" for i in range(1, 4)],
        "mobilenet_v1": [f"conv2d_{i}" for i in range(1, 13)],
        "toyadmos": [f"dense_{i}" for i in range(1, 9)],
    }
    for name, analog in wanted.items():
        plan = planned(name, target="diana.mixed", scheme=scheme)
        assert where(plan, "analog") == analog
        assert len(where(plan, "digital")) == len(plan.places) - len(analog)


@pytest.mark.parametrize("scheme", zoo.SCHEMES)
@pytest.mark.parametrize("target", ["diana", "diana.mixed"])
def test_a_form_that_one_core_has_decides(target: str, scheme: Scheme) -> None:
    """The zoo's ternary layers run on the analog core whatever the policy prefers."""
    plan = planned("resnet8", target=target, scheme=scheme)
    assert plan.final == (scheme != "8-bit")
    if plan.final:
        for node in graph_of_zoo("resnet8", scheme).in_order:
            if node.scaled is not None:
                ternary = not isinstance(node.scaled.requant, Shift)
                assert plan.places[node.name] == ("analog" if ternary else "digital")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", ["ds_cnn_7x5", "mobilenet_v1", "resnet8", "toyadmos"])
def test_the_cheapest_is_never_slower_than_one_core(name: str) -> None:
    plan = planned(name, "latency")

    def total(preferred: str) -> int:
        cycles = 0
        for candidates in plan.candidates.values():
            own = [c.cycles for c in candidates if c.name == preferred and c.accepted]
            rest = [c.cycles for c in candidates if c.name == CPU]
            cycles += own[0] or 0 if own else rest[0] or 0
        return cycles

    found = sum(
        next(c.cycles or 0 for c in plan.candidates[layer] if c.name == home)
        for layer, home in plan.places.items()
    )
    assert 0 < found <= min(total("digital"), total("analog"))


def test_a_budget_too_small_for_any_core_is_reported() -> None:
    graph, target = graph_of_zoo("resnet8"), resolve("diana")

    def planned_with(budget: int) -> Placement:
        return place(graph, target, Cost(target.soc, TilingOptions(l1_budget=budget)), "latency")

    with pytest.raises(TilingError, match="conv2d_0"):
        planned_with(64)
    assert planned_with(200_000).places == planned("resnet8", "latency").places


def test_a_core_without_a_tile_that_fits_leaves_the_layer_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Cost.cycles_alone

    def cycles(self: Cost, accelerator: Accelerator, layer: Layer) -> int:
        if accelerator.name == "analog":
            raise TilingError("4000 B of L1 are needed, 3000 B are there")
        return honest(self, accelerator, layer)

    monkeypatch.setattr(Cost, "cycles_alone", cycles)
    plan = planned("toyadmos", "latency")
    assert set(plan.places.values()) == {"digital"}
    _, analog, _ = plan.candidates["dense_0"]
    assert not analog.accepted and "4000 B" in analog.reason


# ------------------------------------------------------------------------------ the user's own


def test_a_table_places_some_layers_and_leaves_the_rest_to_the_target() -> None:
    plan = planned("resnet8", {"conv2d_1": "analog", "dense_0": CPU})
    assert where(plan, "analog") == ["conv2d_1"] and where(plan, CPU) == ["dense_0"]
    assert plan.policy == "a table" and plan.binding == {"conv2d_1", "dense_0"}


def test_a_function_sees_shapes_and_candidates() -> None:
    seen: list[LayerInfo] = []

    def ours(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
        seen.append(layer)
        assert [c.name for c in candidates] == ["digital", "analog", CPU]
        assert all((c.cycles or 0) > 0 for c in candidates if c.accepted)
        return "analog" if layer.op == "conv2d" and layer.C >= 32 else "digital"

    plan = planned("resnet8", ours)
    assert where(plan, "analog") == ["conv2d_4", "conv2d_6", "conv2d_7", "conv2d_8"]
    assert plan.policy == "a function"
    first = seen[0]
    assert (first.name, first.op, first.C, first.K, first.iy, first.fx) == (
        "conv2d_0", "conv2d", 3, 16, 32, 3,
    )  # fmt: skip
    assert [layer.name for layer in seen if layer.border] == ["conv2d_0", "conv2d_8"]


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"conv2d_99": "digital"}, ["conv2d_99", "conv2d_0", "dense_0"]),
        ({"conv2d_0": "neural"}, ["neural", "conv2d_0", "digital, analog, cpu"]),
        ({"add_0": "analog"}, ["add_0", "analog", "the operator is add"]),
        (lambda layer, offers: "neural", ["neural", "conv2d_0", "digital, analog, cpu"]),
        (lambda layer, offers: "analog", ["add_0", "analog", "the operator is add"]),
        (lambda layer, offers: None, ["None", "conv2d_0"]),
        (lambda layer, offers: offers[7].name, ["IndexError", "conv2d_0"]),
        (lambda: "cpu", ["TypeError", "conv2d_0"]),
        ("fastest", ["fastest", "bitwidth, latency, mixed"]),
        (7, ["int", "bitwidth, latency, mixed"]),
    ],
)
def test_what_cannot_be_done_is_said(policy: Policy, words: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        planned("resnet8", policy)
    for word in words:
        assert word in str(caught.value)


def test_a_bad_policy_leaves_a_build_with_its_error() -> None:
    with pytest.raises(PolicyError, match="the operator is add"):
        htvm.build(zoo.build("resnet8"), "diana", "host", policy={"add_0": "analog"})
    with pytest.raises(PolicyError, match="analog"):
        htvm.build(zoo.build("toyadmos"), "diana.digital", "host", policy={"dense_0": "analog"})


# ------------------------------------------------------------------------------ shapes


def test_a_padding_before_a_convolution_belongs_to_it() -> None:
    """As after retargeting, and as the cores do it."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8, 8, 16), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            widths = [0, 0, 1, 0, 2, 1, 0, 0]
            padded = emit(bb, relax.op.nn.pad(x, widths, pad_value=-3), "pad_0", last=True)
            y = conv2d_of(
                np.ones((4, 16, 3, 3), np.int8),
                np.zeros(4, np.int32),
                Window(),
                TfliteRequant((1 << 30,), (-4,), 0, (-3,)),
            ).write(bb, [padded], "conv2d_0")
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    seen: list[LayerInfo] = []

    def ours(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
        seen.append(layer)
        return CPU

    target = resolve("diana")
    place(graph_of(bb.get()), target, Cost(target.soc, TilingOptions()), ours)
    (info,) = seen
    assert (info.iy, info.ix, info.oy, info.ox) == (8, 8, 7, 9)


# ------------------------------------------------------------------------------ dispatch confirms


def test_dispatch_follows_the_plan_and_says_what_is_impossible() -> None:
    graph = graph_of_zoo("resnet8")
    target = resolve("diana")

    def placed(wanted: dict[str, str], binding: tuple[str, ...] = ()) -> dict[str, str]:
        found = dispatch(graph, target.soc, target.accelerators, wanted, binding)
        return dict(found.placement)

    assert placed({})["conv2d_0"] == "digital"
    assert placed({"conv2d_0": CPU})["conv2d_0"] == CPU
    # Written for 8 bits, so the analog core refuses it: the digital one takes it.
    assert placed({"conv2d_0": "analog"})["conv2d_0"] == "digital"
    with pytest.raises(PolicyError, match=r"conv2d_0.*rule"):
        placed({"conv2d_0": "analog"}, ("conv2d_0",))
