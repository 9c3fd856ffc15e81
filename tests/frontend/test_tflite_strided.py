"""STRIDED_SLICE with masks and relative ends: TFLite Micro decides what masks mean.

It does not know relative ends; these are as LiteRT's reference kernel takes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.errors import ModelError, UnsupportedError
from htvm.frontend.tflite.fold import strided
from tests.frontend.flatfile import INT32, Graph
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import interpret

SIZES = (5, 6, 4)
# begin, end, strides, masks (begin, end, shrink), whether the end is relative, and what is taken
CASES: dict[str, tuple[Any, Any, Any, tuple[int, int, int], bool, tuple[Any, ...]]] = {
    "a masked begin of a shrunk axis is its first element": (
        (0, 4, 1), (5, 5, 3), (1, 1, 1), (0b010, 0, 0b010), False, (range(5), 0, range(1, 3))
    ),
    "an end relative to a begin that counts from the end": (
        (1, -3, 0), (2, 2, 4), (1, 1, 1), (0, 0, 0), True, (range(1, 3), range(3, 5), range(4))
    ),
    "an end relative to a masked begin": (
        (2, 3, 1), (2, 3, 2), (1, 2, 1), (0b011, 0, 0), True,
        (range(2), range(0, 3, 2), range(1, 3)),
    ),
    "backwards from a masked begin": (
        (0, 1, 0), (5, 2, 4), (1, -2, 1), (0b010, 0, 0), False,
        (range(5), range(5, 2, -2), range(4)),
    ),
}  # fmt: skip


def graph_of(case: str, rng: np.random.Generator) -> Graph:
    begin, end, strides, masks, relative, places = CASES[case]
    sketch = Sketch(rng)
    source = sketch.drawn_input(list(SIZES))
    out = sketch.like(source, [len(item) for item in places if not isinstance(item, int)])
    inputs = [source, *(sketch.integers(list(numbers)) for numbers in (begin, end, strides))]
    options = {0: ("i", masks[0]), 1: ("i", masks[1]), 4: ("i", masks[2]), 5: ("?", relative)}
    sketch.op("STRIDED_SLICE", inputs, [out], (32, options))
    return sketch.graph(out)


@pytest.mark.parametrize("case", CASES)
def test_which_elements_are_taken(case: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    graph, places = graph_of(case, rng), CASES[case][-1]
    path = tmp_path / "network.tflite"
    path.write_bytes(graph.file())
    x = rng.integers(-128, 128, SIZES).astype(np.int8)
    (found,) = interpret(htvm.load(path).module, [x]).outputs
    wanted = x[np.ix_(*([item] if isinstance(item, int) else item for item in places))]
    np.testing.assert_array_equal(found, wanted.reshape(found.shape))
    if not CASES[case][4]:
        np.testing.assert_array_equal(found, reference(graph, [x])[0])


def test_the_element_of_a_shrunk_axis_lies_inside() -> None:
    assert strided(0, 5, (-5, 9, 1), (0, 0, 0, 0, 1)) == range(1)
    for begin in (5, -6):
        with pytest.raises(IndexError, match=f"element {begin} of 5"):
            strided(0, 5, (begin, 9, 1), (0, 0, 0, 0, 1))


def test_the_element_of_a_shrunk_axis_is_not_taken_backwards() -> None:
    """The reference kernel writes nothing then, whatever is in its arena remains."""
    assert strided(0, 5, (3, 9, 2), (0, 0, 0, 0, 1)) == range(3, 4)
    with pytest.raises(IndexError, match="steps of -2"):
        strided(0, 5, (3, 9, -2), (0, 0, 0, 0, 1))


def test_names_that_are_not_text_and_shapes_that_lie(tmp_path: Path) -> None:
    """Runtimes never decode names; a SHAPE with too many results is no constant."""
    rng = np.random.default_rng(1)
    graph = graph_of("backwards from a masked begin", rng)
    data = graph.with_tensor(0, name="RENAMED").file()
    path = tmp_path / "network.tflite"
    path.write_bytes(data.replace(b"RENAMED", b"\xff\xfeNAME!"))
    assert htvm.load(path).inputs[0].shape == SIZES
    sketch = Sketch(rng)
    source = sketch.drawn_input([1, 4])
    shape = sketch.tensor((1 << 20,), 1, 0, code=INT32, scales=(), zero_points=())
    out = sketch.like(source, [4, 1])
    sketch.op("SHAPE", [source], [shape], None)
    sketch.op("RESHAPE", [source, shape], [out], None)
    path.write_bytes(sketch.graph(out).file())
    with pytest.raises((ModelError, UnsupportedError), match="SHAPE"):
        htvm.load(path)
