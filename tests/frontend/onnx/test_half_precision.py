"""Constants of float16, which exporters write to halve a file, with a Cast to float32 behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import htvm
from htvm.errors import ModelError
from tests.reference.interpreter import interpret

VALUES = np.asarray([[0.1, -2.5, 65504.0, 6e-8]], np.float16)


def file_of(folder: Path, tensor: onnx.TensorProto) -> Path:
    """``x + w`` in float32."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Cast", ["w"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "real"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "net", [value("x", TensorProto.FLOAT, [1, 4])],
        [value("y", TensorProto.FLOAT, [1, 4])], [tensor],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "net.onnx")
    return folder / "net.onnx"


def in_bits(bits: list[int]) -> onnx.TensorProto:
    tensor = onnx.TensorProto(data_type=TensorProto.FLOAT16, dims=[1, 4], name="w")
    tensor.int32_data.extend(bits)
    return tensor


@pytest.mark.parametrize("raw", [True, False])
def test_constants_of_half_precision(tmp_path: Path, raw: bool) -> None:
    bits = [int(number) for number in VALUES.view(np.uint16)[0]]
    tensor = numpy_helper.from_array(VALUES, "w") if raw else in_bits(bits)
    model = htvm.load(file_of(tmp_path, tensor))
    x = np.asarray([[1.0, 2.0, 3.0, 0.0]], np.float32)
    wanted = x + VALUES.astype(np.float32)
    np.testing.assert_array_equal(interpret(model.module, [x]).outputs[0], wanted)


def test_bits_beyond_sixteen(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="values from 1 to 70000"):
        htvm.load(file_of(tmp_path, in_bits([1, 2, 3, 70000])))
