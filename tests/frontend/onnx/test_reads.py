"""What a node has set is read by its handler, or refused by its name; known results are folded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import htvm
from htvm.errors import UnsupportedError
from htvm.frontend.onnx.file import read_file
from tests.reference.interpreter import interpret

FLOAT = TensorProto.FLOAT


def model(nodes: list[onnx.NodeProto], shape: tuple[int, ...], **constants: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def saved(net: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(net, folder / "net.onnx")
    return folder / "net.onnx"


QUANTIZED = {"s": np.float32(0.5), "z": np.int8(3)}


def between(*nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Nodes from ``a`` to ``b`` between quantized tensors."""
    return [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        *nodes,
        helper.make_node("QuantizeLinear", ["b", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"]),
    ]


@pytest.mark.parametrize(
    ("node", "constants", "named"),
    [
        (
            helper.make_node("Clip", ["a"], ["b"], strange=1),
            {},
            "strange",
        ),
        (
            helper.make_node("LayerNormalization", ["a", "w"], ["b"], stash_type=16),
            {"w": np.ones(4, np.float32)},
            "stash_type",
        ),
        (
            helper.make_node("ArgMax", ["a"], ["b"], keepdims=0, strange=1),
            {},
            "strange",
        ),
    ],
    ids=["of no version", "of another value", "of a place"],
)
def test_what_no_handler_reads_is_refused_by_name(
    tmp_path: Path, node: onnx.NodeProto, constants: dict[str, Any], named: str
) -> None:
    file = saved(model(between(node), (1, 1, 4, 4), **QUANTIZED, **constants), tmp_path)
    with pytest.raises(UnsupportedError, match=named) as caught:
        htvm.load(file)
    assert node.op_type in str(caught.value)


def test_a_default_value_is_as_good_as_none(tmp_path: Path) -> None:
    node = helper.make_node("Flatten", ["a"], ["b"], axis=1)
    cast = helper.make_node("LayerNormalization", ["b", "w"], ["c"], stash_type=1)
    nodes = between(node, cast, helper.make_node("Identity", ["c"], ["d"]))
    nodes[-2].input[0] = "d"
    net = model(nodes, (1, 4, 1, 1), **QUANTIZED, w=np.ones(4, np.float32))
    assert htvm.load(saved(net, tmp_path)).inputs[0].shape == (1, 4, 1, 1)


def test_outputs_that_nobody_uses_are_no_obstacle(tmp_path: Path) -> None:
    node = helper.make_node("MaxPool", ["a"], ["b", "places"], kernel_shape=[2, 2])
    htvm.load(saved(model(between(node), (1, 1, 4, 4), **QUANTIZED), tmp_path))
    used = helper.make_node("MaxPool", ["a"], ["c", "b"], kernel_shape=[2, 2])
    with pytest.raises(UnsupportedError, match="indices"):
        htvm.load(saved(model(between(used), (1, 1, 4, 4), **QUANTIZED), tmp_path))


def test_a_shape_that_is_computed_in_the_graph_is_folded(tmp_path: Path) -> None:
    nodes = between(
        helper.make_node("Shape", ["a"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "first"], ["front"]),
        helper.make_node("Concat", ["front", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["a", "target"], ["b"]),
    )
    constants = {"zero": np.int64(0), "first": np.asarray([0]), "rest": np.asarray([-1])}
    file = saved(model(nodes, (1, 2, 3, 4), **QUANTIZED, **constants), tmp_path)
    graph = read_file(file)
    assert "Shape" not in [node.op for node in graph.nodes]
    assert graph.constants["target"].tolist() == [1, -1]
    assert htvm.load(file).outputs[0].shape == (1, 24)


def test_arithmetic_of_constants_is_folded_but_not_dequantization(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Sqrt", ["four"], ["two"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"]),
        helper.make_node("Add", ["x", "two"], ["c"]),
        helper.make_node("Add", ["c", "real"], ["y"]),
    ]
    constants = {"four": np.full((4,), 4, np.float32), "w": np.arange(4, dtype=np.int8)}
    graph = read_file(saved(model(nodes, (4,), **QUANTIZED, **constants), tmp_path))
    assert [node.op for node in graph.nodes] == ["DequantizeLinear", "Add", "Add"]
    np.testing.assert_array_equal(graph.constants["two"], np.full(4, 2, np.float32))


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_every_operand_of_a_maximum_counts(tmp_path: Path, op: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=4).astype(np.float32) for _ in range(2))
    node = helper.make_node(op, ["x", "a", "b"], ["y"])
    made = htvm.load(saved(model([node], (4,), a=a, b=b), tmp_path))
    x = rng.normal(size=4).astype(np.float32)
    whole = np.maximum if op == "Max" else np.minimum
    np.testing.assert_array_equal(interpret(made.module, [x]).outputs[0], whole(whole(x, a), b))


def test_a_padding_of_named_axes(tmp_path: Path) -> None:
    node = helper.make_node("Pad", ["a", "pads", "", "axes"], ["b"])
    constants = {"pads": np.asarray([1, 2, 0, 1]), "axes": np.asarray([-1, 2])}
    net = model(between(node), (1, 2, 3, 4), **QUANTIZED, **constants)
    made = htvm.load(saved(net, tmp_path))
    x = np.random.default_rng(4).normal(size=(1, 2, 3, 4)).astype(np.float32)
    expected = np.pad(
        (np.clip(np.rint(x / np.float32(0.5)) + 3, -128, 127) - 3) / 2,
        ((0, 0), (0, 0), (2, 1), (1, 0)),
    )
    np.testing.assert_array_equal(interpret(made.module, [x]).outputs[0], expected)


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceMax", "ReduceMean", "ReduceSum"])
def test_what_a_reduction_over_no_axis_is_has_no_effect_on_others(tmp_path: Path, op: str) -> None:
    def file(axes: list[int], noop: int) -> Path:
        node = helper.make_node(op, ["x", "axes"], ["y"], noop_with_empty_axes=noop)
        return saved(model([node], (2, 3, 4), axes=np.asarray(axes, np.int64)), tmp_path)

    x = np.random.default_rng(5).normal(size=(2, 3, 4)).astype(np.float32)
    with_it, without = (
        interpret(htvm.load(file([-1], noop)).module, [x]).outputs[0] for noop in (1, 0)
    )
    np.testing.assert_array_equal(with_it, without)
    with pytest.raises(UnsupportedError, match="'noop_with_empty_axes' is 2, and not supported"):
        htvm.load(file([-1], 2))


def test_a_quantized_mean_over_a_map_as_newer_exporters_write_it(tmp_path: Path) -> None:
    node = helper.make_node("ReduceMean", ["a", "axes"], ["b"], noop_with_empty_axes=1)
    net = model(between(node), (1, 2, 3, 4), **QUANTIZED, axes=np.asarray([2, 3], np.int64))
    assert "average_0" in htvm.load(saved(net, tmp_path)).graph.nodes
