"""Helper: networks of one TFLite operator that compares, interpolates or multiplies tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tests.frontend.flatfile import INT32, Graph, Options
from tests.frontend.sketch import Rng, Sketch


def _reduction(kind: str) -> Callable[[Rng], Graph]:
    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = [1, *(sketch.size(1, 5) for _ in range(sketch.size(1, 3)))]
        rank = len(shape)
        count = sketch.size(1, rank - 1)
        axes = sorted(int(axis) for axis in rng.choice(np.arange(1, rank), count, replace=False))
        keep = sketch.flag()
        source = sketch.drawn_input(shape)
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        dropped = [size for axis, size in enumerate(shape) if axis not in axes]
        out = sketch.like(source, kept if keep else dropped)
        given = sketch.integers([axis - rank if sketch.flag() else axis for axis in axes])
        sketch.op(kind, [source, given], [out], (27, {0: ("B", int(keep))}))
        return sketch.graph(out)

    return draw


def _place(kind: str, options: int) -> Callable[[Rng], Graph]:
    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = [sketch.size(1, 6) for _ in range(sketch.size(2, 4))]
        axis = sketch.size(0, len(shape) - 1)
        source = sketch.drawn_input(shape)
        dropped = [size for at, size in enumerate(shape) if at != axis]
        out = sketch.tensor(dropped, 1, 0, code=INT32, scales=(), zero_points=())
        given = sketch.integers(axis - len(shape) if sketch.flag() else axis)
        sketch.op(kind, [source, given], [out], (options, {0: ("b", 2)}))
        return sketch.graph(out)

    return draw


def _extreme(kind: str) -> Callable[[Rng], Graph]:
    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = [1, *(sketch.size(1, 5) for _ in range(sketch.size(1, 3)))]
        other = [size if sketch.flag() else 1 for size in shape][sketch.size(0, len(shape) - 1) :]
        scale, zero, fixed = sketch.scale(), sketch.zero(), sketch.size(0, 2)
        shapes = [shape, other] if sketch.flag() else [other, shape]
        operands = [
            sketch.constant(sketch.bytes(*own), scale, zero)
            if at == fixed
            else sketch.input(own, scale, zero)
            for at, own in enumerate(shapes)
        ]
        out = sketch.like(operands[0], shape)
        sketch.op(kind, operands, [out], (39, {}))
        return sketch.graph(out)

    return draw


def resize_bilinear(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c = sketch.size(), sketch.size(), sketch.size(1, 4)
    oy, ox = sketch.size(1, 17), sketch.size(1, 17)
    source = sketch.drawn_input((1, y, x, c))
    out = sketch.like(source, (1, oy, ox, c))
    mode = int(rng.integers(3))  # TFLite knows no map that is both aligned and centred
    modes = {2: ("B", int(mode == 1)), 3: ("B", int(mode == 2))}
    sketch.op("RESIZE_BILINEAR", [source, sketch.integers([oy, ox])], [out], (15, modes))
    return sketch.graph(out)


def batch_matmul(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    m, c, k = sketch.size(1, 5), sketch.size(1, 12), sketch.size(1, 5)
    outer = [sketch.size(1, 3) for _ in range(sketch.size(0, 2))]
    turned = [sketch.flag(), sketch.flag()]
    shapes = [[*outer, *((c, m) if turned[0] else (m, c))],
              [*outer, *((k, c) if turned[1] else (c, k))]]  # fmt: skip
    operands = [sketch.drawn_input(shapes[0]), sketch.drawn_input(shapes[1])]
    scales = [sketch.tensors[at].scales[0] for at in operands]
    step = math.prod(scales) * 60 * math.sqrt(c) * float(rng.uniform(0.5, 2))
    out = sketch.tensor([*outer, m, k], float(np.float32(step)), sketch.zero())
    options = {0: ("B", int(turned[0])), 1: ("B", int(turned[1]))}
    sketch.op("BATCH_MATMUL", operands, [out], (101, options))
    return sketch.graph(out)


def squared_difference(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = [1, *(sketch.size(1, 6) for _ in range(sketch.size(1, 3)))]
    other = [size if sketch.flag() else 1 for size in shape]
    operands = [sketch.drawn_input(shape), sketch.drawn_input(other)]
    if sketch.flag():
        operands.reverse()
    largest = max(sketch.tensors[at].scales[0] for at in operands)
    scale = float(np.float32(largest**2 * rng.uniform(20, 200)))
    out = sketch.tensor(shape, scale, sketch.zero())
    sketch.op("SQUARED_DIFFERENCE", operands, [out], None)
    return sketch.graph(out)


def _table(
    kind: str,
    output: Callable[[Sketch, float], tuple[float, int]],
    zero: int | None = None,
    options: Options | None = None,
) -> Callable[[Rng], Graph]:
    """A function of all 256 numbers."""

    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        own = sketch.scale(0.004, 0.1)
        source = sketch.input((1, 256), own, sketch.zero() if zero is None else zero)
        out = sketch.tensor((1, 256), *output(sketch, own))
        sketch.op(kind, [source], [out], options)
        return sketch.graph(out)

    return draw


def _drawn(sketch: Sketch, scale: float) -> tuple[float, int]:
    return float(np.float32(scale * sketch.rng.uniform(0.4, 2.5))), sketch.zero()


def _power(sketch: Sketch, _: float) -> tuple[float, int]:
    return float(np.float32(sketch.rng.uniform(0.01, 1))), -128


def _root(sketch: Sketch, scale: float) -> tuple[float, int]:
    return float(np.float32(scale**-0.5 / sketch.rng.uniform(20, 300))), -128


CASES: Mapping[str, Callable[[Rng], Graph]] = {
    "abs": _table("ABS", _drawn),
    "elu": _table("ELU", _drawn),
    "rsqrt": _table("RSQRT", _root, -128),
    "arg_max": _place("ARG_MAX", 40),
    "arg_min": _place("ARG_MIN", 57),
    "batch_matmul": batch_matmul,
    "maximum": _extreme("MAXIMUM"),
    "minimum": _extreme("MINIMUM"),
    "reduce_max": _reduction("REDUCE_MAX"),
    "reduce_min": _reduction("REDUCE_MIN"),
    "resize_bilinear": resize_bilinear,
    "squared_difference": squared_difference,
}
"""Operator -> function that draws a network of it."""


WITHOUT_MICRO: Mapping[str, Callable[[Rng], Graph]] = {
    "exp": _table(
        "EXP", lambda sketch, scale: (float(np.float32(sketch.rng.uniform(0.01, 1))), -128)
    ),
    "gelu": _table("GELU", _drawn, None, (116, {0: ("B", 0)})),
    "gelu_tanh": _table("GELU", _drawn, None, (116, {0: ("B", 1)})),
}
"""The same of operators that TFLite Micro lacks for int8."""
