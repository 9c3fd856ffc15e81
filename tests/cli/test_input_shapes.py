"""``--input-shape``: sizes that an ONNX file leaves open, on every verb that opens a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from htvm.errors import InputError
from htvm.tools.cli.app import app, main
from htvm.tools.cli.arguments import read_shape, shape_text
from htvm.tools.cli.verbs import VERBS


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ReLU between integers of a shape that the file does not say."""
    value = onnx.helper.make_tensor_value_info
    constants = [
        onnx.numpy_helper.from_array(np.float32(0.1), "scale"),
        onnx.numpy_helper.from_array(np.int8(0), "zero"),
    ]
    node = onnx.helper.make_node
    nodes = [
        node("DequantizeLinear", ["x", "scale", "zero"], ["real"]),
        node("Relu", ["real"], ["positive"]),
        node("QuantizeLinear", ["positive", "scale", "zero"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes, "net", [value("x", 3, [None, "n", 4])], [value("y", 3, None)], constants
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path_factory.mktemp("files") / "open.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_a_shape_is_read_from_its_last_equals_sign() -> None:
    assert read_shape("image=1x3x224x224") == ("image", (1, 3, 224, 224))
    assert read_shape("a=b=2X0") == ("a=b", (2, 0))
    assert read_shape(shape_text("cache/keys:0", (1, 0, 4))) == ("cache/keys:0", (1, 0, 4))


@pytest.mark.parametrize(
    "text", ["1x3", "image", "image=", "=1x3", "image=1x", "image=-1x3", "image=1,3", "image=1x²",
             "image=1x9999999999"],
)  # fmt: skip
def test_what_is_no_shape(text: str) -> None:
    with pytest.raises(InputError, match=r"no shape of an input.*--input-shape"):
        read_shape(text)


def test_every_verb_with_a_model_takes_shapes() -> None:
    for verb in VERBS:
        command = app.get_command(None, verb)  # type: ignore[arg-type]
        assert command is not None
        names = {parameter.name for parameter in command.params}
        assert ("input_shapes" in names) == ("model" in names), verb
        reads = {"model", "network", "words"} & names or verb == "quantize"
        assert ("limits" in names) == bool(reads), verb


def test_a_network_runs_with_the_shape_given(
    network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ["--input-shape", "x=1x3x4"]
    words = [str(network), "--target", "generic.cpu", "--json"]
    assert main(["run", *words, "--platform", "host", *shape]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]
    assert main(["explain", *words, *shape, *shape]) == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "--input-shape x=..."),
        (["x=1x3"], "given is [1, 3]"),
        (["x=1x3x5"], "given is [1, 3, 5]"),
        (["y=1x3x4"], "no input is called 'y'"),
        (["x=1x3x4", "x=1x2x4"], "two shapes for input 'x'"),
    ],
)
def test_shapes_that_do_not_fit(
    network: Path, capsys: pytest.CaptureFixture[str], given: list[str], text: str
) -> None:
    words = [word for shape in given for word in ("--input-shape", shape)]
    assert main(["explain", str(network), "--target", "generic.cpu", *words]) != 0
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["y=uint8"], "no input is called 'y'"),
        (["x=int9"], "type 'int9' for input 'x'"),
        (["x=uint8"], "input 'x' is declared as int8, not as uint8"),
        (["x=int8", "x=uint8"], "two types for input 'x'"),
        (["uint8"], "is no type of an input"),
    ],
)
def test_types_that_do_not_fit(
    network: Path, capsys: pytest.CaptureFixture[str], given: list[str], text: str
) -> None:
    words = [word for kind in given for word in ("--input-type", kind)]
    shape = ["--input-shape", "x=1x3x4"]
    assert main(["explain", str(network), "--target", "generic.cpu", *shape, *words]) != 0
    assert text in capsys.readouterr().err


def test_networks_whose_types_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "zoo:ds_cnn", "--input-type", "x=int8"]) != 0
    assert "has all types" in capsys.readouterr().err


def test_networks_whose_shapes_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "zoo:ds_cnn", "--input-shape", "x=1"]) != 0
    assert "has all sizes" in capsys.readouterr().err
