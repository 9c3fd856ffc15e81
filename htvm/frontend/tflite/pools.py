"""Pools, means, maxima over axes, and maps at another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Pads, Pair
from htvm.frontend.scales import mean_of
from htvm.frontend.tflite.activations import clipped
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.products import window
from htvm.frontend.tflite.reader import OperatorReader
from patterns.ops.integer.reduction import ArgExtreme, ReduceExtreme, Which
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Nearest
from patterns.ops.tflite.averages import AveragePool, TfliteBilinear

_LARGEST = 1 << 12  # of rows and columns


def pool_window(op: OperatorReader, source: TfliteTensor) -> tuple[Pair, Pair, Pads]:
    """Return kernel, strides and padding of a pool over ``source``; check the output's shape."""
    op.batch(source, 4)
    options = op.options(5)
    kernel = (op.positive(options, 4, "kernel"), op.positive(options, 3, "kernel"))
    strides, padding, _ = window(op, options, kernel, None, source.shape[3])
    return kernel, strides, padding


def pool(op: OperatorReader, *, maximum: bool) -> Sequence[Applied]:
    """AVERAGE_POOL_2D and MAX_POOL_2D: padding is not counted, and never wins."""
    op.count((1,))
    source = op.same_step()
    geometry, clip = pool_window(op, source), op.clip(op.options(5), 5)
    if not maximum:
        return [op.apply(AveragePool(*geometry, clip), op.value(source))]
    pool = op.apply(MaxPool(*geometry), op.value(source))
    return [pool] if clip == op.limits else [clipped(op, Activation.of(pool), clip, sub=1)]


def summed(op: OperatorReader, stem: Literal["mean", "sum"]) -> Sequence[Applied]:
    """MEAN and SUM over constant axes."""
    source, result = op.source(), op.result()
    axes, keep = _reduced(op, source)
    count = math.prod(source.shape[axis] for axis in axes)
    made = mean_of(stem, axes, keep, count, (op.step(source), op.step(result)))
    return [op.apply(made, op.value(source), stem=stem)]


def extreme(op: OperatorReader, which: Which) -> Sequence[Applied]:
    """REDUCE_MAX and REDUCE_MIN over constant axes."""
    source = op.same_step()
    axes, keep = _reduced(op, source)
    made = ReduceExtreme(which, tuple(axes), keep)
    return [op.apply(made, op.value(source))]


def _reduced(op: OperatorReader, source: TfliteTensor) -> tuple[list[int], bool]:
    """Return the axes that an operator reduces, and whether they remain; check the output."""
    op.count((2,))
    rank = len(source.shape)
    axes = sorted({op.axis(axis, rank) for axis in op.constant(1, "axes")})
    keep = bool(op.options(27).integer(0, "B"))
    if not axes:
        raise op.unsupported("a reduction over no axis")
    if not keep and len(axes) == rank:
        raise op.unsupported("a reduction over all axes to a scalar", "keep one axis")
    return axes, keep


def place(op: OperatorReader, which: Which, options: int) -> Sequence[Applied]:
    """ARG_MAX and ARG_MIN along a constant axis, as int32."""
    op.count((2,))
    source, result = op.source(), op.operator.outputs[0]
    op.options(options)
    shape = source.shape
    axis = op.axis((*op.constant(1, "axes"), len(shape))[0], len(shape))
    if result.dtype != "int32":
        raise op.unsupported(f"places as {result.dtype} ({result.place})", "export int32")
    if len(shape) == 1:
        raise op.unsupported("a single place without axes", "keep one axis")
    return [op.apply(ArgExtreme(which, axis), op.value(source))]


def resize_bilinear(op: OperatorReader) -> Sequence[Applied]:
    """RESIZE_BILINEAR to a constant size, in either mode of coordinates."""
    source, sizes, aligned, centred = _resized(op, 15)
    _, iy, ix, _ = source.shape
    rows, row_weights = _interpolation(op, iy, sizes[0], aligned, centred)
    columns, column_weights = _interpolation(op, ix, sizes[1], aligned, centred)
    made = TfliteBilinear(rows, columns, row_weights, column_weights)
    return [op.apply(made, op.value(source))]


def _interpolation(
    op: OperatorReader, source: int, size: int, aligned: bool, centred: bool
) -> tuple[Array, Array]:
    """The two source elements for each of ``size``, and their weights, with 10 fraction bits."""
    one = 1 << 10
    step = (one * source + size // 2) // size
    if aligned and size > 1:
        step = (one * (source - 1) + (size - 1) // 2) // (size - 1)
    at = np.arange(size, dtype="int64") * step + (step // 2 - (one >> 1) if centred else 0)
    # Divided toward zero, as C does.
    low = np.maximum(np.where(at < 0, -(-at // one), at // one), 0)
    up = at + one - 1
    high = np.minimum(np.where(up < 0, -(-up // one), up // one), source - 1)
    if low.max() >= source or high.min() < 0:
        raise op.unsupported(
            f"{size} elements between {source}, where TFLite reads beyond the last"
        )
    weight = at - one * low
    return np.stack([low, high]).astype("int32"), np.stack([one - weight, weight]).astype("int32")


def resize_nearest(op: OperatorReader) -> Sequence[Applied]:
    """RESIZE_NEAREST_NEIGHBOR to a constant size."""
    source, sizes, aligned, centred = _resized(op, 74)
    _, iy, ix, _ = source.shape
    rows = [nearest_place(at, iy, sizes[0], aligned, centred) for at in range(sizes[0])]
    columns = [nearest_place(at, ix, sizes[1], aligned, centred) for at in range(sizes[1])]
    made = Nearest(tuple(rows), tuple(columns))
    return [op.apply(made, op.value(source))]


def _resized(op: OperatorReader, options: int) -> tuple[TfliteTensor, tuple[int, ...], bool, bool]:
    """Return input, size (y, x), align_corners and half_pixel_centers of a resize."""
    first = 2 if options == 15 else 0  # a bilinear one also states the size of old files
    op.count((2,))
    source = op.same_step()
    op.batch(source, 4)
    sizes = op.constant(1, "sizes")
    if len(sizes) != 2 or any(not 1 <= size <= _LARGEST for size in sizes):
        raise op.corrupt(f"sizes {sizes}")
    table = op.options(options)
    return source, sizes, bool(table.integer(first, "B")), bool(table.integer(first + 1, "B"))


def nearest_place(place: int, source: int, size: int, aligned: bool, centred: bool) -> int:
    """Return the element that is the ``place``-th of ``size``, in float32 like TFLite."""
    between = aligned and size > 1
    scale = np.float32(source - between) / np.float32(size - between)
    at = float((np.float32(place) + np.float32(0.5 if centred else 0.0)) * scale)
    found = math.floor(at + 0.5) if aligned else math.floor(at)
    return max(min(found, source - 1), 0)
