"""The drawn transformers: operations as published, attention that attends, builds to the byte."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.layers import MulShift
from htvm import zoo
from htvm.errors import ModelError
from htvm.model import Model
from patterns.reading.node import Node
from patterns.reading.read import graph_of
from tests.reference.interpreter import interpret

SMALL = {
    "sequence": 64,
    "embedding": 32,
    "projection": 32,
    "heads": 3,
    "feed_forward": 64,
    "stacked": 2,
}
RNG = np.random.default_rng(11)


def drawn(model: Model) -> list[Any]:
    (info,) = model.inputs
    return [RNG.integers(-128, 128, info.shape).astype("int8")]


def macs(node: Node) -> int:
    if node.kind not in ("linear", "matmul"):
        return 0
    return int(np.prod(node.output_shape)) * node.input_shapes[0][-1]


def entropies(rows: Any) -> Any:
    """Of rows of probabilities, in bits."""
    shares = rows / rows.sum(axis=-1, keepdims=True)
    return -(shares * np.log2(np.maximum(shares, 1e-9))).sum(axis=-1)


def check_tensors(tensors: Mapping[str, Any]) -> None:
    """Activations use their range, do not saturate, and differ along the sequence."""
    for name, values in tensors.items():
        if values.dtype != np.int8 or name.endswith("_scores"):
            continue
        assert np.abs(values.astype(int)).max() > 38, f"{name} uses only part of the range"
        saturated = (values == 127) | (values == -128)
        assert saturated.mean() < 0.1, f"{name} saturates"
        assert (values == 0).mean() < 0.6, f"{name} dies"
        assert values.std(axis=0).mean() > 5, f"{name} is the same everywhere in a sequence"


def check_attention(tensors: Mapping[str, Any]) -> None:
    """Rows of attention are neither uniform nor one-hot, and differ from each other."""
    for name, rows in tensors.items():
        if not name.endswith("_softmax"):
            continue
        bits, most = entropies(rows), np.log2(rows.shape[-1])
        assert 0.5 * most < bits.mean() < 0.95 * most, f"{name}: {bits.mean():.2f} of {most} bits"
        assert bits.min() > 0.25 * most, f"{name}: a row attends to one place"
        assert rows.std(axis=0).mean() > 0.5 * rows.mean(), f"{name}: all rows attend alike"


def test_operations_are_the_published_ones() -> None:
    """128 rows, 128 embedded and 64 projected columns, 4 heads, 4 x 512 inside, 24 layers."""
    nodes = graph_of(zoo.encoder(2).module).in_order
    assert round(2 * 12 * sum(map(macs, nodes)) / 1e9, 2) == 4.43
    parameters = sum(
        node.input_shapes[0][-1] * node.output_shape[-1] for node in nodes if node.kind == "linear"
    )
    assert round(12 * parameters / 1e6, 1) == 15.7
    assert sum(map(macs, graph_of(zoo.gemm(128, 256, 64).module).in_order)) == 128 * 256 * 64
    attention = graph_of(zoo.single_head_attention().module).in_order
    assert sum(map(macs, attention)) == 4 * 128 * 128 * 64 + 2 * 128 * 128 * 64


def test_what_a_layer_consists_of() -> None:
    nodes = {node.name: node for node in graph_of(zoo.encoder(1, **SMALL).module).in_order}
    head = "layer_0_head_2"
    reads = {
        f"{head}_query": ("linear", ["input"]),
        f"{head}_key": ("linear", ["input"]),
        f"{head}_value": ("linear", ["input"]),
        f"{head}_similarity": ("matmul", [f"{head}_query", f"{head}_key"]),
        f"{head}_scores": ("rescale", [f"{head}_similarity"]),
        f"{head}_softmax": ("ita_softmax", [f"{head}_scores"]),
        f"{head}_mixture": ("matmul", [f"{head}_softmax", f"{head}_value"]),
        f"{head}_context": ("rescale", [f"{head}_mixture"]),
        f"{head}_output": ("linear", [f"{head}_context"]),
        "layer_0_heads": ("accumulate", [f"layer_0_head_{number}_output" for number in range(3)]),
        "layer_0_attention_add": ("add", ["input", "layer_0_heads"]),
        "layer_0_attention_norm": ("affine_norm", ["layer_0_attention_add"]),
        "layer_0_ffn_0_inner": ("linear", ["layer_0_attention_norm"]),
        "layer_0_ffn_0_outer": ("linear", ["layer_0_ffn_0_inner"]),
        "layer_0_ffn_0_add": ("add", ["layer_0_attention_norm", "layer_0_ffn_0_outer"]),
        "layer_0_ffn_0_norm": ("affine_norm", ["layer_0_ffn_0_add"]),
        "layer_0_ffn_1_inner": ("linear", ["layer_0_ffn_0_norm"]),
    }
    for name, (kind, inputs) in reads.items():
        assert (nodes[name].kind, list(nodes[name].inputs)) == (kind, inputs)
    assert vars(nodes[f"{head}_similarity"].op)["transpose_b"] == 1
    assert len(nodes) == 3 * 9 + 3 + 2 * 4


@pytest.mark.parametrize(
    ("activation", "target"), [("relu", "generic.cpu"), ("gelu", "snitch_ita.cpu")]
)
def test_a_layer_is_what_is_built(activation: str, target: str) -> None:
    model = zoo.encoder(1, **SMALL, activation=activation)
    built = htvm.build(model, target, platform="host")
    inputs = drawn(model)
    (wanted,) = interpret(model.module, inputs).outputs
    for made in (built.run(inputs).outputs, built.reference(inputs)):
        np.testing.assert_array_equal(made[0], wanted)


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_a_product_is_what_is_built(activation: str | None) -> None:
    model = zoo.gemm(20, 48, 36, activation)
    inputs = drawn(model)
    (wanted,) = interpret(model.module, inputs).outputs
    assert (wanted.min() >= 0) == (activation == "relu")
    built = htvm.build(model, "generic.cpu", platform="host")
    np.testing.assert_array_equal(built.run(inputs).outputs[0], wanted)


def test_attention_stays_apart_through_layers() -> None:
    model = zoo.encoder(3, **SMALL)
    tensors = interpret(model.module, drawn(model)).tensors
    check_tensors(tensors)
    check_attention(tensors)


def test_single_head_attention_attends() -> None:
    model = zoo.single_head_attention(64, 32, 32)
    run = interpret(model.module, drawn(model))
    check_attention(run.tensors)
    built = htvm.build(model, "generic.cpu", platform="host")
    inputs = drawn(model)
    wanted = interpret(model.module, inputs).outputs[0]
    np.testing.assert_array_equal(built.run(inputs).outputs[0], wanted)


def test_a_seed_is_one_encoder() -> None:
    def first(layers: int, seed: int) -> Any:
        model = zoo.encoder(layers, **SMALL, seed=seed)
        x = [np.arange(64 * 32).reshape(64, 32).astype("int8")]
        return interpret(model.module, x).tensors["layer_0_ffn_1_norm"]

    np.testing.assert_array_equal(first(1, 3), first(2, 3))
    assert (first(1, 3) != first(1, 4)).any()


def test_every_requantization_is_the_accelerators() -> None:
    """8 bits of factor, and half a step more, which is rounding half up."""
    requants = 0
    for node in graph_of(zoo.encoder(1, **SMALL).module).in_order:
        requant = node.layer.requant if node.layer is not None else vars(node.op).get("requant")
        if node.kind not in ("linear", "add"):
            continue
        assert isinstance(requant, MulShift)
        (mul,), (shift,), (add,) = requant.mul, requant.shift, requant.add
        assert 0 < mul <= 255 and add == 1 << (shift - 1)
        requants += 1
    assert requants >= 3 * 4 + 3 + 2 * 2


def test_names_on_the_command_line() -> None:
    from htvm.tools.cli.arguments import open_model

    assert open_model("zoo:encoder:2").name == "encoder_2"
    for text in ("zoo:encoder:ternary", "zoo:encoder:-1", "zoo:encoder:0", "zoo:encoder:99999"):
        with pytest.raises(ModelError, match="encoder"):
            open_model(text)


@pytest.mark.parametrize(
    "wrong",
    [{"heads": 0}, {"sequence": 1.5}, {"stacked": -1}, {"activation": "tanh"}, {"seed": -1}],
)
def test_sizes_that_cannot_be(wrong: dict[str, Any]) -> None:
    (value,) = wrong.values()
    with pytest.raises(ModelError, match=re.escape(repr(value))):
        zoo.encoder(1, **wrong)


@pytest.mark.slow
def test_a_layer_of_full_size() -> None:
    """On the simulated core, whose L2 holds it."""
    model = zoo.encoder(1)
    inputs = drawn(model)
    (wanted,) = interpret(model.module, inputs).outputs
    built = htvm.build(model, "snitch_ita.cpu")
    np.testing.assert_array_equal(built.run(inputs).outputs[0], wanted)


@pytest.mark.slow
def test_the_whole_encoder() -> None:
    """24 layers of full size, built for the host: C and interpreter agree on every byte."""
    model = zoo.encoder()
    inputs = drawn(model)
    run = interpret(model.module, inputs)
    check_tensors(run.tensors)
    check_attention(run.tensors)
    built = htvm.build(model, "generic.cpu", platform="host", l2_bytes=32 << 20)
    np.testing.assert_array_equal(built.run(inputs).outputs[0], run.outputs[0])
