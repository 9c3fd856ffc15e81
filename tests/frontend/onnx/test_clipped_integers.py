"""Integers that are clipped between quantization and dequantization: fewer than 8 bits (QCDQ)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import htvm
from tests.reference.interpreter import Array, interpret


def network(
    *, zero: int, signed: bool, cast: bool = False, limits: tuple[int, int] | None = None
) -> onnx.ModelProto:
    """4-bit activations and weights around a convolution, as brevitas exports them."""
    rng = np.random.default_rng(0)
    node = helper.make_node
    kind = np.int8 if signed else np.uint8
    low, high = limits or ((-8, 7) if signed else (0, 15))
    constants: dict[str, Array] = {
        # Sums are no multiples of half an output step, where float32 could decide either way.
        "s": np.float32(0.0503), "z": np.int8(0), "lo": np.int8(-8), "hi": np.int8(7),
        "w": rng.normal(0, 0.3, (5, 4, 3, 3)).astype(np.float32), "ws": np.float32(0.0997),
        "so": np.float32(0.2113), "zo": kind(zero), "low": kind(low), "high": kind(high),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("Clip", ["xq", "lo", "hi"], ["xc"]),
        node("DequantizeLinear", ["xc", "s", "z"], ["xr"]),
        node("QuantizeLinear", ["w", "ws", "z"], ["wq"]),
        node("Clip", ["wq", "lo", "hi"], ["wc"]),
        node("DequantizeLinear", ["wc", "ws", "z"], ["wr"]),
        node("Conv", ["xr", "wr"], ["c"]),
        node("Cast", ["c"], ["d"], to=TensorProto.FLOAT) if cast else node("Relu", ["c"], ["d"]),
        node("QuantizeLinear", ["d", "so", "zo"], ["dq"]),
        node("Clip", ["dq", "low", "high"], ["dc"]),
        node("DequantizeLinear", ["dc", "so", "zo"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [value("x", TensorProto.FLOAT, [1, 4, 6, 6])],
        [value("y", TensorProto.FLOAT, [1, 5, 4, 4])],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("zero", "signed", "cast"), [(0, False, False), (3, False, True), (0, True, True)]
)
def test_the_integers_are_bounded(tmp_path: Path, zero: int, signed: bool, cast: bool) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(zero=zero, signed=signed, cast=cast), path)
    model = htvm.load(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).normal(0, 0.4, (1, 4, 6, 6)).astype(np.float32)
    (wanted,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(interpret(model.module, [x]).outputs[0], wanted)
    levels = np.unique(np.rint(wanted / np.float32(0.2113)))
    assert 4 < levels.size and np.ptp(levels) <= 15
    ranges = [node.op.clip for node in model.graph.nodes.values() if node.op.kind == "conv2d"]
    least = (-8, 7) if signed else (-128, -113)
    assert ranges == [least], "the convolution clips, no operator of its own"


@pytest.mark.parametrize(("limits", "value"), [((-100, -10), -10), ((-40, -40), -40)])
def test_bounds_that_share_nothing_with_the_rectifier_before(
    tmp_path: Path, limits: tuple[int, int], value: int
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(zero=0, signed=True, limits=limits), path)
    x = np.random.default_rng(1).normal(0, 0.4, (1, 4, 6, 6)).astype(np.float32)
    (made,) = interpret(htvm.load(path).module, [x]).outputs
    assert np.unique(made) == [np.float32(value) * np.float32(0.2113)]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(made, session.run(None, {"x": x})[0])


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
def test_a_real_bias_is_added_to_a_real_result_as_it_is(tmp_path: Path, op: str) -> None:
    """Steps of the sums of few bits are coarse: half of one here is 0.0025."""
    model, bias = network(zero=0, signed=True), np.float32([0.0021, -0.31, 0.44, 0.0, 1.0027])
    graph, shape = model.graph, [1, 4, 6, 6]
    product = graph.node[6]
    if op == "Gemm":
        shape, weight = [1, 36], np.random.default_rng(3).normal(0, 0.3, (36, 5))
        (old,) = (item for item in graph.initializer if item.name == "w")
        old.CopyFrom(numpy_helper.from_array(weight.astype(np.float32), "w"))
        graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    product.op_type = op
    product.input.append("bias")
    product.output[0] = "y"
    graph.initializer.append(numpy_helper.from_array(bias, "bias"))
    del graph.node[7:]
    sizes = [1, 5] if op == "Gemm" else [1, 5, 4, 4]
    graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes))
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).normal(0, 0.4, shape).astype(np.float32)
    (wanted,) = session.run(None, {"x": x})
    (found,) = interpret(htvm.load(path).module, [x]).outputs
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
