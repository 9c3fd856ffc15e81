"""Helper: networks of one TFLite operator that computes the last axis row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.frontend.flatfile import Graph, Options
from tests.frontend.sketch import Rng, Sketch


def _rows(
    kind: str, scales: tuple[float, float], output: tuple[float, int], options: Options
) -> Callable[[Rng], Graph]:
    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = [1, *(sketch.size(1, 5) for _ in range(sketch.size(1, 3)))]
        if sketch.flag():
            # TFLite Micro ends the process when a softmax's sum is 512.
            shape = [1, sketch.size(1, 500)]
        source = sketch.input(shape, sketch.scale(*scales), sketch.zero())
        out = sketch.tensor(shape, *output)
        sketch.op(kind, [source], [out], options)
        return sketch.graph(out)

    return draw


CASES: Mapping[str, Callable[[Rng], Graph]] = {
    "l2_normalization": _rows("L2_NORMALIZATION", (0.004, 0.4), (1 / 128, 0), (12, {0: ("b", 0)})),
    "log_softmax": _rows("LOG_SOFTMAX", (0.0005, 4), (1 / 16, 127), (36, {})),
    "softmax": _rows("SOFTMAX", (0.0005, 4), (1 / 256, -128), (9, {0: ("f", 1.0)})),
}
"""Operator -> function that draws a network of it."""
