"""Random layers built for the Ethos-U, executed on its model: on the NPU, and TFLite Micro's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.verdict import CPU
from tests.e2e.test_ethos_u import CONFIGURATIONS, built, reason
from tests.frontend import single
from tests.frontend.flatfile import Graph
from tests.frontend.single import inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
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


LAYERS: Mapping[str, Callable[[np.random.Generator], Graph]] = {
    "bilinear": bilinear,
    "mean": single.CASES["mean"],
    "nearest": nearest,
    "transpose_conv": single.CASES["transpose_conv"],
}


def assert_taken_and_equal(name: str, seed: int, target: str, folder: Path) -> None:
    rng = np.random.default_rng(seed)
    graph = LAYERS[name](rng)
    module = built(graph, folder, target)
    places = module.compiled.dispatch.placement
    assert CPU not in places.values(), (name, seed, places)
    inputs = inputs_of(graph, rng)
    found = module.run(inputs).outputs
    for mine, wanted in zip(found, reference(graph, inputs), strict=True):
        np.testing.assert_array_equal(mine, wanted, err_msg=f"{name} {seed} {target}")


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
