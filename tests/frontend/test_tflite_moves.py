"""TFLite operators that move elements, where TFLite Micro is no reference: it has none of them, or
fills the padding between blocks with what happens to be there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from tests.frontend import rearranged
from tests.frontend.flatfile import Graph
from tests.frontend.rearranged import Kind, dilated
from tests.frontend.single import inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import Array, interpret

Loader = Callable[[Graph], htvm.Model]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    def load(graph: Graph) -> htvm.Model:
        path = tmp_path / "network.tflite"
        path.write_bytes(graph.file())
        return htvm.load(path)

    return load


def made(load: Loader, graph: Graph, inputs: list[Array]) -> Array:
    return interpret(load(graph).module, inputs).outputs[0]


@pytest.mark.parametrize("seed", range(12))
def test_tiles_repeat(load: Loader, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = rearranged.tile(rng)
    (x,) = inputs_of(graph, rng)
    multiples = graph.tensors[graph.operators[0].inputs[1]].data
    np.testing.assert_array_equal(made(load, graph, [x]), np.tile(x, multiples))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_padded_with_the_number_zero(load: Loader, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = rearranged.space_to_batch(rng, pads_below=3)
    (x,) = inputs_of(graph, rng)
    _, blocks, pads = (graph.tensors[at].data for at in graph.operators[0].inputs)
    assert blocks is not None and pads is not None
    zero = graph.tensors[0].zero_points[0]
    widths = [(0, 0), *pads.tolist(), (0, 0)]
    wide = np.pad(x, widths, constant_values=zero)
    parts = [
        wide[(slice(None), *(slice(low, None, step) for low, step in zip(at, blocks, strict=True)))]
        for at in np.ndindex(*blocks)
    ]
    np.testing.assert_array_equal(made(load, graph, [x]), np.concatenate(parts))


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("seed", range(8))
def test_a_convolution_between_blocks_is_a_dilated_one(load: Loader, kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, equal = dilated(rng, kind)
    inputs = inputs_of(graph, rng)
    model = load(graph)
    assert not {node.op.kind for node in model.graph.nodes.values()} & {"transpose", "reshape"}
    np.testing.assert_array_equal(
        interpret(model.module, inputs).outputs[0], reference(equal, inputs)[0]
    )


def test_other_readers_keep_the_blocks_apart(load: Loader) -> None:
    """A convolution that something else reads as well stays between its blocks, and is refused."""
    graph, _ = dilated(np.random.default_rng(2), "CONV_2D")
    inner = graph.operators[1].outputs[0]
    with pytest.raises(UnsupportedError, match="a batch of"):
        load(Graph(graph.tensors, graph.operators, graph.inputs, [*graph.outputs, inner]))


def _gather(options: dict[int, tuple[str, int]], places: list[int]) -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input([4, 3])
    out = sketch.like(source, [len(places), 3])
    sketch.op("GATHER", [source, sketch.integers(places)], [out], (23, options))
    return sketch.graph(out)


def _mirrored(width: int) -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input([3, 3])
    out = sketch.like(source, [3 + width, 3])
    widths = sketch.integers([[width, 0], [0, 0]])
    sketch.op("MIRROR_PAD", [source, widths], [out], (77, {0: ("b", 0)}))
    return sketch.graph(out)


@pytest.mark.parametrize(
    ("graph", "error", "text"),
    [
        (_gather({1: ("i", 1)}, [0, 1, 2, 3]), UnsupportedError, "batch_dims 1"),
        (_gather({}, [0, 4]), ModelError, "places .0, 4. of 4"),
        (_mirrored(3), ModelError, "mirrored paddings"),
    ],
    ids=["batch_dims", "place", "mirror"],
)
def test_refusals(load: Loader, graph: Graph, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        load(graph)
