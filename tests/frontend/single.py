"""Helper: networks of one TFLite operator, drawn at random: shapes, options, scales, data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

import htvm
from tests.frontend import computed, rearranged, rowwise
from tests.frontend.flatfile import FLOAT32, INT8, INT16, INT32, UINT8, Graph, Options, Tensor
from tests.frontend.sketch import Rng, Sketch
from tests.reference.interpreter import Array

Loader: TypeAlias = Callable[[Graph], htvm.Model]
"""The fixture ``load``: writes a file, and reads it."""


def _weights(
    sketch: Sketch, shape: Sequence[int], axis: int, source: int
) -> tuple[int, int, float]:
    """Weights and biases, per tensor or per channel; a scale for the output."""
    channels = shape[axis]
    count = channels if sketch.flag() else 1
    scales = [sketch.scale(0.002, 0.02) for _ in range(count)]
    zeros = [0] * count
    weights = sketch.tensor(
        shape, 1, 0, data=sketch.bytes(*shape), scales=scales, zero_points=zeros,
        axis=axis if count > 1 else 0,
    )  # fmt: skip
    first = sketch.tensors[source].scales[0]
    products = [first * scale for scale in scales]
    data = sketch.rng.integers(-3000, 3000, channels).astype(np.int32)
    bias = sketch.tensor(
        (channels,), 1, 0, code=INT32, data=data, scales=products, zero_points=zeros
    )
    taps = math.prod(shape) / channels
    return weights, bias, float(max(products) * 30 * math.sqrt(taps))


def _windowed(size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    reach = dilation * (kernel - 1) + 1
    return math.ceil((size if padding == 0 else size - reach + 1) / stride)


def conv(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    padding, (fy, fx) = int(rng.integers(2)), (sketch.size(1, 4), sketch.size(1, 4))
    dy, dx = (sketch.size(1, 2), sketch.size(1, 3)) if sketch.flag() else (1, 1)
    sy, sx = (sketch.size(1, 3), sketch.size(1, 3)) if dy == dx == 1 else (1, 1)
    y, x = dy * (fy - 1) + sketch.size(1, 6), dx * (fx - 1) + sketch.size(1, 6)
    groups = int(rng.choice([1, 1, 2]))
    c, k = groups * sketch.size(1, 4), groups * sketch.size(1, 4)
    source = sketch.drawn_input((1, y, x, c))
    weights, bias, scale = _weights(sketch, (k, fy, fx, c // groups), 0, source)
    shape = (1, _windowed(y, fy, sy, dy, padding), _windowed(x, fx, sx, dx, padding), k)
    out = sketch.tensor(shape, scale, sketch.zero())
    options = {0: ("b", padding), 1: ("i", sx), 2: ("i", sy), 3: sketch.fused(), 4: ("i", dx),
               5: ("i", dy)}  # fmt: skip
    sketch.op("CONV_2D", [source, weights, bias], [out], (1, options))
    return sketch.graph(out)


def depthwise(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    padding, (fy, fx) = int(rng.integers(2)), (sketch.size(1, 4), sketch.size(1, 4))
    dy, dx = (sketch.size(1, 2), sketch.size(1, 3)) if sketch.flag() else (1, 1)
    sy, sx = (sketch.size(1, 3), sketch.size(1, 3)) if dy == dx == 1 else (1, 1)
    y, x = dy * (fy - 1) + sketch.size(1, 6), dx * (fx - 1) + sketch.size(1, 6)
    c, multiplier = sketch.size(1, 5), sketch.size(1, 3)
    source = sketch.drawn_input((1, y, x, c))
    weights, bias, scale = _weights(sketch, (1, fy, fx, c * multiplier), 3, source)
    shape = (
        1,
        _windowed(y, fy, sy, dy, padding),
        _windowed(x, fx, sx, dx, padding),
        c * multiplier,
    )
    out = sketch.tensor(shape, scale, sketch.zero())
    options = {0: ("b", padding), 1: ("i", sx), 2: ("i", sy), 3: ("i", multiplier),
               4: sketch.fused(), 5: ("i", dx), 6: ("i", dy)}  # fmt: skip
    sketch.op("DEPTHWISE_CONV_2D", [source, weights, bias], [out], (2, options))
    return sketch.graph(out)


def transpose_conv(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    padding, (fy, fx) = int(rng.integers(2)), (sketch.size(1, 4), sketch.size(1, 4))
    sy, sx = sketch.size(1, 3), sketch.size(1, 3)
    y, x, c, k = sketch.size(1, 5), sketch.size(1, 5), sketch.size(1, 4), sketch.size(1, 4)
    source = sketch.drawn_input((1, y, x, c))
    weights, bias, scale = _weights(sketch, (k, fy, fx, c), 0, source)

    def size(count: int, taps: int, stride: int) -> int:
        # Any output that a convolution of this stride would bring down to ``count``.
        base = (count - 1) * stride + (1 if padding == 0 else taps)
        return base + int(rng.integers(stride))

    shape = (1, size(y, fy, sy), size(x, fx, sx), k)
    sizes = sketch.integers(shape)
    out = sketch.tensor(shape, scale, sketch.zero())
    inputs = [sizes, weights, source] + ([bias] if sketch.flag() else [])
    options = {0: ("b", padding), 1: ("i", sx), 2: ("i", sy)}
    sketch.op("TRANSPOSE_CONV", inputs, [out], (49, options))
    return sketch.graph(out)


def fully_connected(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    c, k, rows = sketch.size(1, 20), sketch.size(1, 6), sketch.size(1, 3)
    keeps = sketch.flag()
    source = sketch.drawn_input((1, rows, c) if keeps else (rows, c))
    weights, bias, scale = _weights(sketch, (k, c), 0, source)
    out = sketch.tensor((1, rows, k) if keeps else (rows, k), scale, sketch.zero())
    inputs = [source, weights] + ([bias] if sketch.flag() else [])
    sketch.op("FULLY_CONNECTED", inputs, [out], (8, {0: sketch.fused(), 2: ("B", int(keeps))}))
    return sketch.graph(out)


def _pool(kind: str) -> Callable[[Rng], Graph]:
    def pool(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        padding = int(rng.integers(2))
        fy, fx, sy, sx = (sketch.size(1, 4) for _ in range(4))
        y, x, c = fy + sketch.size(0, 6), fx + sketch.size(0, 6), sketch.size(1, 5)
        source = sketch.drawn_input((1, y, x, c))
        shape = (1, _windowed(y, fy, sy, 1, padding), _windowed(x, fx, sx, 1, padding), c)
        out = sketch.like(source, shape)
        options = {0: ("b", padding), 1: ("i", sx), 2: ("i", sy), 3: ("i", fx), 4: ("i", fy),
                   5: sketch.fused()}  # fmt: skip
        sketch.op(kind, [source], [out], (5, options))
        return sketch.graph(out)

    return pool


def _summed(kind: str) -> Callable[[Rng], Graph]:
    def summed(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = [1, *(sketch.size(1, 6) for _ in range(sketch.size(1, 3)))]
        rank = len(shape)
        count = sketch.size(1, rank - 1)
        axes = sorted(int(axis) for axis in rng.choice(np.arange(1, rank), count, replace=False))
        if rank == 4 and sketch.flag():
            axes = [1, 2]
        keep = sketch.flag()
        source = sketch.drawn_input(shape)
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        dropped = [size for axis, size in enumerate(shape) if axis not in axes]
        out = sketch.tensor(kept if keep else dropped, sketch.scale(), sketch.zero())
        if sketch.flag():
            out = sketch.like(source, kept if keep else dropped)
        given = sketch.integers([axis - rank if sketch.flag() else axis for axis in axes])
        sketch.op(kind, [source, given], [out], (27, {0: ("B", int(keep))}))
        return sketch.graph(out)

    return summed


def resize(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c = sketch.size(), sketch.size(), sketch.size(1, 4)
    oy, ox = sketch.size(1, 17), sketch.size(1, 17)
    source = sketch.drawn_input((1, y, x, c))
    out = sketch.like(source, (1, oy, ox, c))
    modes = {0: ("B", int(sketch.flag())), 1: ("B", int(sketch.flag()))}
    sketch.op("RESIZE_NEAREST_NEIGHBOR", [source, sketch.integers([oy, ox])], [out], (74, modes))
    return sketch.graph(out)


def space_to_depth(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c, block = sketch.size(1, 4), sketch.size(1, 4), sketch.size(1, 5), sketch.size(1, 4)
    source = sketch.drawn_input((1, y * block, x * block, c))
    out = sketch.like(source, (1, y, x, c * block * block))
    sketch.op("SPACE_TO_DEPTH", [source], [out], (19, {0: ("i", block)}))
    return sketch.graph(out)


def concat(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    rank = sketch.size(1, 4)
    shape = [1, *(sketch.size(1, 4) for _ in range(rank))]
    axis = sketch.size(1, rank)
    scale, zero = sketch.scale(), sketch.zero()
    parts, total, count = [], 0, sketch.size(1, 4)
    computed, constants = sketch.size(0, count - 1), sketch.flag()
    for at in range(count):
        own = [*shape[:axis], sketch.size(1, 4), *shape[axis + 1 :]]
        total += own[axis]
        if constants and at != computed and sketch.flag():
            parts.append(sketch.constant(sketch.bytes(*own), scale, zero))
        else:
            parts.append(sketch.input(own, scale, zero))
    out = sketch.tensor([*shape[:axis], total, *shape[axis + 1 :]], scale, zero)
    given = axis - rank - 1 if sketch.flag() else axis
    sketch.op("CONCATENATION", parts, [out], (10, {0: ("i", given)}))
    return sketch.graph(out)


def _shape(sketch: Sketch, high: int = 4) -> list[int]:
    return [1, *(sketch.size(1, 5) for _ in range(sketch.size(1, high - 1)))]


def pad(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    widths = [[0, 0], *(rng.integers(0, 3, 2).tolist() for _ in shape[1:])]
    if len(shape) == 4 and sketch.flag():
        widths[3] = [0, 0]
    source = sketch.drawn_input(shape)
    out_shape = [size + sum(pair) for size, pair in zip(shape, widths, strict=True)]
    out = sketch.like(source, out_shape)
    inputs = [source, sketch.integers(widths)]
    if sketch.flag():
        sketch.op("PAD", inputs, [out], None)
    else:
        given = sketch.tensors[source]
        value = sketch.constant(sketch.bytes(1), given.scales[0], given.zero_points[0])
        sketch.op("PADV2", [*inputs, value], [out], None)
    return sketch.graph(out)


def reshapes(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = [1, sketch.size(1, 3), 1, sketch.size(2, 5)]
    source = sketch.drawn_input(shape)
    squeezed = [1, shape[1], shape[3]]
    first = sketch.like(source, squeezed)
    sketch.op("SQUEEZE", [source], [first], (30, {0: np.asarray([2], np.int32)}))
    wider = sketch.like(source, [*squeezed, 1])
    sketch.op("EXPAND_DIMS", [first, sketch.integers(len(squeezed))], [wider], None)
    flat = sketch.like(source, [1, math.prod(shape)])
    sketch.op("RESHAPE", [wider, sketch.integers([1, -1])], [flat], None)
    return sketch.graph(flat)


def transpose(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    axes = [int(axis) for axis in rng.permutation(len(shape))]
    source = sketch.drawn_input(shape)
    out = sketch.like(source, [shape[axis] for axis in axes])
    sketch.op("TRANSPOSE", [source, sketch.integers(axes)], [out], None)
    return sketch.graph(out)


def split(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    axis, parts, uneven = sketch.size(1, len(shape) - 1), sketch.size(2, 4), sketch.flag()
    sizes = [sketch.size(1, 3) for _ in range(parts)] if uneven else [sketch.size(1, 3)] * parts
    shape[axis] = sum(sizes)
    source = sketch.drawn_input(shape)
    number = sketch.integers(axis - len(shape) if sketch.flag() else axis)
    given = sketch.integers(sizes)
    outs = [sketch.like(source, [*shape[:axis], size, *shape[axis + 1 :]]) for size in sizes]
    if uneven:
        sketch.op("SPLIT_V", [source, given, number], outs, (79, {0: ("i", parts)}))
    else:
        sketch.op("SPLIT", [number, source], outs, (35, {0: ("i", parts)}))
    return sketch.graph(*outs)


def strided_slice(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    rank, begin, end, strides, out_shape = len(shape), [], [], [], []
    masks = [int(rng.integers(1 << rank)) & ~1 for _ in range(2)]
    shrink = 0
    for axis, size in enumerate(shape):
        stride = int(rng.choice([1, 1, 2, 3, -1, -2])) if axis else 1
        low, high = sorted(int(n) for n in rng.choice(size + 1, 2, replace=False))
        low, high = (low, high) if stride > 0 else (high - 1, low - 1)
        if axis and shrink == 0 and sketch.size(0, 3) == 0 and rank > 2:
            shrink, stride = 1 << axis, 1
            low = min(low, size - 1)
            high = low + 1
        # A negative end counts from the end; "before the first" needs the mask.
        if high < 0:
            masks[1] |= 1 << axis
        begin.append(low - size if sketch.flag() and not shrink >> axis & 1 else low)
        end.append(high)
        strides.append(stride)
        if not shrink >> axis & 1:
            first = None if masks[0] >> axis & 1 else low
            last = None if masks[1] >> axis & 1 else high
            out_shape.append(len(range(*slice(first, last, stride).indices(size))))
    masks = [mask & ~shrink for mask in masks]
    source = sketch.drawn_input(shape)
    out = sketch.like(source, out_shape)
    inputs = [source, *(sketch.integers(numbers) for numbers in (begin, end, strides))]
    options = {0: ("i", masks[0]), 1: ("i", masks[1]), 4: ("i", shrink)}
    sketch.op("STRIDED_SLICE", inputs, [out], (32, options))
    return sketch.graph(out)


def slices(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    shape = _shape(sketch)
    begin = [int(rng.integers(size)) for size in shape]
    sizes = [int(rng.integers(1, size - low + 1)) for size, low in zip(shape, begin, strict=True)]
    source = sketch.drawn_input(shape)
    out = sketch.like(source, sizes)
    inputs = [source, sketch.integers(begin), sketch.integers(sizes)]
    sketch.op("SLICE", inputs, [out], None)
    return sketch.graph(out)


def _binary(kind: str, options: int) -> Callable[[Rng], Graph]:
    def binary(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = _shape(sketch)
        other = [size if sketch.flag() else 1 for size in shape][sketch.size(0, len(shape) - 1) :]
        shapes = [shape, shape if sketch.size(0, 2) == 0 else other]
        if sketch.flag():
            shapes.reverse()
        fixed = sketch.size(0, 2)
        operands = []
        for at, own in enumerate(shapes):
            if at == fixed:
                operands.append(sketch.constant(sketch.bytes(*own), sketch.scale(), sketch.zero()))
            else:
                operands.append(sketch.drawn_input(own))
        first, second = (sketch.tensors[at].scales[0] for at in operands)
        scale = first * second * 128 if kind == "MUL" else max(first, second) * 1.5
        out = sketch.tensor(shape, float(np.float32(scale * rng.uniform(0.2, 2))), sketch.zero())
        sketch.op(kind, operands, [out], (options, {0: sketch.fused()}))
        return sketch.graph(out)

    return binary


def _unary(
    kind: str, output: tuple[float, int] | None = None, options: Options | None = None
) -> Callable[[Rng], Graph]:
    def unary(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        # All 256 arguments.
        source = sketch.input((1, 256), sketch.scale(0.001, 0.5), sketch.zero())
        scale, zero = output or (sketch.tensors[source].scales[0] * rng.uniform(0.4, 2.5), None)
        out = sketch.tensor((1, 256), scale, sketch.zero() if zero is None else zero)
        if kind == "RELU6":
            step = float(rng.uniform(0.03, 0.2))
            sketch.tensors[source] = Tensor("in", (1, 256), scales=[step], zero_points=[-100])
            out = sketch.like(source, (1, 256))
        sketch.op(kind, [source], [out], options)
        return sketch.graph(out)

    return unary


def leaky_relu(rng: Rng) -> Graph:
    slope = float(rng.uniform(-0.3, 1.2))
    return _unary("LEAKY_RELU", None, (75, {0: ("f", slope)}))(rng)


def prelu(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c = sketch.size(), sketch.size(), sketch.size(1, 5)
    source = sketch.drawn_input((1, y, x, c))
    slopes = sketch.constant(sketch.bytes(1, 1, c), sketch.scale(0.001, 0.02), sketch.zero())
    out = sketch.tensor((1, y, x, c), sketch.scale(), sketch.zero())
    sketch.op("PRELU", [source, slopes], [out], None)
    return sketch.graph(out)


def from_real(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 64), code=FLOAT32, scales=(), zero_points=())
    out = sketch.tensor((1, 64), sketch.scale(), sketch.zero())
    sketch.op("QUANTIZE", [source], [out], None)
    return sketch.graph(out)


def to_real(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 256), sketch.scale(), sketch.zero())
    out = sketch.tensor((1, 256), 1, 0, code=FLOAT32, scales=(), zero_points=())
    sketch.op("DEQUANTIZE", [source], [out], None)
    return sketch.graph(out)


def negated(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source, real = sketch.input((1, 256), sketch.scale(), sketch.zero()), FLOAT32
    parts = [sketch.tensor((1, 256), 1, 0, code=real, scales=(), zero_points=()) for _ in range(2)]
    out = sketch.tensor((1, 256), sketch.scale(), sketch.zero())
    sketch.op("DEQUANTIZE", [source], [parts[0]], None)
    sketch.op("NEG", [parts[0]], [parts[1]], None)
    sketch.op("QUANTIZE", [parts[1]], [out], None)
    return sketch.graph(out)


def unsigned(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 256), sketch.scale(), int(rng.integers(256)), code=UINT8)
    inner = sketch.tensor((1, 256), sketch.scale(), sketch.zero(), code=INT8)
    out = sketch.tensor((1, 256), sketch.scale(), int(rng.integers(256)), code=UINT8)
    sketch.op("QUANTIZE", [source], [inner], None)
    sketch.op("QUANTIZE", [inner], [out], None)
    return sketch.graph(out)


CASES: Mapping[str, Callable[[Rng], Graph]] = {
    **computed.CASES,
    **rearranged.CASES,
    **rowwise.CASES,
    "add": _binary("ADD", 11),
    "average_pool": _pool("AVERAGE_POOL_2D"),
    "concat": concat,
    "conv": conv,
    "depthwise": depthwise,
    "from_real": from_real,
    "fully_connected": fully_connected,
    "hard_swish": _unary("HARD_SWISH"),
    "leaky_relu": leaky_relu,
    "logistic": _unary("LOGISTIC", (1 / 256, -128)),
    "max_pool": _pool("MAX_POOL_2D"),
    "mean": _summed("MEAN"),
    "multiply": _binary("MUL", 21),
    "negated": negated,
    "pad": pad,
    "prelu": prelu,
    "relu": _unary("RELU"),
    "relu_6": _unary("RELU6"),
    "rescale": _unary("QUANTIZE"),
    "reshapes": reshapes,
    "resize": resize,
    "slices": slices,
    "space_to_depth": space_to_depth,
    "split": split,
    "strided_slice": strided_slice,
    "subtract": _binary("SUB", 28),
    "sum": _summed("SUM"),
    "tanh": _unary("TANH", (1 / 128, 0)),
    "to_real": to_real,
    "transpose": transpose,
    "transpose_conv": transpose_conv,
    "unsigned": unsigned,
}
"""Operator -> function that draws a network of it."""


def inputs_of(graph: Graph, rng: Rng) -> list[Array]:
    """Inputs of any type: every integer where there is room for all, else drawn."""
    found: list[Array] = []
    for at in graph.inputs:
        tensor = graph.tensors[at]
        if tensor.code == FLOAT32:
            reals = rng.normal(0, 3, tensor.shape).astype(np.float32)
            halves = np.float32(0.5) * rng.integers(-9, 9, tensor.shape).astype(np.float32)
            ties = halves * np.float32(graph.tensors[graph.outputs[0]].scales[0])
            found.append(np.where(rng.integers(0, 2, tensor.shape) == 0, reals, ties))
            continue
        dtype = {UINT8: np.uint8, INT16: np.int16}.get(tensor.code, np.int8)
        limits = np.iinfo(dtype)
        drawn = rng.integers(limits.min, limits.max, tensor.shape, endpoint=True)
        if math.prod(tensor.shape) == 256 and tensor.code != INT16:
            drawn = np.arange(limits.min, limits.max + 1).reshape(tensor.shape)
        found.append(drawn.astype(dtype))
    return found
