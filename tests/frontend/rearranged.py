"""Helper: networks of one TFLite operator that moves elements to other axes, or repeats them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tests.frontend.flatfile import INT32, Graph
from tests.frontend.sketch import Rng, Sketch


def _shape(sketch: Sketch, high: int = 4) -> list[int]:
    return [sketch.size(1, 5) for _ in range(sketch.size(2, high))]


def _of(
    kind: str, shape: Sequence[int], out: Sequence[int], *integers: object
) -> Callable[..., Graph]:
    """An operator with constant integers behind its input."""

    def draw(sketch: Sketch, options: object = None) -> Graph:
        source = sketch.drawn_input(shape)
        result = sketch.like(source, out)
        inputs = [source, *(sketch.integers(each) for each in integers)]
        sketch.op(kind, inputs, [result], options)  # type: ignore[arg-type]
        return sketch.graph(result)

    return draw


def pack(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape, count = _shape(sketch, 3), sketch.size(1, 4)
    axis = sketch.size(0, len(shape))
    parts = [sketch.drawn_input(shape)]
    scale, zero = sketch.tensors[0].scales[0], sketch.tensors[0].zero_points[0]
    parts += [sketch.input(shape, scale, zero) for _ in range(count - 1)]
    out = sketch.like(parts[0], [*shape[:axis], count, *shape[axis:]])
    given = axis - len(shape) - 1 if sketch.flag() else axis
    sketch.op("PACK", parts, [out], (59, {0: ("i", count), 1: ("i", given)}))
    return sketch.graph(out)


def unpack(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    axis = sketch.size(0, len(shape) - 1)
    source = sketch.drawn_input(shape)
    outs = [sketch.like(source, [*shape[:axis], *shape[axis + 1 :]]) for _ in range(shape[axis])]
    given = axis - len(shape) if sketch.flag() else axis
    sketch.op("UNPACK", [source], outs, (64, {0: ("i", shape[axis]), 1: ("i", given)}))
    return sketch.graph(*outs)


def broadcast_to(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    wide = _shape(sketch)
    own = [size if sketch.flag() else 1 for size in wide][sketch.size(0, len(wide) - 1) :]
    return _of("BROADCAST_TO", own, wide, wide)(sketch)


def gather(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch, 3)
    axis = sketch.size(0, len(shape) - 1)
    own = [sketch.size(1, 3) for _ in range(sketch.size(1, 2))]
    places = rng.integers(0, shape[axis], own)
    out = [*shape[:axis], *own, *shape[axis + 1 :]]
    given = axis - len(shape) if sketch.flag() else axis
    return _of("GATHER", shape, out, places)(sketch, (23, {0: ("i", given)}))


def reverse(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    return _of("REVERSE_V2", shape, shape, [sketch.size(0, len(shape) - 1)])(sketch, (87, {}))


def mirror_pad(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape, mode = _shape(sketch), int(rng.integers(2))
    widths = [[int(n) for n in rng.integers(0, size + mode, 2)] for size in shape]
    out = [size + sum(pair) for size, pair in zip(shape, widths, strict=True)]
    return _of("MIRROR_PAD", shape, out, widths)(sketch, (77, {0: ("b", mode)}))


def depth_to_space(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c, block = sketch.size(1, 4), sketch.size(1, 4), sketch.size(1, 5), sketch.size(1, 4)
    source, out = (1, y, x, c * block * block), (1, y * block, x * block, c)
    return _of("DEPTH_TO_SPACE", source, out)(sketch, (94, {0: ("i", block)}))


def _blocks(sketch: Sketch, most: int) -> tuple[list[int], list[list[int]]]:
    spatial = sketch.size(1, 2)
    blocks = [sketch.size(1, 3) for _ in range(spatial)]
    return blocks, [[int(n) for n in sketch.rng.integers(0, most, 2)] for _ in blocks]


def space_to_batch(rng: Rng, *, pads_below: int = 1) -> Graph:
    """Without padding: what TFLite Micro pads with is not defined."""
    sketch = Sketch(rng)
    blocks, pads = _blocks(sketch, pads_below)
    parts, channels = [sketch.size(2, 4) for _ in blocks], sketch.size(1, 4)
    whole = [part * block + 4 * block for part, block in zip(parts, blocks, strict=True)]
    shape = [size - sum(pair) for size, pair in zip(whole, pads, strict=True)]
    out = [size // block for size, block in zip(whole, blocks, strict=True)]
    batch = math.prod(blocks)
    return _of("SPACE_TO_BATCH_ND", [1, *shape, channels], [batch, *out, channels], blocks, pads)(
        sketch
    )


def batch_to_space(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    blocks, crops = _blocks(sketch, 3)
    parts, channels = [sketch.size(5, 7) for _ in blocks], sketch.size(1, 4)
    out = [part * block - sum(pair) for part, block, pair in zip(parts, blocks, crops, strict=True)]
    shape = [math.prod(blocks), *parts, channels]
    return _of("BATCH_TO_SPACE_ND", shape, [1, *out, channels], blocks, crops)(sketch)


def tile(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    multiples = [sketch.size(1, 3) for _ in shape]
    out = [size * multiple for size, multiple in zip(shape, multiples, strict=True)]
    return _of("TILE", shape, out, multiples)(sketch)


# ------------------------------------------------------------------------------ dilation

Kind = Literal["CONV_2D", "DEPTHWISE_CONV_2D"]


def dilated(rng: Rng, kind: Kind, *, pads_below: int = 2) -> tuple[Graph, Graph]:
    """A convolution between blocks, and the same as a dilated one of a padded map."""
    plan = Sketch(rng)
    blocks, kernel = ([plan.size(1, 3) for _ in "yx"] for _ in range(2))
    parts = [plan.size(3, 5) for _ in blocks]
    pads = [[int(n) for n in rng.integers(0, pads_below, 2)] for _ in blocks]
    crops = [[0, int(rng.integers(0, pair[1] + 1))] for pair in pads]
    c, k, step = plan.size(1, 4), plan.size(1, 4), plan.scale()
    k = c if kind == "DEPTHWISE_CONV_2D" else k
    own = (1, *kernel, k) if kind == "DEPTHWISE_CONV_2D" else (k, *kernel, c)
    weights, fused, zeros = plan.bytes(*own), plan.fused(), [plan.zero(), plan.zero()]
    small = [part - size + 1 for part, size in zip(parts, kernel, strict=True)]
    padded = [part * block for part, block in zip(parts, blocks, strict=True)]
    whole = [part * block for part, block in zip(small, blocks, strict=True)]

    def start() -> tuple[Sketch, int]:
        sketch = Sketch(rng)
        shape = [size - sum(pair) for size, pair in zip(padded, pads, strict=True)]
        return sketch, sketch.input([1, *shape, c], step, zeros[0])

    def convolution(sketch: Sketch, source: int, shape: Sequence[int], steps: list[int]) -> int:
        bias = np.arange(k, dtype=np.int32) * 50
        inputs = [source, sketch.constant(weights, 0.01)]
        inputs.append(sketch.constant(bias, step * 0.01, code=INT32))
        made = sketch.tensor(shape, step * 3, zeros[1])
        options = {0: ("b", 1), 1: ("i", 1), 2: ("i", 1)}
        y, x = ("i", steps[0]), ("i", steps[1])
        if kind == "CONV_2D":
            sketch.op(kind, inputs, [made], (1, {**options, 3: fused, 4: x, 5: y}))
        else:
            more = {3: ("i", 1), 4: fused, 5: x, 6: y}
            sketch.op(kind, inputs, [made], (2, {**options, **more}))
        return made

    sketch, source = start()
    numbers = [sketch.integers(each) for each in (blocks, pads, crops)]
    dealt = sketch.like(source, [math.prod(blocks), *parts, c])
    sketch.op("SPACE_TO_BATCH_ND", [source, *numbers[:2]], [dealt], None)
    made = convolution(sketch, dealt, [math.prod(blocks), *small, k], [1, 1])
    left = [size - sum(pair) for size, pair in zip(whole, crops, strict=True)]
    out = sketch.like(made, [1, *left, k])
    sketch.op("BATCH_TO_SPACE_ND", [made, numbers[0], numbers[2]], [out], None)

    other, source = start()
    wide = other.like(source, [1, *padded, c])
    other.op("PAD", [source, other.integers([[0, 0], *pads, [0, 0]])], [wide], None)
    made = convolution(other, wide, [1, *whole, k], blocks)
    cut = other.like(made, [1, *left, k])
    bounds = [other.integers(each) for each in ([0] * 4, [1, *left, k])]
    other.op("SLICE", [made, *bounds], [cut], None)
    return sketch.graph(out), other.graph(cut)


CASES: Mapping[str, Callable[[Rng], Graph]] = {
    "batch_to_space": batch_to_space,
    "broadcast_to": broadcast_to,
    "depth_to_space": depth_to_space,
    "gather": gather,
    "mirror_pad": mirror_pad,
    "pack": pack,
    "reverse": reverse,
    "space_to_batch": space_to_batch,
    "unpack": unpack,
}
"""Operator -> function that draws a network of it."""
