"""Average pools and softmax: exactly what a default session of onnxruntime computes.

Its kernels round float32 sums differently.  An average over windows is QLinearAveragePool: of int8
at the borders of a model, of uint8 inside, as the session turns int8 into it; and the float pool
where only one of its two sides is turned.  A softmax is QLinearSoftmax, which takes
``floor(1 / scale)``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import htvm
from tests.reference.interpreter import interpret


def network(node: Any, shape: tuple[int, ...], steps: Any, dtype: str, opset: int) -> Any:
    """A node between DequantizeLinear and QuantizeLinear; tensors of ``dtype`` at the borders."""
    kind = TensorProto.INT8 if dtype == "int8" else TensorProto.UINT8
    (first, zero), (last, end) = steps
    constants = {"xs": np.float32(first), "xz": np.dtype(dtype).type(zero),
                 "ys": np.float32(last), "yz": np.dtype(dtype).type(end)}  # fmt: skip
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["a"]),
            node,
            helper.make_node("QuantizeLinear", ["b", "ys", "yz"], ["y"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    return model


def agree(model: Any, dtype: str, shape: tuple[int, ...], folder: Path, seed: int) -> None:
    """Every element equals onnxruntime's, and enough of them differ."""
    save(model, folder / "net.onnx")
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, {"x": x})
    (found,) = interpret(htvm.load(folder / "net.onnx").module, [x]).outputs
    assert len(np.unique(wanted)) > 4
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (2, 1), (4, 4), (3, 2)])
def test_average_pools(kernel: int, stride: int, dtype: str, opset: int, tmp_path: Path) -> None:
    shape = (1, 4, 16, 16)
    node = helper.make_node(
        "AveragePool", ["a"], ["b"], kernel_shape=[kernel] * 2, strides=[stride] * 2
    )
    for seed, ratio in enumerate((1, 0.5, 0.73)):
        scale = float(np.random.default_rng(seed).uniform(0.01, 0.1))
        zeros = (-7, 5) if dtype == "int8" else (120, 131)
        steps = ((scale, zeros[0]), (scale * ratio, zeros[1]))
        model = network(node, shape, steps, dtype, opset)
        agree(model, dtype, shape, tmp_path, seed)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("size", [(16,), (16, 16)])
def test_average_pools_inside(
    size: tuple[int, ...], dtype: str, shared: bool, tmp_path: Path
) -> None:
    """Between tensors that the session makes uint8; with ``shared`` two nodes read the result."""
    shape, axes = (1, 16, *size), len(size)
    zeros = (-7, 5) if dtype == "int8" else (120, 131)
    node = helper.make_node(
        "AveragePool", ["a"], ["b"], kernel_shape=[2] * axes, strides=[2] * axes
    )
    for seed, ratio in enumerate((1, 0.5, 0.73)):
        scale = float(np.random.default_rng(seed).uniform(0.01, 0.1))
        steps = ((scale, zeros[0]), (scale * ratio, zeros[1]))
        model = network(node, shape, steps, dtype, 20)
        graph = model.graph
        graph.node.insert(0, helper.make_node("QuantizeLinear", ["real", "xs", "xz"], ["x"]))
        graph.node.append(helper.make_node("DequantizeLinear", ["y", "ys", "yz"], ["end"]))
        del graph.input[:], graph.output[:]
        graph.input.append(helper.make_tensor_value_info("real", TensorProto.FLOAT, shape))
        last = "end"
        if shared:
            graph.node.append(helper.make_node("Sigmoid", ["end"], ["first"]))
            graph.node.append(helper.make_node("Neg", ["end"], ["second"]))
            graph.node.append(helper.make_node("Concat", ["first", "second"], ["both"], axis=1))
            last = "both"
        graph.output.append(helper.make_tensor_value_info(last, TensorProto.FLOAT, None))
        save(model, tmp_path / "net.onnx")
        x = np.random.default_rng(seed).normal(0, 40 * scale, shape).astype(np.float32)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (wanted,) = session.run(None, {"real": x})
        (found,) = interpret(htvm.load(tmp_path / "net.onnx").module, [x]).outputs
        assert len(np.unique(wanted)) > 4
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1 / 256, 1 / 255, 0.00354095, 0.01])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_softmax(dtype: str, scale: float, tmp_path: Path) -> None:
    shape = (3, 24)
    node = helper.make_node("Softmax", ["a"], ["b"], axis=-1)
    steps = ((0.03, 4), (scale, -128 if dtype == "int8" else 0))
    agree(network(node, shape, steps, dtype, 13), dtype, shape, tmp_path, 2)
