"""Requantizations that add to the quotient before they floor it, such as the half that rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.errors import UnsupportedError
from patterns.reading.read import graph_of
from tests.frontend.onnx.affine_files import File
from tests.frontend.onnxfile import Array, model_of, node, saved
from tests.reference.interpreter import interpret

SHAPE = (1, 5, 6, 6)


def chained(
    rng: np.random.Generator, summand: float, *, scaled: bool, behind: bool = False
) -> tuple[Any, dict[str, Array]]:
    """A convolution of integers, its requantization, and the constants of both.

    With ``behind``, the summand is added to what is floored.
    """
    constants = {
        "w": rng.integers(-40, 41, (4, 5, 3, 3)), "mul": rng.integers(1, 90, (4, 1, 1)),
        "add": rng.integers(-70000, 70000, (4, 1, 1)),
        "d": np.asarray(2 ** (rng.integers(8, 10) + 5 * scaled)),
        "c": np.asarray(summand), "low": np.asarray(0), "high": np.asarray(255),
    }  # fmt: skip
    nodes = [node("Conv", ["x", "w"], "sums", pads=[1] * 4)]
    if scaled:
        nodes += [node("Mul", ["sums", "mul"], "product"), node("Add", ["product", "add"], "sum")]
    nodes.append(node("Div", ["sum" if scaled else "sums", "d"], "quotient"))
    last = "quotient"
    for op in ("Floor", "Add") if behind else ("Add", "Floor"):
        operands = [last] if op == "Floor" else sorted([last, "c"], key=lambda _: rng.random())
        nodes.append(node(op, operands, last := f"{op}_of_it"))
    nodes.append(node("Clip", [last, "low", "high"], "y"))
    file = {name: value.astype(np.float32) for name, value in constants.items()}
    return model_of(nodes, {"x": SHAPE}, constants=file), constants


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("summand", "behind"), [(0.5, False), (-0.25, False), (3.5, False), (7, True)]
)
def test_every_element_is_that_of_exact_integers(
    summand: float, behind: bool, scaled: bool, tmp_path: Path
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        file, constants = chained(rng, summand, scaled=scaled, behind=behind)
        path = saved(file, tmp_path)
        model = htvm.load(path, input_types={"x": "uint8"})
        assert [item.kind for item in graph_of(model.module).in_order] == ["conv2d"]
        data = rng.integers(0, 256, SHAPE).astype(np.uint8)
        padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        sums = np.einsum("ncyxij,kcij->nkyx", view, constants["w"])
        if scaled:
            sums = sums * constants["mul"] + constants["add"]
        # In eighths of a quotient's step, so that all is an integer.
        divisor = int(constants["d"])
        quotient = (8 * sums + int(8 * summand * divisor)) // (8 * divisor)
        wanted = np.clip(quotient, 0, 255)
        assert len(np.unique(wanted)) > 8
        np.testing.assert_array_equal(interpret(model.module, [data]).outputs[0], wanted)


def test_what_is_no_step_of_the_division_is_refused(tmp_path: Path) -> None:
    file, _ = chained(np.random.default_rng(0), 0.3, scaled=True)
    with pytest.raises(UnsupportedError, match="the constant times the divisor"):
        htvm.load(saved(file, tmp_path))
    file, _ = chained(np.random.default_rng(0), 0.5, scaled=True, behind=True)
    with pytest.raises(UnsupportedError, match="the constant behind a Floor"):
        htvm.load(saved(file, tmp_path), dialect="quantlib")


def test_types_of_inputs_that_are_read_as_reals_are_refused(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(4, 5, 3, 3)).astype(np.float32)
    file = model_of([node("Conv", ["x", "w"], "y")], {"x": SHAPE}, constants={"w": weight})
    with pytest.raises(UnsupportedError, match="'x' is not read as uint8, but as reals.*standard"):
        htvm.load(saved(file, tmp_path), input_types={"x": "uint8"})
    scales = File()
    scales.output(scales.through(scales.input("x", SHAPE), 0.1, 3))
    with pytest.raises(UnsupportedError, match="'x' is not read as int8.*QuantizeLinear"):
        htvm.load(scales.save(tmp_path), input_types={"x": "int8"})
