"""Files whose shapes were left open by the converter: what they declare need not be what runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.errors import ModelError
from tests.frontend.flatfile import Graph
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import interpret

ROWS, INPUTS, CHANNELS = 4, 6, 5


def dense_on_rows() -> Graph:
    """As Keras converts a dense layer of rows; the shapes are the true ones."""
    sketch = Sketch(np.random.default_rng(1))
    source = sketch.input((1, ROWS, INPUTS))
    flat, made = sketch.like(source, (ROWS, INPUTS)), sketch.tensor((ROWS, CHANNELS), 0.1, -5)
    weights = sketch.constant(sketch.bytes(CHANNELS, INPUTS), 0.01)
    last = sketch.like(made, (1, ROWS, CHANNELS))
    sketch.op("RESHAPE", [source, sketch.integers([-1, INPUTS])], [flat], None)
    sketch.op("FULLY_CONNECTED", [flat, weights], [made], (8, {0: ("b", 0)}))
    sketch.op("RESHAPE", [made, sketch.integers([1, -1, CHANNELS])], [last], None)
    return sketch.graph(last)


def left_open(graph: Graph, *shapes: tuple[int, ...]) -> Graph:
    """The graph with other declared shapes of computed tensors, all of whose sizes are open."""
    tensors = list(graph.tensors)
    for operator, shape in zip(graph.operators, shapes, strict=True):
        (at,) = operator.outputs
        tensors[at] = replace(tensors[at], shape=shape, signature=(-1,) * len(shape))
    return replace(graph, tensors=tensors)


def test_shapes_follow_from_the_operators(tmp_path: Path) -> None:
    graph, path = dense_on_rows(), tmp_path / "open.tflite"
    path.write_bytes(left_open(graph, (1, 1), (1, CHANNELS), (1, 1, CHANNELS)).file())
    model = htvm.load(path)
    assert [item.shape for item in model.outputs] == [(1, ROWS, CHANNELS)]
    x = np.random.default_rng(2).integers(-128, 128, (1, ROWS, INPUTS)).astype(np.int8)
    (found,), (wanted,) = interpret(model.module, [x]).outputs, reference(graph, [x])
    np.testing.assert_array_equal(found, wanted)


def test_shapes_that_are_not_left_open_are_believed(tmp_path: Path) -> None:
    graph, path = (
        left_open(dense_on_rows(), (1, 1), (1, CHANNELS), (1, 1, CHANNELS)),
        tmp_path / "x",
    )
    path = path.with_suffix(".tflite")
    tensors = [replace(tensor, signature=()) for tensor in graph.tensors]
    path.write_bytes(replace(graph, tensors=tensors).file())
    with pytest.raises(ModelError, match="reshape|shape"):
        htvm.load(path)
