"""Operators that move elements, take maxima or reduce: the same in every integer dialect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from htvm.frontend.onnx.dialects.products import geometry_of
from htvm.frontend.onnx.dialects.reader import Handler, IntegerReader
from htvm.frontend.onnx.dialects.values import Live, Value
from htvm.frontend.onnx.graph import Node
from patterns.ops.integer.mean import IntegerMean
from patterns.ops.integer.total import Total
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.slice import Slice
from patterns.ops.moves.transpose import Transpose

__all__ = ["MOVEMENT", "axes_of"]


def axes_of(reader: IntegerReader, node: Node, index: int, rank: int) -> tuple[int, ...] | None:
    """Axes, an attribute or an input since opset 13; ``None`` if none are given."""
    if node.input(index):
        given = tuple(int(axis) for axis in reader.integers(node, index).reshape(-1))
    elif "axes" in node.attributes:
        given = node.integers("axes")
    else:
        return None
    return tuple(_axis(node, axis, rank) for axis in given)


def _axis(node: Node, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise node.damaged(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank


def _identity(reader: IntegerReader, node: Node) -> Value:
    return reader.value(node, 0)


def _reshape(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    if node.input(1):
        wanted = [int(size) for size in reader.integers(node, 1).reshape(-1)]
    else:
        wanted = list(node.integers("shape"))
    if not node.integer("allowzero", 0):
        for axis, size in enumerate(wanted):
            if size == 0 and axis < len(source.shape):
                wanted[axis] = source.shape[axis]
    elements = int(np.prod(source.shape))
    rest = int(np.prod([size for size in wanted if size != -1]))
    if wanted.count(-1) > 1 or min(wanted, default=1) < -1 or rest < 1 or elements % rest:
        raise node.damaged(f"a reshape of {list(source.shape)} to {wanted}")
    sizes = tuple(elements // rest if size == -1 else size for size in wanted)
    if int(np.prod(sizes)) != elements:
        raise node.damaged(f"a reshape of {list(source.shape)} to {wanted}")
    return reader.reshape(node, source, sizes)


def _flatten(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    axis = node.integer("axis", 1)
    axis = axis if axis == len(source.shape) else _axis(node, axis, len(source.shape))
    sizes = (int(np.prod(source.shape[:axis])), int(np.prod(source.shape[axis:])))
    return reader.reshape(node, source, sizes)


def _squeeze(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    axes = axes_of(reader, node, 1, len(source.shape))
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(source.shape) if size == 1)
    if any(source.shape[axis] != 1 for axis in axes):
        raise node.damaged(f"axes {axes} of shape {list(source.shape)} are not all 1")
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    return reader.reshape(node, source, kept)


def _unsqueeze(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    count = len(node.integers("axes")) if not node.input(1) else reader.integers(node, 1).size
    axes = axes_of(reader, node, 1, len(source.shape) + count) or ()
    sizes = list(source.shape)
    for axis in sorted(axes):
        sizes.insert(axis, 1)
    return reader.reshape(node, source, tuple(sizes))


def _transpose(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    rank = len(source.shape)
    perm = node.integers("perm", tuple(reversed(range(rank))))
    if sorted(perm) != list(range(rank)):
        raise node.damaged(f"permutation {perm} of {rank} axes")
    out = tuple(source.shape[axis] for axis in perm)
    moving = [axis for axis in perm if source.shape[axis] != 1]
    if moving == sorted(moving):  # only axes of one element change places
        return reader.reshape(node, source, out)

    return reader.apply(node, Transpose(tuple(perm)), source, bound=source.bound)


def _concat(reader: IntegerReader, node: Node) -> Live:
    parts = tuple(reader.live(node, index) for index in range(len(node.inputs)))
    rank = len(parts[0].shape)
    axis = _axis(node, node.integer("axis"), rank)
    frames = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}
    dtypes = {part.activation.dtype for part in parts}
    if len(frames) != 1 or any(len(part.shape) != rank for part in parts):
        raise node.damaged(f"a concatenation of {', '.join(str(list(p.shape)) for p in parts)}")
    if len(dtypes) != 1:
        raise node.unsupported(
            f"a concatenation of {' and '.join(sorted(dtypes))}",
            "requantize all parts to one type before, or set input_types alike",
        )
    return reader.apply(node, Concat(axis), *parts, bound=max(part.bound for part in parts))


def _slice(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    rank = len(source.shape)
    if node.input(1):
        starts, ends = (reader.integers(node, index).reshape(-1).tolist() for index in (1, 2))
        axes = axes_of(reader, node, 3, rank)
        steps = reader.integers(node, 4).reshape(-1).tolist() if node.input(4) else None
    else:
        starts, ends = list(node.integers("starts")), list(node.integers("ends"))
        axes, steps = axes_of(reader, node, len(node.inputs), rank), None
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.damaged(f"starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    begin, sizes, strides = [0] * rank, list(source.shape), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        chosen = range(source.shape[axis])[slice(start, end, step)]
        if not chosen:
            raise node.unsupported(f"an empty slice of axis {axis}")
        begin[axis], sizes[axis], strides[axis] = chosen[0], len(chosen), step
    return _part(reader, node, source, begin, sizes, strides)


def _part(
    reader: IntegerReader,
    node: Node,
    source: Live,
    begin: list[int],
    sizes: list[int],
    strides: list[int],
) -> Live:
    if tuple(sizes) == source.shape and all(step == 1 for step in strides):
        return source
    part = Slice(tuple(begin), tuple(sizes), tuple(strides))
    return reader.apply(node, part, source, bound=source.bound)


def _gather(reader: IntegerReader, node: Node) -> Live:
    source, indices = reader.live(node, 0), reader.integers(node, 1)
    axis = _axis(node, node.integer("axis", 0), len(source.shape))
    size = source.shape[axis]
    flat = [int(index) + size * (index < 0) for index in indices.reshape(-1)]
    if not flat or min(flat) < 0 or max(flat) >= size:
        raise node.damaged(f"indices {indices.tolist()} of an axis of {size}")
    steps = {after - before for before, after in zip(flat, flat[1:], strict=False)} or {1}
    if len(steps) != 1 or 0 in steps:
        raise node.unsupported(
            f"a selection of {flat} from axis {axis}", "evenly spaced indices, as of a Slice"
        )
    rank = len(source.shape)
    begin, sizes, strides = [0] * rank, list(source.shape), [1] * rank
    begin[axis], sizes[axis], strides[axis] = flat[0], len(flat), steps.pop()
    part = _part(reader, node, source, begin, sizes, strides)
    out = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    return reader.reshape(node, part, out)


def _pad(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    rank = len(source.shape)
    pads = reader.integers(node, 1).reshape(-1).tolist() if node.input(1) else None
    widths = list(node.integers("pads")) if pads is None else pads
    value = int(reader.integers(node, 2).reshape(-1)[0]) if node.input(2) else None
    value = node.integer("value", 0) if value is None else value
    if node.text("mode", "constant") != "constant" or len(widths) != 2 * rank or min(widths) < 0:
        raise node.unsupported(
            f"a padding of {widths} in mode {node.text('mode', 'constant')}",
            "constant borders, before and after each axis",
        )
    limits = np.iinfo(source.activation.dtype)
    if not limits.min <= value <= limits.max:
        raise node.unsupported(f"a border of {value} around {source.activation.dtype}")
    pairs = [(widths[axis], widths[axis + rank]) for axis in range(rank)]
    if rank != 4 or pairs[0] != (0, 0) or pairs[1] != (0, 0):
        raise node.unsupported(f"a padding of {widths}", "height and width of NCHW maps")
    padding = (pairs[2][0], pairs[3][0], pairs[2][1], pairs[3][1])
    op = Pad(value, padding, layout="NCHW")
    return reader.apply(node, op, source, bound=max(source.bound, abs(value)))


def _max_pool(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    kernel = node.integers("kernel_shape")
    if len(source.shape) != 4 or len(kernel) != 2:
        raise node.unsupported(f"a pool over a tensor of shape {list(source.shape)}", "NCHW maps")
    strides, dilations, pads = geometry_of(node, source.shape[2:], kernel)
    if node.integer("ceil_mode", 0) or dilations != (1, 1) or len(node.outputs) > 1:
        raise node.unsupported("ceil_mode, dilations or indices of a pool", "leave them out")
    for axis in (0, 1):
        span = source.shape[2 + axis] + pads[axis] + pads[axis + 2] - kernel[axis]
        if span < 0 or pads[axis] >= kernel[axis] or pads[axis + 2] >= kernel[axis]:
            raise node.damaged("the window does not fit the padded map")
    op = MaxPool(
        kernel=(kernel[0], kernel[1]),
        strides=(strides[0], strides[1]),
        padding=(pads[0], pads[1], pads[2], pads[3]),
        layout="NCHW",
    )
    return reader.apply(node, op, source, bound=source.bound)


def _reduced(reader: IntegerReader, node: Node, *, mean: bool) -> Live:
    source = reader.live(node, 0)
    rank = len(source.shape)
    axes = axes_of(reader, node, 1, rank)
    axes = tuple(range(rank)) if axes is None else axes
    keep = bool(node.integer("keepdims", 1))
    count = int(np.prod([source.shape[axis] for axis in axes]))
    if mean and count & (count - 1):
        raise node.unsupported(
            f"a mean of {count} integers", "the rounding is defined for powers of two"
        )
    bound = source.bound if mean else min(source.bound * count, 2**31)
    op = IntegerMean(axes, keep) if mean else Total(axes, keep)
    return reader.apply(node, op, source, bound=bound)


MOVEMENT: Mapping[str, Handler] = {
    "Concat": _concat,
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": _identity,
    "IntegerMean": partial(_reduced, mean=True),
    "MaxPool": _max_pool,
    "Pad": _pad,
    "ReduceMean": partial(_reduced, mean=True),
    "ReduceSum": partial(_reduced, mean=False),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""Handlers by operator."""
