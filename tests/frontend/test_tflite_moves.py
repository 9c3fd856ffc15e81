"""TFLite operators that move elements, where TFLite Micro is no reference: it has none of them, or
fills the padding between blocks with what happens to be there."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import ModelError, UnsupportedError
from tests.frontend import rearranged
from tests.frontend.flatfile import INT32, Graph
from tests.frontend.rearranged import Kind, dilated
from tests.frontend.single import Loader, inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import Array, interpret


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


@pytest.mark.parametrize("dropped", ["RESHAPE", "SQUEEZE"])
@pytest.mark.parametrize("seed", range(4))
def test_so_is_one_over_a_single_axis(load: Loader, dropped: str, seed: int) -> None:
    """As Keras converts a dilated Conv1D: with a height of 1 around the convolution alone."""
    rng = np.random.default_rng(seed)
    block, taps, part, c, k = (int(n) for n in rng.integers(2, 5, 5))
    part += taps
    pads = [int(n) for n in rng.integers(0, 2, 2)]
    size, out = block * part - sum(pads), block * (part - taps + 1)
    weights, bias = Sketch(rng).bytes(k, 1, taps, c), np.arange(k, dtype=np.int32) * 40
    options = {0: ("b", 1), 1: ("i", 1), 2: ("i", 1)}

    def layer(sketch: Sketch, source: int, made: int, dilation: int) -> None:
        parts = [sketch.constant(weights, 0.01), sketch.constant(bias, 5e-4, code=INT32)]
        sketch.op("CONV_2D", [source, *parts], [made], (1, {**options, 4: ("i", dilation)}))

    sketch = Sketch(rng)
    source = sketch.input((1, size, c))
    dealt, lifted = sketch.like(source, (block, part, c)), sketch.like(source, (block, 1, part, c))
    made = sketch.tensor((block, 1, part - taps + 1, k), 0.2, -9)
    flat, last = (sketch.like(made, shape) for shape in ((block, part - taps + 1, k), (1, out, k)))
    numbers = [sketch.integers(each) for each in ([block], [pads], [[0, 0]], 1)]
    sketch.op("SPACE_TO_BATCH_ND", [source, *numbers[:2]], [dealt], None)
    sketch.op("EXPAND_DIMS", [dealt, numbers[3]], [lifted], None)
    layer(sketch, lifted, made, 1)
    if dropped == "RESHAPE":
        sketch.op("RESHAPE", [made, sketch.integers((block, part - taps + 1, k))], [flat], None)
    else:
        sketch.op("SQUEEZE", [made], [flat], (30, {0: np.asarray([1], np.int32)}))
    sketch.op("BATCH_TO_SPACE_ND", [flat, numbers[0], numbers[2]], [last], None)
    graph = sketch.graph(last)

    other = Sketch(rng)
    source = other.input((1, 1, size, c))
    wide, result = (
        other.like(source, (1, 1, block * part, c)),
        other.tensor((1, 1, out, k), 0.2, -9),
    )
    other.op("PAD", [source, other.integers([[0, 0], [0, 0], pads, [0, 0]])], [wide], None)
    layer(other, wide, result, block)

    (x,) = inputs_of(graph, rng)
    model = load(graph)
    (wanted,) = reference(other.graph(result), [x[:, None]])
    np.testing.assert_array_equal(interpret(model.module, [x]).outputs[0], wanted[:, 0])


@pytest.mark.parametrize("kind", ["pack", "unpack"])
def test_a_number_of_parts_that_is_not_theirs(load: Loader, kind: str) -> None:
    """TFLite Micro believes the option, and leaves the other parts as they are."""
    graph = rearranged.CASES[kind](np.random.default_rng(3))
    number, fields = graph.operators[0].options or (0, {})
    (_, count) = fields[0]
    options = (number, {**fields, 0: ("i", count + 1)})
    with pytest.raises(ModelError, match="parts"):
        load(graph.with_operator(0, options=options))


def test_packed_parts_of_other_scales(load: Loader) -> None:
    """TFLite Micro copies their integers, so that they would be other numbers."""
    graph = rearranged.CASES["pack"](np.random.default_rng(3))
    with pytest.raises(UnsupportedError, match="differ in scale"):
        load(graph.with_tensor(graph.inputs[0], scales=[0.9]))


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
