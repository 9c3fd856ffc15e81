"""Random layers built for the Ethos-U, executed on its model: on the NPU, and TFLite Micro's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.verdict import CPU
from tests.e2e.ethos_u_regions import ON_CPU, outcome
from tests.e2e.test_ethos_u import CONFIGURATIONS, built, parts_and_whole, reason
from tests.frontend import single, wide
from tests.frontend.flatfile import INT8, INT16, Graph
from tests.frontend.single import inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.frontend.wide import as_int16
from tests.rotation import today

pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")


def resized(sketch: Sketch, factors: tuple[int, int], bilinear: bool, mode: int) -> Graph:
    """A map at another size; modes are none, aligned, centred."""
    y, x, c = sketch.size(1, 7), sketch.size(1, 7), sketch.size(1, 20)
    sizes = y * factors[0], x * factors[1]
    source = sketch.drawn_input((1, y, x, c))
    out = sketch.like(source, (1, *sizes, c))
    code, options, first = ("BILINEAR", 15, 2) if bilinear else ("NEAREST_NEIGHBOR", 74, 0)
    modes = {first: ("B", int(mode == 1)), first + 1: ("B", int(mode == 2))}
    sketch.op(f"RESIZE_{code}", [source, sketch.integers([*sizes])], [out], (options, modes))
    return sketch.graph(out)


def nearest(rng: np.random.Generator) -> Graph:
    """With maxima behind it: alone, a move of elements stays on the CPU."""
    sketch, factor = Sketch(rng), int(rng.choice([2, 4, 8]))
    (source,) = resized(sketch, (factor, factor), False, 2 * int(rng.integers(2))).outputs
    batch, y, x, c = sketch.tensors[source].shape
    out = sketch.like(source, (batch, y - 1, x - 1, c))
    window = {0: ("b", 1), 1: ("i", 1), 2: ("i", 1), 3: ("i", 2), 4: ("i", 2)}
    sketch.op("MAX_POOL_2D", [source], [out], (5, window))
    return sketch.graph(out)


def bilinear(rng: np.random.Generator) -> Graph:
    return resized(Sketch(rng), (2, 2), True, 2 * int(rng.integers(2)))


def elementwise(
    kind: str, options: int, code: int = INT16
) -> Callable[[np.random.Generator], Graph]:
    """Of two maps, clipped or not."""

    def drawn(rng: np.random.Generator) -> Graph:
        sketch = Sketch(rng)
        shape = (1, sketch.size(), sketch.size(), sketch.size(1, 20))
        a, b = (
            sketch.input(shape, sketch.scale(1e-5, 1e-2), zero_point(sketch, code), code=code)
            for _ in range(2)
        )
        first, second = (sketch.tensors[at].scales[0] for at in (a, b))
        largest = max(first, second) if kind != "MUL" else 32768 * first * second
        scale = largest * sketch.scale(0.1, 4)
        out = sketch.tensor(shape, scale, zero_point(sketch, code), code=code)
        sketch.op(kind, [a, b], [out], (options, {0: sketch.fused()}))
        return sketch.graph(out)

    return drawn


def average(code: int) -> Callable[[np.random.Generator], Graph]:
    """Without padding, clipped or not."""

    def drawn(rng: np.random.Generator) -> Graph:
        sketch = Sketch(rng)
        fy, fx = sketch.size(1, 9), sketch.size(1, 9)
        sizes = sketch.size(0, 6), sketch.size(0, 6)
        c, zero = sketch.size(1, 20), zero_point(sketch, code)
        scale = sketch.scale() / (1 if code == INT8 else 256)
        source = sketch.input((1, fy + sizes[0], fx + sizes[1], c), scale, zero, code=code)
        out = sketch.tensor((1, sizes[0] + 1, sizes[1] + 1, c), scale, zero, code=code)
        one = ("i", 1)
        window = {0: ("b", 1), 1: one, 2: one, 3: ("i", fx), 4: ("i", fy), 5: sketch.fused()}
        sketch.op("AVERAGE_POOL_2D", [source], [out], (5, window))
        return sketch.graph(out)

    return drawn


def zero_point(sketch: Sketch, code: int) -> int:
    """One of int8; int16 has none."""
    return sketch.zero() if code == INT8 else 0


def moves(rng: np.random.Generator) -> Graph:
    axis = int(rng.integers(1, 4))
    begin, sizes = [1, 2, 3], [4, 4, 4]
    begin[axis - 1], sizes[axis - 1] = int(rng.integers(2, 5)), int(rng.integers(5, 8))
    return parts_and_whole(axis, tuple(begin), tuple(sizes))


WIDE: Mapping[str, Callable[[np.random.Generator], Graph]] = {
    **{
        name: wide.CASES[name]
        for name in (
            "add", "conv", "depthwise", "fully_connected", "max_pool", "mean", "multiply", "relu",
            "relu_6", "rescale", "subtract", "transpose_conv",
        )
    },
    "average": average(INT16),
    "moves": lambda rng: as_int16(moves(rng)),
    "difference": elementwise("SUB", 28),
    "product": elementwise("MUL", 21),
    "sum": elementwise("ADD", 11),
}  # fmt: skip
"""Of int16."""

LAYERS: Mapping[str, Callable[[np.random.Generator], Graph]] = {
    "bilinear": bilinear,
    "mean": single.CASES["mean"],
    "nearest": nearest,
    "transpose_conv": single.CASES["transpose_conv"],
}

LOWERED: Mapping[tuple[str, str], Callable[[np.random.Generator], Graph]] = {
    **{("int8", name): drawn for name, drawn in LAYERS.items()},
    **{
        ("int8", name): single.CASES[name]
        for name in (
            "add", "conv", "depthwise", "fully_connected", "hard_swish", "leaky_relu", "logistic",
            "max_pool", "multiply", "softmax", "subtract", "tanh",
        )
    },
    ("int8", "average"): average(INT8),
    ("int8", "moves"): moves,
    ("int8", "difference"): elementwise("SUB", 28, INT8),
    ("int8", "product"): elementwise("MUL", 21, INT8),
    ("int8", "sum"): elementwise("ADD", 11, INT8),
    **{("int16", name): drawn for name, drawn in WIDE.items()},
}  # fmt: skip
"""Layers by type and operator, some of each of which the accelerator takes."""


def lowered(kind: str, name: str, seed: int, target: str, folder: Path) -> str:
    """Return how the layer of a seed comes out; see `tests.e2e.ethos_u_regions.outcome`."""
    rng = np.random.default_rng(seed)
    return outcome(LOWERED[kind, name](rng), rng, target, folder)


@pytest.mark.rotating(6)
@pytest.mark.parametrize(("kind", "name"), LOWERED)
def test_layers_on_the_model_alone(kind: str, name: str, tmp_path: Path) -> None:
    """As ``python -m benchmarks.ethos_u_layers`` counts them."""
    found = {lowered(kind, name, seed, CONFIGURATIONS[seed], tmp_path) for seed in range(5)}
    assert "equal" in found
    assert all(said == "equal" or said.startswith(ON_CPU) for said in found), found


def assert_taken_and_equal(name: str, seed: int, target: str, folder: Path) -> None:
    rng = np.random.default_rng(seed)
    graph = LAYERS[name](rng)
    places = places_if_equal(graph, rng, target, folder)
    assert CPU not in places, (name, seed, places)


def places_if_equal(
    graph: Graph, rng: np.random.Generator, target: str, folder: Path
) -> Collection[str]:
    """Assert that a layer is TFLite Micro's, and return where its operators run."""
    module = built(graph, folder, target)
    inputs = inputs_of(graph, rng)
    found = module.run(inputs).outputs
    for mine, wanted in zip(found, reference(graph, inputs), strict=True):
        np.testing.assert_array_equal(mine, wanted, err_msg=target)
    return module.compiled.dispatch.placement.values()


