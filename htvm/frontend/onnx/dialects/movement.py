"""Operators that move elements, take maxima or reduce: the same in every integer dialect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, Value
from htvm.frontend.onnx.dialects.write import live
from htvm.frontend.onnx.windows import windows_of
from patterns.ops.integer.reduction import IntegerMean, Total
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.slice import Slice
from patterns.ops.moves.transpose import Transpose


def _identity(node: IntegerNode) -> Value:
    return node.value(0)


def _reshape(node: IntegerNode, form: forms.Reshaped) -> Live:
    source = live(node, 0)
    return node.reshape(source, form(node, source.shape))


def _transpose(node: IntegerNode) -> Live:
    source = live(node, 0)
    axes, moves = forms.permuted(node, source.shape)
    if not moves:  # only axes of one element change places
        return node.reshape(source, tuple(source.shape[axis] for axis in axes))
    return node.apply(Transpose(axes), source, bound=source.bound)


def _concat(node: IntegerNode) -> Live:
    # A cache that is still empty is a constant without elements.
    known = [node.constant(index) for index in range(len(node.inputs))]
    filled = [index for index, part in enumerate(known) if part is None or part.size]
    parts = tuple(live(node, index) for index in filled)
    if not parts:
        raise node.unsupported("a concatenation without elements")
    axis = forms.axis_of(node, node.integer("axis"), len(parts[0].shape))
    if len(parts) == 1:
        return parts[0]
    dtypes = {part.activation.dtype for part in parts}
    if len(dtypes) != 1:
        raise node.unsupported(
            f"a concatenation of {' and '.join(sorted(dtypes))}",
            "requantize all parts to one type before, or set input_types alike",
        )
    return node.apply(Concat(axis), *parts, bound=max(part.bound for part in parts))


def _slice(node: IntegerNode) -> Live:
    source = live(node, 0)
    return _part(node, source, forms.sliced(node, source.shape))


def _part(node: IntegerNode, source: Live, part: Slice) -> Live:
    if part.sizes == source.shape and all(step == 1 for step in part.strides):
        return source
    return node.apply(part, source, bound=source.bound)


def _gather(node: IntegerNode) -> Live:
    source = live(node, 0)
    axis, flat = forms.gathered(node, source.shape)
    steps = {after - before for before, after in zip(flat, flat[1:], strict=False)} or {1}
    if len(steps) != 1 or 0 in steps:
        raise node.unsupported(
            f"a selection of {flat[:8]} from axis {axis}", "evenly spaced indices, as of a Slice"
        )
    step = steps.pop()
    places = range(flat[0], flat[0] + step * len(flat), step)
    part = _part(node, source, Slice.along(source.shape, axis, places))
    shape = node.integer_array(1).shape
    out = (*source.shape[:axis], *shape, *source.shape[axis + 1 :])
    return node.reshape(part, out)


def _pad(node: IntegerNode) -> Live:
    source = live(node, 0)
    rank = len(source.shape)
    pairs = forms.padded(node, source.shape)
    value = int(node.integer_array(2).reshape(-1)[0]) if node.input(2) else None
    value = node.int32("value", 0) if value is None else value
    if node.text("mode", "constant") != "constant":
        raise node.unsupported(f"a padding in mode {node.text('mode')}", "constant borders")
    limits = np.iinfo(source.activation.dtype)
    if not limits.min <= value <= limits.max:
        raise node.unsupported(f"a border of {value} around {source.activation.dtype}")
    bound = max(source.bound, abs(value))
    if rank not in (3, 4) or any(map(any, pairs[:2])):
        op = PadAxes(value, tuple(pairs))
        return node.apply(op, source, bound=bound)
    # As maps, also of one row, because layers take such paddings for their own.
    rows, columns = ((0, 0), *pairs[2:])[-2:]
    padding = (rows[0], columns[0], rows[1], columns[1])
    padded = node.apply(Pad(value, padding, layout="NCHW"), _as_maps(node, source), bound=bound)
    shape = tuple(size + sum(pair) for size, pair in zip(source.shape, pairs, strict=True))
    return node.reshape(padded, shape)


def _as_maps(node: IntegerNode, source: Live) -> Live:
    """Return maps; of one row, if the tensor has only one spatial axis."""
    if len(source.shape) == 4:
        return source
    return node.reshape(source, (*source.shape[:2], 1, source.shape[2]))


def _max_pool(node: IntegerNode) -> Live:
    source = live(node, 0)
    if len(source.shape) not in (3, 4):
        raise node.unsupported(
            f"a pool over a tensor of shape {list(source.shape)}", "pools over one or two axes"
        )
    windows = windows_of(node, source.shape[2:], one_axis=True)
    if windows.dilation != (1, 1) or len(node.outputs) > 1:
        raise node.unsupported("dilations or indices of a pool", "leave them out")
    windows.check_padding(node)
    op = MaxPool(windows.kernel, windows.strides, windows.padding, layout="NCHW")
    made = node.apply(op, _as_maps(node, source), bound=source.bound)
    axes = len(source.shape) - 2
    return node.reshape(made, (*source.shape[:2], *windows.outputs[-axes:]))


def _reduced(node: IntegerNode, *, mean: bool) -> Live:
    source = live(node, 0)
    rank = len(source.shape)
    named = forms.axes_of(node, 1)
    named = tuple(range(rank)) if named is None else named
    axes = tuple(forms.axis_of(node, axis, rank) for axis in named)
    keep = bool(node.integer("keepdims", 1))
    count = int(np.prod([source.shape[axis] for axis in axes]))
    if mean and count & (count - 1):
        raise node.unsupported(
            f"a mean of {count} integers", "the rounding is defined for powers of two"
        )
    bound = source.bound if mean else min(source.bound * count, 2**31)
    op = IntegerMean(axes, keep) if mean else Total(axes, keep)
    return node.apply(op, source, bound=bound)


MOVEMENT: Mapping[str, Handler] = {
    **{name: partial(_reshape, form=form) for name, form in forms.RESHAPES.items()},
    "Concat": _concat,
    "Gather": _gather,
    "Identity": _identity,
    "IntegerMean": partial(_reduced, mean=True),
    "MaxPool": _max_pool,
    "Pad": _pad,
    "ReduceMean": partial(_reduced, mean=True),
    "ReduceSum": partial(_reduced, mean=False),
    "Slice": _slice,
    "Transpose": _transpose,
}
"""Handlers by operator."""
