"""ONNX files that no exporter should write: each is refused with what is wrong and where."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import htvm
from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import File
from tests.frontend.onnx.test_affine_bad_input import conv, refused, started


def sound() -> onnx.ModelProto:
    file, x = started()
    file.output(file.through(conv(file, x), 0.1, 0))
    return file.model()


def written(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_the_sound_one_loads(tmp_path) -> None:
    htvm.load(written(sound(), tmp_path))


# ---------------------------------------------------------------------- the standard


def one(op: str, inputs: tuple[Any, ...] = (), domain: str = "", **attributes: Any) -> File:
    """A network of one operator on (1, 6, 8, 8), with further constant inputs."""
    file, x = started()
    more = [file.constant(value) if value is not None else "" for value in inputs]
    file.output(file.through(file.node(op, [x, *more], domain, **attributes), 0.1, 0))
    return file


INT = np.int64
NODES: dict[str, tuple[File, type[HtvmError], tuple[str, ...]]] = {
    "misspelt attribute": (
        one("MaxPool", kernel_shape=[2, 2], stride=[2, 2]),
        UnsupportedError,
        ("'stride'", "MaxPool_2", "'strides'"),
    ),
    "another domain": (one("Relu", domain="com.acme"), UnsupportedError, ("'com.acme'", "Relu")),
    "too few inputs": (one("Add"), ModelError, ("input 1 is missing", "Add_2")),
    "too many inputs": (one("Relu", (np.float32(1),)), ModelError, ("2 inputs", "Relu has 1")),
    "softmax over no axis": (one("Softmax", axis=7), ModelError, ("axis 7", "4 axes")),
    "flatten at no axis": (one("Flatten", axis=9), ModelError, ("axis 9",)),
    "squeeze of no axis": (one("Squeeze", (np.array([9], INT),)), ModelError, ("axis 9",)),
    "unsqueeze without axes": (one("Unsqueeze"), ModelError, ("'axes' is missing",)),
    "unsqueeze twice": (
        one("Unsqueeze", (np.array([0, 0], INT),)), ModelError, ("one twice",)
    ),
    "slice without range": (one("Slice"), ModelError, ("starts and ends",)),
    "slice of no axis": (
        one("Slice", tuple(np.array([n], INT) for n in (0, 4, 9))), ModelError, ("axis 9",)
    ),
    "slice of an axis twice": (
        one("Slice", tuple(np.array(n, INT) for n in ([0, 0], [4, 4], [2, 2]))),
        ModelError,
        ("axes (2, 2)",),
    ),
    "slice of other lengths": (
        one("Slice", tuple(np.array(n, INT) for n in ([0, 1], [4]))), ModelError, ("ends (4,)",)
    ),
    "padding with NaN": (
        one("Pad", (np.array([0, 0, 1, 1, 0, 0, 1, 1], INT), np.float32("nan"))),
        UnsupportedError,
        ("a padding with nan",),
    ),
    "sum with NaN": (one("Add", (np.float32("nan"),)), ModelError, ("NaN", "Add_2")),
    "product with infinity": (one("Mul", (np.float32("inf"),)), UnsupportedError, ("inf",)),
    "division by zero": (one("Div", (np.float32(0),)), UnsupportedError, ("operand 0.0",)),
    "huge padding": (
        one("Pad", (np.array([0, 0, 2**40, 0, 0, 0, 0, 0], INT),)),
        UnsupportedError,
        (f"{2**40 + 8}", "at most 2147483647"),
    ),
    "huge stride": (
        one("MaxPool", kernel_shape=[2, 2], strides=[2**62, 1]),
        ModelError,
        ("'strides'", "32 bits"),
    ),
    "an order of places that is none": (
        one("MaxPool", kernel_shape=[2, 2], storage_order=-2), ModelError, ("storage_order -2",)
    ),
    "huge reflections": (
        one("Pad", (np.array([0, 0, 2**30, 0, 0, 0, 0, 0], INT),), mode="edge"),
        UnsupportedError,
        ("Limits(folded_elements=...)",),
    ),
    "huge tiles": (
        one("Tile", (np.array([1, 1, 1, 2**24], INT),)),
        UnsupportedError,
        ("Limits(folded_elements=...)",),
    ),
    "an expansion to nothing": (
        one("Expand", (np.array([0, 6, 8, 8], INT),)), HtvmError, ("Expand",)
    ),
    "a celu of no width": (one("Celu", alpha=0.0), ModelError, ("'alpha' is 0.0",)),
    "a gelu by a number": (
        one("Gelu", approximate=3), ModelError, ("'approximate' is 3", "must be a text")
    ),
    "huge pads": (
        one("MaxPool", kernel_shape=[2, 2], pads=[2**40] * 4), HtvmError, ("MaxPool_2",)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file", "kind", "words"), NODES.values(), ids=NODES.keys())
def test_nodes(file: File, kind: type[HtvmError], words: tuple[str, ...], tmp_path) -> None:
    refused(file, tmp_path, kind, *words)


def test_weights_without_channels(tmp_path) -> None:
    file, x = started()
    file.output(file.through(conv(file, x, shape=(0, 6, 3, 3)), 0.1, 0))
    refused(file, tmp_path, ModelError, "empty", "Conv_3")


@pytest.mark.parametrize("shape", [(1, 6, 2**31, 8), (1, 6, 2**62, 8), (1, 6, 100_000, 100_000)])
def test_maps_beyond_32_bits(shape: tuple[int, ...], tmp_path) -> None:
    file, x = started(shape)
    file.output(file.through(conv(file, x), 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "2147483647")


# ---------------------------------------------------------------------- the file


def shape_lies(model: onnx.ModelProto) -> None:
    made = helper.make_tensor_value_info(model.graph.output[0].name, TensorProto.FLOAT, (1, 2, 3))
    model.graph.output[0].CopyFrom(made)


def type_lies(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64


def external(location: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        tensor = model.graph.initializer[2]
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location

    return change


FILES: dict[str, tuple[Callable[[onnx.ModelProto], object], tuple[str, ...]]] = {
    "two inputs of one name": (
        lambda m: m.graph.input.append(m.graph.input[0]), ("two inputs are called 'x'",)
    ),
    "two outputs of one name": (
        lambda m: m.graph.output.append(m.graph.output[0]), ("two outputs are called",)
    ),
    "an input without name": (
        lambda m: setattr(m.graph.input[0], "name", ""), ("one of the inputs has no name",)
    ),
    "an output of another shape": (shape_lies, ("float32[1, 2, 3]", "float32[1, 4, 6, 6]")),
    "an output of another type": (type_lies, ("int64", "float32[1, 4, 6, 6]")),
    "external data in a folder": (external("."), ("'.' is no file", "initialiser")),
    "external data of an impossible name": (external("a\0b"), ("cannot be read", "null")),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), FILES.values(), ids=FILES.keys())
def test_files(change: Callable[[onnx.ModelProto], object], words: Any, tmp_path) -> None:
    model = sound()
    change(model)
    with pytest.raises(ModelError) as caught:
        htvm.load(written(model, tmp_path))
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("name", [b"Conv", b"Conv_3", b"net_input"])
def test_names_that_are_no_text(name: bytes, tmp_path) -> None:
    file = File()
    x = file.through(file.input("net_input", (1, 6, 8, 8)), 0.1, 0)
    file.output(file.through(conv(file, x), 0.1, 0))
    data = file.model().SerializeToString()
    assert name in data
    path = tmp_path / "net.onnx"
    path.write_bytes(data.replace(name, b"\xff" + name[1:]))
    with pytest.raises(ModelError, match="no text"):
        htvm.load(path)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_a_pipe_is_not_waited_for(suffix: str, tmp_path) -> None:
    path = tmp_path / f"net.{suffix}"
    os.mkfifo(path)
    with pytest.raises(ModelError, match="pipe is not a model"):
        htvm.load(path)


def test_external_data_in_a_pipe(tmp_path) -> None:
    os.mkfifo(tmp_path / "data.bin")
    model = sound()
    external("data.bin")(model)
    with pytest.raises(ModelError, match="'data.bin' is no file"):
        htvm.load(written(model, tmp_path))


@pytest.mark.parametrize("option", ["input_types", "dimensions"])
def test_options_that_are_no_dicts(option: str, tmp_path) -> None:
    path = written(sound(), tmp_path)
    with pytest.raises(ModelError, match=f"option '{option}'"):
        htvm.load(path, **{option: ["x"]})  # type: ignore[arg-type]


def test_a_divisor_beyond_32_bits(tmp_path) -> None:
    node = helper.make_node(
        "RequantShift", ["x", "m", "a"], ["y"], "r", div=2**63 - 2**62, n_levels=256, signed=1
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.full(1, 2.0**62, np.float32), name) for name in "ma"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    with pytest.raises(UnsupportedError, match=f"a division by {2**62}"):
        htvm.load(written(model, tmp_path))


def test_a_contradiction_is_told_with_its_place_once_and_what_to_do(tmp_path: Path) -> None:
    model = sound()
    nodes = model.graph.node
    nodes[0].input[0] = nodes[-1].output[0]
    with pytest.raises(ModelError) as caught:
        htvm.load(written(model, tmp_path))
    assert "a cycle" in caught.value.what
    assert caught.value.where.count("net.onnx") == 1
    assert caught.value.hint == "the file contradicts itself; export it again"