@pytest.mark.parametrize("name", WIDE)
def test_layers_of_int16(name: str, tmp_path: Path) -> None:
    taken = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        places = places_if_equal(WIDE[name](rng), rng, CONFIGURATIONS[seed + 3], tmp_path)
        taken += {*places} != {CPU}
    assert taken


@pytest.mark.slow
@pytest.mark.parametrize("target", CONFIGURATIONS)
@pytest.mark.parametrize("name", WIDE)
def test_layers_of_int16_at_length(name: str, target: str, tmp_path: Path) -> None:
    """Others on every commit."""
    first = 10 * (today() % 1000)
    for seed in range(first, first + 10):
        rng = np.random.default_rng(seed)
        places_if_equal(WIDE[name](rng), rng, target, tmp_path)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        assert_taken_and_equal(name, seed, CONFIGURATIONS[seed], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", CONFIGURATIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_at_length(name: str, target: str, tmp_path: Path) -> None:
    """Others on every commit."""
    first = 10 * (today() % 1000)
    for seed in range(first, first + 10):
        assert_taken_and_equal(name, seed, target, tmp_path)


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ((3, 3), "repeated 3 times, not 2, 4 or 8"),
        ((2, 4), "no pattern for nearest"),
    ],
)
def test_sizes_that_stay_on_the_cpu(factors: tuple[int, int], said: str, tmp_path: Path) -> None:
    graph = resized(Sketch(np.random.default_rng(0)), factors, False, 0)
    assert said in reason(built(graph, tmp_path), "nearest_0")


