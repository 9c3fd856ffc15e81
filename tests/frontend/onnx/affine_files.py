"""Helper: write small ONNX files with scales and zero points, and run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import htvm
from tests.reference import onnx_session
from tests.reference.interpreter import interpret

Array = npt.NDArray[Any]

_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
          "int16": TensorProto.INT16, "int32": TensorProto.INT32,
          "int64": TensorProto.INT64}  # fmt: skip


@dataclass
class File:
    """A graph in the making."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    opset: int = 17

    def constant(self, value: Any, dtype: str | None = None) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value, dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> str:
        self.inputs.append(helper.make_tensor_value_info(name, _TYPES[dtype], list(shape)))
        return name

    def output(self, name: str, dtype: str = "float32") -> None:
        self.outputs.append(helper.make_tensor_value_info(name, _TYPES[dtype], None))

    def node(self, op: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=f"{op}_{len(self.nodes)}",
                             domain=domain, **attributes)
        )  # fmt: skip
        return name

    def step(self, scale: float | Array, zero: int | Array, dtype: str) -> tuple[str, str]:
        """Scale and zero point."""
        return self.constant(scale, "float32"), self.constant(zero, dtype)

    def quantize(self, x: str, scale: float, zero: int, dtype: str = "int8") -> str:
        return self.node("QuantizeLinear", [x, *self.step(scale, zero, dtype)])

    def dequantize(
        self, x: str, scale: Any, zero: Any, dtype: str = "int8", axis: int | None = None
    ) -> str:
        attributes = {} if axis is None else {"axis": axis}
        return self.node("DequantizeLinear", [x, *self.step(scale, zero, dtype)], **attributes)

    def through(self, x: str, scale: float, zero: int, dtype: str = "int8") -> str:
        """Quantized and dequantized."""
        return self.dequantize(self.quantize(x, scale, zero, dtype), scale, zero, dtype)

    def model(self) -> Any:
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def save(self, folder: Path, name: str = "net.onnx") -> Path:
        path = folder / name
        onnx.save(self.model(), path)
        return path


def ours(path: Path, inputs: Sequence[Array], **options: Any) -> list[Array]:
    """The file imported and interpreted."""
    return interpret(htvm.load(path, **options).module, inputs).outputs


def theirs(path: Path, inputs: Sequence[Array]) -> list[Array]:
    """The file run by onnxruntime, its quantized kernels in use."""
    return onnx_session.quantized(path)(inputs)
