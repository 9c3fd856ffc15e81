"""Average pools and softmax: exactly what one of onnxruntime's kernels computes, and which one.

Its kernels round float32 sums differently.  Of uint8, an average between DequantizeLinear and
QuantizeLinear is QLinearAveragePool, as a default session runs it; of int8, it is the float pool of
a session without optimization, whose order of sums changed with opset 19 (a default session fuses
some of these and not others).  A softmax is QLinearSoftmax, which takes ``floor(1 / scale)``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import htvm
from tests.reference.interpreter import interpret

onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")


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


def agree(
    model: Any, dtype: str, shape: tuple[int, ...], folder: Path, seed: int, *, fused: bool = True
) -> None:
    """Every element equals onnxruntime's, and enough of them differ."""
    save(model, folder / "net.onnx")
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)
    options = onnxruntime.SessionOptions()
    if not fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
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
        agree(model, dtype, shape, tmp_path, seed, fused=dtype == "uint8")


@pytest.mark.parametrize("scale", [1 / 256, 1 / 255, 0.00354095, 0.01])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_softmax(dtype: str, scale: float, tmp_path: Path) -> None:
    shape = (3, 24)
    node = helper.make_node("Softmax", ["a"], ["b"], axis=-1)
    steps = ((0.03, 4), (scale, -128 if dtype == "int8" else 0))
    agree(network(node, shape, steps, dtype, 13), dtype, shape, tmp_path, 2)
