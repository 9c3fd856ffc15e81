"""Pools, means and nearest neighbours: operators on the axes of maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from htvm.frontend.operators import Activation, Applied, Pads, Pair
from htvm.frontend.tflite.activations import clipped
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.products import window
from htvm.frontend.tflite.reader import INT8, OperatorReader
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.nearest import Nearest
from patterns.ops.tflite.average_pool import AveragePool
from patterns.ops.tflite.mean import TfliteMean, mean_factor

__all__ = ["average_pool", "max_pool", "mean", "pool_window", "resize_nearest"]

_LARGEST = 1 << 12  # of rows and columns


def pool_window(op: OperatorReader, source: TfliteTensor) -> tuple[Pair, Pair, Pads]:
    """Return kernel, strides and padding of a pool over ``source``; check the output's shape."""
    op.batch(source, 4)
    options = op.options(5)
    kernel = (op.positive(options, 4, "kernel"), op.positive(options, 3, "kernel"))
    strides, padding, _ = window(op, options, kernel, (1, 2), None, source.shape[3])
    return kernel, strides, padding


def average_pool(op: OperatorReader) -> Sequence[Applied]:
    """AVERAGE_POOL_2D: padding is not counted."""
    op.count((1,))
    source = op.same_step()
    geometry = pool_window(op, source)
    clip = op.clip(op.options(5), 5)
    inputs = (op.value(source),)
    return [Applied(op.position(), op.where, inputs, AveragePool(*geometry, clip))]


def max_pool(op: OperatorReader) -> Sequence[Applied]:
    """MAX_POOL_2D: padding never wins."""
    op.count((1,))
    source = op.same_step()
    geometry = pool_window(op, source)
    clip = op.clip(op.options(5), 5)
    inputs = (op.value(source),)
    pool = Applied(op.position(), op.where, inputs, MaxPool(*geometry))
    if clip == INT8:
        return [pool]
    return [clipped(op, Activation(op.result().shape, pool), clip, sub=1)]


def mean(op: OperatorReader) -> Sequence[Applied]:
    """MEAN over constant axes."""
    op.count((2,))
    source, result = op.source(), op.result()
    rank = len(source.shape)
    axes = sorted({op.axis(axis, rank) for axis in op.constant(1, "axes")})
    keep = bool(op.options(27).integer(0, "B"))
    if not axes:
        raise op.unsupported("a mean over no axis")
    kept = [1 if axis in axes else size for axis, size in enumerate(source.shape)]
    dropped = [size for axis, size in enumerate(source.shape) if axis not in axes]
    op.result_shape(kept if keep else dropped)
    if not keep and not dropped:
        raise op.unsupported("a mean over all axes to a scalar", "keep one axis")
    first, last = op.step(source), op.step(result)
    count = math.prod(source.shape[axis] for axis in axes)
    factor = mean_factor((first.scale, last.scale), count)
    zeros = (first.zero_point, last.zero_point)
    made = TfliteMean(tuple(axes), *factor, zeros, keep)
    return [Applied(op.position(), op.where, (op.value(source),), made)]


def resize_nearest(op: OperatorReader) -> Sequence[Applied]:
    """RESIZE_NEAREST_NEIGHBOR to a constant size."""
    op.count((2,))
    source = op.same_step()
    op.batch(source, 4)
    sizes = op.constant(1, "sizes")
    if len(sizes) != 2 or any(not 1 <= size <= _LARGEST for size in sizes):
        raise op.corrupt(f"sizes {sizes}")
    _, iy, ix, channels = source.shape
    op.result_shape((1, *sizes, channels))
    options = op.options(74)
    aligned, centred = bool(options.integer(0, "B")), bool(options.integer(1, "B"))
    rows = [_nearest(at, iy, sizes[0], aligned, centred) for at in range(sizes[0])]
    columns = [_nearest(at, ix, sizes[1], aligned, centred) for at in range(sizes[1])]
    made = Nearest(tuple(rows), tuple(columns))
    return [Applied(op.position(), op.where, (op.value(source),), made)]


def _nearest(place: int, source: int, size: int, aligned: bool, centred: bool) -> int:
    """The source element for the ``place``-th of ``size``, computed in float32 like TFLite."""
    between = aligned and size > 1
    scale = np.float32(source - between) / np.float32(size - between)
    at = float((np.float32(place) + np.float32(0.5 if centred else 0.0)) * scale)
    found = math.floor(at + 0.5) if aligned else math.floor(at)
    return max(min(found, source - 1), 0)
