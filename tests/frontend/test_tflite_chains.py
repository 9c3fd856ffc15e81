"""Operators on elements, one after the other in one kernel, against TFLite Micro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from tests.frontend.flatfile import Graph, Options
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference

SHAPE = (1, 8, 8, 4)
EVERY_BYTE = np.arange(-128, 128, dtype=np.int8).reshape(SHAPE)
_FUSED = {0: ("b", 0)}
PAIRS: dict[str, Options | None] = {
    "ADD": (11, _FUSED),
    "MAXIMUM": (39, {}),
    "MINIMUM": (39, {}),
    "MUL": (21, _FUSED),
    "SQUARED_DIFFERENCE": None,
    "SUB": (28, _FUSED),
}
ALONE: dict[str, Options | None] = {
    "ABS": None,
    "HARD_SWISH": None,
    "LEAKY_RELU": (75, {0: ("f", 0.2)}),
    "RELU": None,
}


def chain(seed: int) -> Graph:
    """Two to six operators whose tensors have one scale, so that they compute with equal numbers.

    Operands are results of any operator before, or constants of any shape.
    """
    sketch = Sketch(np.random.default_rng(seed))
    step, zero = sketch.scale(0.03, 0.1), sketch.size(-20, 20)
    values = [sketch.input(SHAPE, step, zero)]
    for _ in range(sketch.size(2, 6)):
        kind = str(sketch.rng.choice([*PAIRS, *ALONE]))
        operands = [values[-1]]
        if kind in PAIRS:
            shape = [(), (1,), (4,), SHAPE][sketch.size(0, 3)]
            other = sketch.constant(sketch.bytes(*shape).reshape(shape), step, zero)
            operands.append(int(sketch.rng.choice(values)) if sketch.flag() else other)
        if sketch.flag():
            operands.reverse()
        values.append(sketch.tensor(SHAPE, step, zero))
        sketch.op(kind, operands, [values[-1]], {**PAIRS, **ALONE}[kind])
    return sketch.graph(values[-1])


def check(seed: int, target: str, folder: Path) -> None:
    graph, path = chain(seed), folder / "network.tflite"
    path.write_bytes(graph.file())
    (made,) = htvm.build(path, target, "host").run(EVERY_BYTE).outputs
    np.testing.assert_array_equal(made, reference(graph, [EVERY_BYTE])[0], err_msg=f"seed {seed}")


@pytest.mark.parametrize("target", ["generic.cpu", "cortex_m4"])
def test_generated_code_equals_tflite_micro(target: str, tmp_path: Path) -> None:
    for seed in range(6, 10):  # the C of 8 once compared a sum that was out of date
        check(seed, target, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["generic.cpu", "cortex_m4", "cortex_m55", "siracusa.cpu"])
def test_generated_code_equals_tflite_micro_at_length(target: str, tmp_path: Path) -> None:
    for seed in range(60):
        check(seed, target, tmp_path)
