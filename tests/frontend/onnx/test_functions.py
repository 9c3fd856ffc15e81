"""Functions of ONNX files are written in place of their calls, if they end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import htvm
from htvm.errors import ModelError, UnsupportedError
from tests.frontend.onnxfile import Array, model_of, node, saved
from tests.reference.interpreter import interpret

X = np.asarray([[1.0, -2.0, 3.0]], np.float32)


def call(name: str, source: str, output: str) -> onnx.NodeProto:
    return node(name, [source], output, domain="mine")


def of_functions(first: str, functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    """A network of reals that calls a function."""
    model = model_of([call(first, "x", "y")], {"x": X.shape}, output_shape=X.shape)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.functions.extend(functions)
    return model


def function(name: str, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, ["a"], ["b"], list(nodes), imports)


def run(model: onnx.ModelProto, folder: Path) -> Array:
    return interpret(htvm.load(saved(model, folder)).module, [X]).outputs[0]


def test_calls_within_calls_are_computed(tmp_path: Path) -> None:
    twice = function("Twice", [node("Add", ["a", "a"], "b")])
    fourfold = function("Fourfold", [call("Twice", "a", "t"), call("Twice", "t", "b")])
    np.testing.assert_array_equal(run(of_functions("Fourfold", [fourfold, twice]), tmp_path), 4 * X)


@pytest.mark.parametrize("ring", [("A",), ("A", "B"), ("A", "B", "C")])
def test_what_calls_itself_is_refused(ring: Sequence[str], tmp_path: Path) -> None:
    after = dict(zip(ring, (*ring[1:], ring[0]), strict=True))
    functions = [function(name, [call(after[name], "a", "b")]) for name in ring]
    with pytest.raises(ModelError, match="calls itself.*model.onnx"):
        htvm.load(saved(of_functions("A", functions), tmp_path))


def test_what_grows_without_bound_is_refused(tmp_path: Path) -> None:
    functions = [
        function(f"F{n}", [call(f"F{n + 1}", "a", "t"), call(f"F{n + 1}", "t", "b")])
        for n in range(40)
    ]
    functions.append(function("F40", [node("Neg", ["a"], "b")]))
    with pytest.raises(UnsupportedError, match="expand to 1,099,511,627,776 nodes"):
        htvm.load(saved(of_functions("F0", functions), tmp_path))
    np.testing.assert_array_equal(run(of_functions("F38", functions), tmp_path), X)


def test_two_of_one_name(tmp_path: Path) -> None:
    twice = function("Twice", [node("Add", ["a", "a"], "b")])
    with pytest.raises(ModelError, match="two functions"):
        htvm.load(saved(of_functions("Twice", [twice, twice]), tmp_path))
