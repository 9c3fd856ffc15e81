"""Real inputs of sizes that no memory has, and attributes of another length: typed errors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import htvm
from htvm.errors import ModelError, UnsupportedError
from tests.frontend.onnxfile import model_of, node, saved

INT = np.int64
NODES: dict[str, Any] = {
    "ArgMax": node("ArgMax", ["x"], "y", axis=0, select_last_index=1),
    "Gather": node("Gather", ["x", "places"], "y", axis=0),
    "Relu": node("Relu", ["x"], "y"),
    "Split": helper.make_node("Split", ["x"], ["y", "z"], name="y", axis=0),
    "Tile": node("Tile", ["x", "one"], "y"),
}
CONSTANTS = {"places": np.array([0, 2], INT), "one": np.array([1], INT)}


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62])
@pytest.mark.parametrize("name", list(NODES))
def test_an_axis_beyond_32_bits(name: str, size: int, tmp_path: Path) -> None:
    used = {key: value for key, value in CONSTANTS.items() if key in NODES[name].input}
    model = model_of([NODES[name]], {"x": (size,)}, constants=used)
    with pytest.raises(UnsupportedError, match="at most 2147483647"):
        htvm.load(saved(model, tmp_path))


@pytest.mark.parametrize("name", ["Gather", "Split", "Tile"])
def test_a_long_axis_is_not_walked_through(name: str, tmp_path: Path) -> None:
    used = {key: value for key, value in CONSTANTS.items() if key in NODES[name].input}
    model = model_of([NODES[name]], {"x": (2**30,)}, constants=used)
    start = time.process_time()
    try:
        htvm.load(saved(model, tmp_path))
    except UnsupportedError:
        pass
    assert time.process_time() - start < 5


def test_an_output_shape_of_another_length(tmp_path: Path) -> None:
    constants = {"w": np.ones((1, 2, 3, 3), np.float32)}
    turned = node("ConvTranspose", ["x", "w"], "y", output_shape=[7])
    turned.attribute[0].ints[:] = []
    model = model_of([turned], {"x": (1, 1, 3, 3)}, constants=constants)
    with pytest.raises(ModelError, match=r"attribute 'output_shape' is"):
        htvm.load(saved(model, tmp_path))
    turned = node("ConvTranspose", ["x", "w"], "y", output_shape=[5, 5], strides=[1, 1])
    model = model_of([turned], {"x": (1, 1, 3, 3)}, constants=constants)
    assert htvm.load(saved(model, tmp_path)).outputs[0].shape == (1, 2, 5, 5)


@pytest.mark.parametrize("alpha", [0.0, 1e-60])
def test_a_celu_that_divides_by_zero(alpha: float, tmp_path: Path) -> None:
    model = model_of([node("Celu", ["x"], "y", alpha=alpha)], {"x": (4,)})
    with pytest.raises(ModelError, match="'alpha' is"):
        htvm.load(saved(model, tmp_path))


def test_an_expansion_to_nothing(tmp_path: Path) -> None:
    model = model_of(
        [node("Expand", ["x", "s"], "y")], {"x": (4, 1)}, constants={"s": np.array([4, 0], INT)}
    )
    with pytest.raises(ModelError, match=r"an expansion of \[4, 1\] to \[4, 0\]"):
        htvm.load(saved(model, tmp_path))


def test_a_border_as_large_as_the_result(tmp_path: Path) -> None:
    constants = {"n": np.array([0, 0, 9000, 9000], INT), "v": np.float32(1)}
    model = model_of([node("Pad", ["x", "n", "v"], "y")], {"x": (1, 1)}, constants=constants)
    with pytest.raises(UnsupportedError, match="81,018,0.. elements or more, for a limit of 33"):
        htvm.load(saved(model, tmp_path))
