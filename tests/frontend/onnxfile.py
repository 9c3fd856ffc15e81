"""Helper: write small ONNX files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    """A node named after its output."""
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[Any]],
    output: str = "y",
    constants: Mapping[str, Array] | None = None,
    *,
    dtype: int = TensorProto.FLOAT,
    output_shape: Sequence[int] | None = None,
) -> onnx.ModelProto:
    """A model of these nodes; inputs by name, with their shapes."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, dtype, list(s)) for name, s in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, output_shape)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def saved(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """The model as a file, whatever is wrong with it."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def requant(source: str, output: str, constants: dict[str, Array], **changes: Any) -> Any:
    """A RequantShift by 3 / 8, its factors entered as constants."""
    constants |= {"mul": np.asarray([3.0], np.float32), "add": np.asarray([5.0], np.float32)}
    attributes = {"div": 8, "n_levels": 256, "signed": 1, **changes}
    return node("RequantShift", [source, "mul", "add"], output, **attributes)