def function_of_int16(kind: str, scale: float, result: float) -> Graph:
    """A function of 65,536 numbers."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 256, 256), scale, 0, code=INT16)
    out = sketch.tensor((1, 256, 256), result, 0, code=INT16)
    sketch.op(kind, [source], [out], None)
    return sketch.graph(out)


@pytest.mark.parametrize(
    ("kind", "scale", "result"),
    [("RELU", 1e-4, 1.9e-4), ("RELU6", 3e-4, 3e-4), ("QUANTIZE", 1e-4, 7e-5)],
)
def test_every_number_of_int16(kind: str, scale: float, result: float, tmp_path: Path) -> None:
    graph = function_of_int16(kind, float(np.float32(scale)), float(np.float32(result)))
    module = built(graph, tmp_path)
    assert {*module.compiled.dispatch.placement.values()} == {"ethos_u55"}
    numbers = [np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 256, 256)]
    np.testing.assert_array_equal(module.run(numbers).outputs[0], reference(graph, numbers)[0])


@pytest.mark.parametrize(("kind", "options"), [("ADD", 11), ("SUB", 28), ("MUL", 21)])
def test_every_pair_of_bytes(kind: str, options: int, tmp_path: Path) -> None:
    """A row and a column, each of which counts for all of the other's elements."""
    sketch = Sketch(np.random.default_rng(0))
    a, b = (
        sketch.input(shape, scale, zero)
        for shape, scale, zero in (((1, 256, 1, 1), 0.05, -7), ((1, 1, 256, 1), 0.034, 100))
    )
    out = sketch.tensor((1, 256, 256, 1), 0.08 if kind != "MUL" else 0.2, 21)
    sketch.op(kind, [a, b], [out], (options, {0: ("b", 3)}))
    graph = sketch.graph(out)
    module = built(graph, tmp_path)
    assert {*module.compiled.dispatch.placement.values()} == {"ethos_u55"}
    every = np.arange(-128, 128).astype(np.int8)
    inputs = [every.reshape(1, 256, 1, 1), every.reshape(1, 1, 256, 1)]
    np.testing.assert_array_equal(module.run(inputs).outputs[0], reference(graph, inputs)[0])


@pytest.mark.parametrize(
    ("name", "operator", "said"),
    [
        ("tanh", "tanh_0", "no public text defines its tanh"),
        ("softmax", "softmax_0", "2 of 512 points of Vela's table"),
        ("leaky_relu", "leaky_relu_0", "a factor below zero to float32"),
        ("prelu", "prelu_0", "the zero point of the slopes off twice"),
    ],
)
def test_functions_of_int16_that_stay_on_the_cpu(
    name: str, operator: str, said: str, tmp_path: Path
) -> None:
    module = built(wide.CASES[name](np.random.default_rng(3)), tmp_path)
    assert said in reason(module, operator)


@pytest.mark.parametrize("value", [0, 700])
def test_a_padding_before_a_convolution_of_int16(value: int, tmp_path: Path) -> None:
    """It becomes the convolution's own only with zeros, as there are no zero points."""
    rng = np.random.default_rng(0)
    sketch = Sketch(rng)
    source = sketch.input((1, 5, 6, 4), 0.001, 0, code=INT16)
    padded = sketch.tensor((1, 7, 8, 4), 0.001, 0, code=INT16)
    widths = sketch.integers([[0, 0], [1, 1], [1, 1], [0, 0]])
    number = sketch.constant(np.array([value], np.int16), 0.001, code=INT16)
    sketch.op("PADV2", [source, widths, number], [padded], None)
    weights = sketch.constant(sketch.bytes(5, 3, 3, 4), 0.01)
    out = sketch.tensor((1, 5, 6, 5), 0.01, 0, code=INT16)
    one = ("i", 1)
    sketch.op("CONV_2D", [padded, weights], [out], (1, {0: ("b", 1), 1: one, 2: one}))
    assert CPU not in places_if_equal(sketch.graph(out), rng, CONFIGURATIONS[2], tmp_path)
