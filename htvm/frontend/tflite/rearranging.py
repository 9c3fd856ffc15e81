"""Operators that move elements to other axes or repeat them: packs, tiles, blocks and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from htvm.frontend.operators import Activation, Applied
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.reader import OperatorReader, constant_array
from htvm.frontend.tflite.shapes import part_of
from patterns.op import Op
from patterns.ops.moves.concat import Concat, Take
from patterns.ops.moves.pad import PadAxes
from patterns.ops.moves.reshape import Reshape, Slice, Transpose

_MODES: tuple[Literal["reflect", "symmetric"], ...] = ("reflect", "symmetric")


# ------------------------------------------------------------------------------ new axes


def pack(op: OperatorReader) -> Sequence[Applied]:
    """PACK: tensors of one scale joined along a new axis."""
    count = len(op.operator.inputs)
    op.count(range(1, 1 << 10))
    parts, options = [op.same_step(at) for at in range(count)], op.options(59)
    if options.integer(0, "i") != count:
        raise op.corrupt(f"{options.integer(0, 'i')} parts by its options, and {count} inputs")
    shape = parts[0].shape
    axis = op.axis(options.integer(1, "i"), len(shape) + 1)
    if any(part.shape != shape for part in parts):
        raise op.corrupt(f"parts of shapes {', '.join(str(part.shape) for part in parts)}")
    lifted, inputs = (*shape[:axis], 1, *shape[axis:]), []
    for at, part in enumerate(parts):
        inputs.append(Activation.of(op.apply(Reshape(lifted), op.value(part), sub=at)))
    return [op.apply(Concat(axis), *inputs, sub=count)]


def unpack(op: OperatorReader) -> Sequence[Applied]:
    """UNPACK: the parts along an axis, without it."""
    outputs = len(op.operator.outputs)
    op.count((1,), outputs)
    source = op.same_step()
    options = op.options(64)
    axis = op.axis(options.integer(1, "i"), len(source.shape))
    if source.shape[axis] != outputs or options.integer(0, "i") != outputs:
        raise op.corrupt(f"{outputs} parts of {source.shape} along axis {axis}")
    shape, steps = (*source.shape[:axis], *source.shape[axis + 1 :]), [1] * len(source.shape)
    if not shape:
        raise op.unsupported("parts without axes", "keep one axis")
    thin, results = (*source.shape[:axis], 1, *source.shape[axis + 1 :]), []
    for index in range(outputs):
        begin = [index if each == axis else 0 for each in range(len(thin))]
        part = part_of(op, source, begin, thin, steps, 2 * index)
        results.append(op.apply(Reshape(shape), Activation.of(part), sub=2 * index + 1))
    return results


# ------------------------------------------------------------------------------ repeats, choices


def tile(op: OperatorReader) -> Sequence[Applied]:
    """TILE by constant multiples."""
    op.count((2,))
    source, multiples = op.same_step(), op.constant(1, "multiples")
    if len(multiples) != len(source.shape) or min(multiples, default=1) < 1:
        raise op.corrupt(f"multiples {multiples} of {source.shape}")
    sizes = [size * count for size, count in zip(source.shape, multiples, strict=True)]
    return _elements_along(
        op, source, sizes, lambda axis, size: np.tile(np.arange(size), multiples[axis])
    )


def broadcast_to(op: OperatorReader) -> Sequence[Applied]:
    """BROADCAST_TO a constant shape."""
    op.count((2,))
    source, shape = op.same_step(), op.constant(1, "sizes")
    own = (*(1,) * (len(shape) - len(source.shape)), *source.shape)
    if len(own) != len(shape) or any(
        size not in (1, whole) for size, whole in zip(own, shape, strict=True)
    ):
        raise op.corrupt(f"a broadcast of {source.shape} to {shape}")
    op.result_shape(shape)
    steps: list[Op] = [Reshape(own)] if own != source.shape else []
    for axis, (size, whole) in enumerate(zip(own, shape, strict=True)):
        if size != whole:
            op.budget.spend_places(whole, op.where)
            steps.append(Take(axis, (0,) * whole))
    return _chain(op, source, steps)


def gather(op: OperatorReader) -> Sequence[Applied]:
    """GATHER of constant places along an axis."""
    op.count((2,))
    source, indices = op.same_step(), op.tensor(1)
    places, options = op.constant(1, "places"), op.options(23)
    axis = op.axis(options.integer(0, "i"), len(source.shape))
    if options.integer(1, "i"):
        raise op.unsupported(f"batch_dims {options.integer(1, 'i')}", "0")
    size = source.shape[axis]
    if not places or not 0 <= min(places) <= max(places) < size:
        raise op.corrupt(f"places {places[:8]} of {size}")
    shape = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    if not shape:
        raise op.unsupported("a single element without axes", "keep one axis")
    steps: list[Op] = [Take(axis, places)]
    return _chain(op, source, steps if len(indices.shape) == 1 else [*steps, Reshape(shape)])


def reverse(op: OperatorReader) -> Sequence[Applied]:
    """REVERSE_V2 along constant axes."""
    op.count((2,))
    source = op.same_step()
    shape = source.shape
    axes = {op.axis(axis, len(shape)) for axis in op.constant(1, "axes")}
    begin = [size - 1 if axis in axes else 0 for axis, size in enumerate(shape)]
    steps = [-1 if axis in axes else 1 for axis in range(len(shape))]
    return [part_of(op, source, begin, shape, steps)]


def mirror_pad(op: OperatorReader) -> Sequence[Applied]:
    """MIRROR_PAD in either mode, by constant widths."""
    op.count((2,))
    source, mode = op.same_step(), op.options(77).integer(0, "b")
    if mode not in (0, 1):
        raise op.corrupt(f"mode {mode}")
    widths = _pairs(op, 1, len(source.shape), "paddings")
    for size, pair in zip(source.shape, widths, strict=True):
        if max(pair) > size - (1 - mode):
            raise op.corrupt(f"mirrored paddings {pair} of an axis of {size}")
    sizes = [size + sum(pair) for size, pair in zip(source.shape, widths, strict=True)]
    return _elements_along(
        op,
        source,
        sizes,
        lambda axis, size: np.pad(np.arange(size), widths[axis], mode=_MODES[mode]),
    )


def _elements_along(
    op: OperatorReader,
    source: TfliteTensor,
    sizes: Sequence[int],
    places: Callable[[int, int], np.ndarray],
) -> Sequence[Applied]:
    """Take elements along each axis; ``places`` has ``sizes`` of them for an axis and its size."""
    steps: list[Op] = []
    op.result_shape(sizes)
    for axis, (size, whole) in enumerate(zip(source.shape, sizes, strict=True)):
        if whole != size:
            op.budget.spend_places(whole, op.where)
            steps.append(Take(axis, tuple(int(place) for place in places(axis, size))))
    return _chain(op, source, steps)


# ------------------------------------------------------------------------------ blocks


def depth_to_space(op: OperatorReader) -> Sequence[Applied]:
    """DEPTH_TO_SPACE: channels become the pixels of a block."""
    op.count((1,))
    source = op.same_step()
    op.batch(source, 4)
    block = op.positive(op.options(94), 0, "block size")
    n, y, x, channels = source.shape
    if channels % block**2:
        raise op.corrupt(f"blocks of {block}x{block} of {channels} channels")
    left = channels // block**2
    apart, together = Reshape((y, x, block, block * left)), Reshape((n, y * block, x * block, left))
    return _chain(op, source, [apart, Transpose((0, 2, 1, 3)), together])


def space_to_batch(op: OperatorReader) -> Sequence[Applied]:
    """SPACE_TO_BATCH_ND; with what it surrounds, it is a dilated convolution where it can be."""
    op.count((3,))
    source, blocks = op.same_step(), _blocks(op)
    spatial = len(blocks)
    widths = [(0, 0), *_pairs(op, 2, spatial, "paddings")]
    widths += [(0, 0)] * (len(source.shape) - len(widths))
    sizes = [size + sum(pair) for size, pair in zip(source.shape, widths, strict=True)]
    if any(size % block for size, block in zip(sizes[1:], blocks, strict=False)):
        raise op.corrupt(f"blocks of {blocks} in a tensor of shape {tuple(sizes)}")
    parts = [size // block for size, block in zip(sizes[1:], blocks, strict=False)]
    rest = sizes[1 + spatial :]
    split = [sizes[0], *(n for pair in zip(parts, blocks, strict=True) for n in pair), *rest]
    axes = [*range(2, 2 * spatial + 1, 2), 0, *range(1, 2 * spatial + 1, 2)]
    axes += range(2 * spatial + 1, len(split))
    shape = (sizes[0] * math.prod(blocks), *parts, *rest)
    steps: list[Op] = []
    if any(map(any, widths)):
        steps.append(PadAxes(op.step(source).zero_point, tuple(widths)))
    return _chain(
        op, source, [*steps, Reshape(tuple(split)), Transpose(tuple(axes)), Reshape(shape)]
    )


def batch_to_space(op: OperatorReader) -> Sequence[Applied]:
    """BATCH_TO_SPACE_ND, the inverse of SPACE_TO_BATCH_ND."""
    op.count((3,))
    source, blocks = op.same_step(), _blocks(op)
    spatial, shape = len(blocks), source.shape
    crops = _pairs(op, 2, spatial, "crops")
    batch, rest = shape[0] // math.prod(blocks), shape[1 + spatial :]
    if batch * math.prod(blocks) != shape[0]:
        raise op.corrupt(f"blocks of {blocks} in a batch of {shape[0]}")
    split = (*blocks, batch, *shape[1:])
    axes = [spatial]
    for at in range(spatial):
        axes += [spatial + 1 + at, at]
    axes += range(2 * spatial + 1, len(split))
    full_sizes = [size * block for size, block in zip(shape[1:], blocks, strict=False)]
    kept_sizes = [size - sum(pair) for size, pair in zip(full_sizes, crops, strict=True)]
    if min(kept_sizes, default=1) < 1:
        raise op.corrupt(f"crops {crops} of {tuple(full_sizes)}")
    steps: list[Op] = [Reshape(split), Transpose(tuple(axes)), Reshape((batch, *full_sizes, *rest))]
    if any(map(any, crops)):
        begin = (0, *(low for low, _ in crops), *(0 for _ in rest))
        sizes = (batch, *kept_sizes, *rest)
        steps.append(Slice(begin, sizes, (1,) * len(sizes)))
    return _chain(op, source, steps)


def _blocks(op: OperatorReader) -> tuple[int, ...]:
    blocks, rank = op.constant(1, "block sizes"), len(op.tensor(0).shape)
    if not 1 <= len(blocks) < rank or min(blocks) < 1:
        raise op.corrupt(f"blocks of {blocks} in a tensor of {rank} axes")
    return blocks


def _pairs(op: OperatorReader, index: int, count: int, role: str) -> list[tuple[int, int]]:
    numbers = op.constant(index, role)
    shape = constant_array(op.tensor(index)).shape
    if shape != (count, 2) or any(not 0 <= number < 1 << 12 for number in numbers):
        raise op.corrupt(f"{role} {numbers} of shape {shape}")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _chain(op: OperatorReader, source: TfliteTensor, steps: Sequence[Op]) -> Sequence[Applied]:
    """Apply operators one after another; none at all are a reshape to the same shape."""
    value = op.value(source)
    for sub, step in enumerate(steps or [Reshape(value.shape)]):
        applied = op.apply(step, value, sub=sub)
        value = Activation.of(applied)
    return [applied]
