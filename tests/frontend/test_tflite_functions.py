"""TFLite's functions that TFLite Micro has only for reals, and what is refused of the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from tests.frontend.computed import CASES, WITHOUT_MICRO
from tests.frontend.flatfile import FLOAT32, Graph
from tests.frontend.sketch import Sketch
from tests.reference.interpreter import interpret


def load(path: Path, graph: Graph) -> htvm.Model:
    path.write_bytes(graph.file())
    return htvm.load(path)


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: float) -> float:
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


REALS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", WITHOUT_MICRO)
def test_a_table_holds_the_rounded_reals(tmp_path: Path, kind: str, seed: int) -> None:
    """Where the exact result is near the middle of two integers, float32 may decide otherwise."""
    graph = WITHOUT_MICRO[kind](np.random.default_rng(seed))
    source, out = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    (made,) = interpret(load(tmp_path / "a.tflite", graph).module, [every]).outputs
    for x, found in zip(every[0], made[0], strict=True):
        real = REALS[kind](source.scales[0] * (int(x) - source.zero_points[0])) / out.scales[0]
        exact = min(max(real + out.zero_points[0], -128.0), 127.0)
        assert abs(exact - int(found)) <= 0.5 + 1e-4, (x, found, exact)


def single(kind: str) -> Graph:
    return CASES[kind](np.random.default_rng(1))


def _far(graph: Graph) -> Graph:
    """The output in another scale than the input."""
    at = graph.outputs[0]
    return graph.with_tensor(at, scales=[graph.tensors[at].scales[0] * 2])


def _maps_of_many() -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input([1, 3, 5000, 1])
    out = sketch.like(source, [1, 3, 9000, 1])
    sketch.op("RESIZE_BILINEAR", [source, sketch.integers([3, 9000])], [out], (15, {}))
    return sketch.graph(out)


@pytest.mark.parametrize(
    ("graph", "error", "text"),
    [
        (single("rsqrt").with_tensor(0, zero_points=[0]), UnsupportedError, "below zero"),
        (_far(single("reduce_max")), UnsupportedError, "differ in scale"),
        (_far(single("maximum")), UnsupportedError, "differ in scale"),
        (single("arg_max").with_tensor(1, code=FLOAT32), UnsupportedError, "places as float32"),
        (single("batch_matmul").with_tensor(2, shape=(9, 9)), ModelError, "an output of shape"),
        (_maps_of_many(), ModelError, "sizes"),
    ],
    ids=["root", "reduced", "maximum", "places", "matmul", "map"],
)
def test_refusals(tmp_path: Path, graph: Graph, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        load(tmp_path / "a.tflite", graph)


def test_both_operands_may_be_one_tensor(tmp_path: Path) -> None:
    """A product of a matrix with itself, transposed: the Gram matrix of attention."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input([2, 5, 7], 0.02, 3)
    out = sketch.tensor([2, 5, 5], 0.1, -5)
    sketch.op("BATCH_MATMUL", [source, source], [out], (101, {1: ("B", 1)}))
    x = np.random.default_rng(3).integers(-128, 128, (2, 5, 7)).astype(np.int8)
    (made,) = interpret(load(tmp_path / "a.tflite", sketch.graph(out)).module, [x]).outputs
    real = (x.astype(float) - 3) * 0.02
    exact = np.clip(real @ real.swapaxes(1, 2) / 0.1 - 5, -128, 127)
    assert np.abs(made - exact).max() <= 0.5 + 1e-6
