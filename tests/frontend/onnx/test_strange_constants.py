"""Constants and attributes of another shape, type or size than an operator's: told as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.errors import HtvmError, ModelError
from tests.frontend.onnx.test_affine_bad_input import conv, refused, started
from tests.frontend.onnxfile import model_of, node, requant, saved


def test_weights_without_axes(tmp_path: Path) -> None:
    file, x = started()
    file.output(file.through(conv(file, x, shape=()), 0.1, 0))
    refused(file, tmp_path, ModelError, "weights of shape []", "Conv_3")


@pytest.mark.parametrize("count", [0, 2])
def test_a_padding_with_other_than_one_number(count: int, tmp_path: Path) -> None:
    file, x = started()
    widths = file.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64")
    padded = file.node("Pad", [x, widths, file.constant(np.zeros(count), "float32")])
    file.output(file.through(padded, 0.1, 0))
    refused(file, tmp_path, ModelError, f"a padding with {count} numbers", "Pad_2")


@pytest.mark.parametrize("axis", [np.inf, np.nan])
def test_axes_that_are_no_numbers(axis: float, tmp_path: Path) -> None:
    file, x = started()
    file.output(file.through(file.node("Squeeze", [x, file.constant([axis], "float16")]), 0.1, 0))
    refused(file, tmp_path, ModelError, "no numbers", "Squeeze_2")


@pytest.mark.parametrize(("op", "before"), [("Resize", ("", "")), ("Split", ()), ("Tile", ()),
                                            ("Expand", ())])  # fmt: skip
def test_sizes_that_are_no_numbers(op: str, before: tuple[str, ...], tmp_path: Path) -> None:
    file, x = started()
    sizes = file.constant([np.nan] * 4, "float32")
    file.output(file.through(file.node(op, [x, *before, sizes]), 0.1, 0))
    refused(file, tmp_path, ModelError, "no numbers", f"{op}_2")


@pytest.mark.parametrize("index", [np.nan, 1e30])
def test_indices_that_are_no_places(index: float, tmp_path: Path) -> None:
    file, x = started()
    file.output(file.through(file.node("Gather", [x, file.constant([index], "float32")]), 0.1, 0))
    refused(file, tmp_path, ModelError, "indices", "Gather_2")


BIG = float(2**100)
INTEGER: dict[str, Any] = {
    "division by nothing": node("Div", ["x", "none"], "y"),
    "clip to nothing": node("Clip", ["x", "none", "none"], "y"),
    "alpha": node("Gemm", ["x", "w", "b"], "y", alpha=BIG),
    "beta": node("Gemm", ["x", "w", "b"], "y", beta=BIG),
    "six": node("iHardswish", ["x"], "y", three=3, six=-(2**63), one_over_six=1),
    "levels": requant("x", "y", {}, n_levels=2**40),
    "ends": node("Clip", ["x"], "y", min=-(2**40), max=0),
}


@pytest.mark.parametrize("name", list(INTEGER))
def test_a_network_of_integers(name: str, tmp_path: Path) -> None:
    constants: dict[str, Any] = {
        "none": np.zeros(0, np.float32),
        "w": np.ones((4, 3), np.float32),
        "b": np.ones(3, np.float32),
        "mul": np.asarray([3.0], np.float32),
        "add": np.asarray([5.0], np.float32),
    }
    used = {key: value for key, value in constants.items() if key in INTEGER[name].input}
    model = model_of([INTEGER[name]], {"x": (1, 4)}, constants=used)
    with pytest.raises(HtvmError):
        htvm.load(saved(model, tmp_path), dialect="pulp")


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 3), (5,), (0,), (3, 1), (1, 1, 3)])
def test_biases_of_any_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Those that fit are read in both arithmetics, others told."""
    bias = np.ones(shape, np.float32)
    constants = {"w": np.ones((4, 3), np.float32), "b": bias}
    model = model_of(
        [node("Gemm", ["x", "w", "b"], "y")], {"x": (2, 4)}, constants=constants, output_shape=None
    )
    path = saved(model, tmp_path)
    fits = len(shape) <= 2 and all(a in (1, b) for a, b in zip(shape[::-1], (3, 2), strict=False))
    for dialect in ("real", "pulp"):
        if fits:
            assert htvm.load(path, dialect=dialect).outputs[0].shape == (2, 3)
        else:
            with pytest.raises(HtvmError):
                htvm.load(path, dialect=dialect)
