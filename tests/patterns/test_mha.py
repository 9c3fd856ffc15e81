"""Attention is found however it is written, means what was written, and is one composite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htvm
from byoc_dory.layers.layer import Layer
from htvm import zoo
from patterns.dispatch.dispatching import Dispatch
from patterns.dispatch.groups import Group
from patterns.dispatch.mha import NoAttention
from patterns.dispatch.together import together_in
from patterns.ops.add import Add
from patterns.ops.integer.combine import Combine
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Transpose
from patterns.reading.read import graph_of
from tests.models_onnx import onnx_path
from tests.patterns.attention_nets import STYLES, Attention, polynomial
from tests.patterns.fake import cut, fake, layers_of, placed_on
from tests.patterns.test_types import drawn, module_of
from tests.reference.interpreter import interpret
from tests.reference.matrix_layers import evaluate

SINGLE = ("dense", "add", "gemm", "matmul", "rows")


def found_in(module: Any) -> list[Group | NoAttention]:
    found = together_in(graph_of(module))
    return [*(group for group in found.groups if group.kind == "mha"), *found.missed]


def one_layer_means_what_was_written(spec: Attention) -> Layer:
    types = [((1, spec.rows, spec.columns), "int8")]
    module = module_of(types, spec)
    placed, parts = cut(module, fake())
    (region,) = parts.regions.values()
    (layer,) = region.layers
    assert layer.op == "mha" and layer.name in placed.groups
    assert layer.attention is not None
    assert layer.attention.heads == spec.heads and layer.attention.joined != spec.accumulated
    inputs = drawn(types)
    x = inputs[0].reshape(spec.rows, spec.columns).T[:, :, None]
    (expected,) = interpret(module, inputs).outputs
    rows = evaluate(layer, [x])[:, :, 0].T
    np.testing.assert_array_equal(rows, expected)
    assert len(np.unique(expected)) > 8
    return layer


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_every_way_of_writing(style: str, accumulated: bool, transposed: bool) -> None:
    one_layer_means_what_was_written(
        Attention(style=style, accumulated=accumulated, transposed=transposed)
    )


@settings(max_examples=15)
@given(
    st.integers(2, 9), st.integers(2, 9), st.integers(2, 5), st.integers(2, 6),
    st.sampled_from(STYLES), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_any_size(
    rows: int, columns: int, heads: int, size: int, style: str, accumulated: bool, seed: int
) -> None:
    types = [((1, rows, columns), "int8")]
    spec = Attention(rows, columns, heads, size, style, accumulated, seed=seed)
    module = module_of(types, spec)
    (group,) = found_in(module)
    assert isinstance(group, Group)
    inputs = drawn(types)
    result = evaluate(group.layer, [inputs[0].reshape(rows, columns).T[:, :, None]])
    np.testing.assert_array_equal(result[:, :, 0].T, interpret(module, inputs).outputs[0])


def test_one_head_that_is_not_accumulated() -> None:
    for style in STYLES:
        one_layer_means_what_was_written(Attention(heads=1, style=style))


# ------------------------------------------------------------------------------ dispatch


def attention_module(**options: Any) -> Any:
    return module_of([((1, 6, 8), "int8")], Attention(**options))


def last_reason(placed: Dispatch, accelerator: str = "cores") -> str:
    (reason,) = {
        verdict.reason
        for verdict in placed.verdicts
        if verdict.kind == "mha" and verdict.accelerator == accelerator
    }
    return reason


def test_who_refuses_attention_gets_the_operators() -> None:
    placed, parts = cut(attention_module(), fake(takes=SINGLE))
    assert last_reason(placed) == "attention of 3 heads: the operator is mha"
    places = {name: place for name, place in placed.placement.items() if place != "cpu"}
    assert {placed.kinds[name] for name in places} == {"linear", "matmul", "ita_softmax"}
    assert placed.placement["output"] == "cores" and placed.kinds["output"] == "linear"
    assert sum(layers_of(parts), []).count("output") == 1


def test_the_first_that_accepts_gets_all_of_it() -> None:
    plain, special = fake("plain", SINGLE), fake("special", ("mha",))
    placed, parts = cut(attention_module(), plain, special)
    assert set(placed.placement.values()) == {"special"}
    assert placed.kinds["output"] == "mha" and placed.layers["output"].op == "mha"
    assert layers_of(parts) == [["output"]]
    (region,) = parts.regions.values()
    assert region.homes == ("special",)
    of_softmax = {v.accelerator: v for v in placed.verdicts if v.kind == "ita_softmax"}
    assert of_softmax["special"].reason == "part of mha 'output'"
    assert not of_softmax["plain"].accepted


def test_users_name_the_last_operator() -> None:
    plain, special = fake("plain", SINGLE), fake("special", ("mha",))
    placed = placed_on(attention_module(), plain, special, wanted={"output": "plain"})
    assert placed.placement["output"] == "plain" and not placed.inner & {"output"}
    assert "special" not in placed.placement.values()
    placed = placed_on(attention_module(), plain, special, wanted={"output": "cpu"})
    assert placed.placement["output"] == "cpu" and placed.placement["q"] == "plain"


def _add(bb: Any, scores: Any) -> Any:
    return Add(htvm_shift()).write(bb, [scores, scores], "masked")


def _combine(bb: Any, scores: Any) -> Any:
    wide = Combine("add").write(bb, [scores, scores], "masked")

    return Rescale(np.array(1), np.array(0), 1, (-128, 127)).write(bb, [wide], "scaled")


def _shuffled(bb: Any, scores: Any) -> Any:
    return Transpose((0, 1, 3, 2)).write(bb, [scores], "turned")


def htvm_shift() -> Any:
    from byoc_dory.layers.layer import Shift

    return Shift(1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mask": _add}, "add 'masked' adds to the scores: masks are not supported"),
        ({"mask": _combine}, "combine 'masked' adds to the scores: masks are not supported"),
        ({"mask": _shuffled}, "the scores 'turned' are transpose, not a product"),
        ({"softmax": polynomial}, "the softmax is integer_softmax, which is not one of powers"),
        ({"leak": True}, "inside it is a result of the model"),
    ],
)
def test_what_is_in_the_way_is_said(options: dict[str, Any], reason: str) -> None:
    (found,) = found_in(attention_module(**options))
    assert isinstance(found, NoAttention)
    assert reason in found.reason
    placed = placed_on(attention_module(**options), fake())
    assert last_reason(placed) == f"attention: {found.reason}"
    assert not any(layer.op == "mha" for layer in placed.layers.values())


def test_a_classifier_is_no_attention() -> None:
    module = module_of([((1, 10), "int8")], lambda bb, x: polynomial(bb, x, "softmax_0"))
    assert found_in(module) == []


# ------------------------------------------------------------------------------ networks


@pytest.mark.parametrize("heads", [1, 2])
def test_the_encoder(heads: int) -> None:
    sizes = {"sequence": 16, "embedding": 8, "projection": 4, "feed_forward": 12, "stacked": 1}
    module = zoo.encoder(2, heads=heads, activation="gelu", **sizes).module
    placed, parts = cut(module, fake())
    (region,) = parts.regions.values()
    ops = [layer.op for layer in region.layers]
    assert ops == ["mha", "add", "rows", "gemm", "gemm", "add", "rows"] * 2
    assert set(placed.placement.values()) == {"cores"}
    x = np.random.default_rng(2).integers(-128, 128, (16, 8)).astype(np.int8)
    known = {"input": x.T[:, :, None]}
    for layer in region.layers:
        known[layer.name] = evaluate(layer, [known[tensor.name] for tensor in layer.inputs])
    (expected,) = interpret(module, [x]).outputs
    np.testing.assert_array_equal(known[region.layers[-1].name][:, :, 0].T, expected)


def test_a_file_with_one_head() -> None:
    module = htvm.load(onnx_path("deeploy_networks/CCT/Int/ICCT_ITA")).module
    (group,) = found_in(module)
    assert isinstance(group, Group)
    attention = group.layer.attention
    assert attention is not None and attention.joined
    assert group.name == "linear_3" and group.layer.inputs[0].name == "layer_norm_0"
    assert (attention.heads, attention.head_size) == (1, 192)
    assert attention.scores.softmax.numerator == 127 * 256
    placed, parts = cut(module, fake())
    of_encoder = max(layers_of(parts), key=len)
    assert of_encoder[:2] == ["layer_norm_0", "linear_3"] and of_encoder[-1] == "layer_norm_2"
    assert placed.groups["linear_3"] == group.parts


def test_a_file_with_another_softmax() -> None:
    (found,) = found_in(htvm.load(onnx_path("deeploy_kernels/Integer/Attention")).module)
    assert isinstance(found, NoAttention) and "integer_softmax" in found.reason


def test_a_file_of_reals_has_none() -> None:
    assert found_in(htvm.load(onnx_path("deeploy_networks/Transformer_DeepQuant")).module) == []
