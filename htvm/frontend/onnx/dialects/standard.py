"""Standard operators in integers: products, moves of elements, maxima and reductions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, Products
from htvm.frontend.onnx.dialects.write import live, written_value
from htvm.frontend.onnx.windows import groups_of, windows_of
from htvm.frontend.operators import Activation
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.reduction import IntegerMean, Total
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.reshape import Slice, Transpose

_INT32_MAX = 2**31 - 1

_NARROW = ("int8", "uint8")


def _weights(node: IntegerNode) -> Array:
    """Return input 1 as int8.  Eight-bit initialisers are two's complement, whatever their type.

    Raises:
        UnsupportedError: they are not constant, are not integers, or do not fit int8.
    """
    raw = node.constant(1)
    if raw is not None and raw.dtype == np.uint8:
        return raw.view(np.int8)
    values = node.integer_array(1)
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < -128 or high > 127:
        raise node.unsupported(
            f"weights '{node.input(1)}' from {low} to {high}", "weights are int8: -128 to 127"
        )
    return values.astype(np.int8)


def _source(node: IntegerNode) -> Live:
    source = live(node, 0)
    if source.activation.dtype not in _NARROW:
        raise node.unsupported(
            f"a layer on {source.activation.dtype}",
            "layers with weights read int8 or uint8; requantize before, or say what the model's "
            "input holds with input_types",
        )
    return source


def _bias(node: IntegerNode, index: int, channels: int) -> Array:
    if not node.input(index):
        return np.zeros(channels, np.int64)
    values = node.integer_array(index).reshape(-1)
    if values.size not in (1, channels):
        raise node.unsupported(f"{values.size} biases for {channels} output channels")
    return np.broadcast_to(values, channels).copy()


def _conv(node: IntegerNode) -> Products:
    source, weight = _source(node), _weights(node)
    shape = source.shape
    if len(shape) not in (3, 4) or weight.ndim != len(shape):
        raise node.unsupported(
            f"weights of shape {list(weight.shape)} on a tensor of shape {list(shape)}",
            "convolutions over one or two axes",
        )
    groups = groups_of(node, shape[1], weight.shape)
    windows = windows_of(node, shape[2:], weight.shape[2:], one_axis=True)
    bias = _bias(node, 2, weight.shape[0])
    result = (shape[0], weight.shape[0], *windows.outputs[-len(shape[2:]) :])
    if len(shape) == 3:  # one axis: a map of one row
        source = node.reshape(source, (*shape[:2], 1, shape[2]))
        weight = weight[:, :, None]
    return Products(node, source, weight, bias, windows.filter(groups), result)


def _linear(node: IntegerNode, source: Live, weight: Array, bias: Array) -> Products:
    shape = source.shape
    if shape[-1] != weight.shape[1]:
        raise node.damaged(
            f"a product of shapes {list(shape)} and {[weight.shape[1], weight.shape[0]]}"
        )
    rows = node.reshape(source, (int(np.prod(shape[:-1])), shape[-1]))
    return Products(node, rows, weight, bias, None, (*shape[:-1], weight.shape[0]))


def _gemm(node: IntegerNode) -> Live | Products:
    source, weight = _source(node), _weights(node)
    if node.integer("transA", 0) or len(source.shape) != 2 or weight.ndim != 2:
        raise node.unsupported("a transposed first operand", "transpose it before")
    if not node.integer("transB", 0):
        weight = np.asarray(weight.T, order="C")
    alpha, beta = node.int32("alpha", 1), node.int32("beta", 1)
    offset = node.integer_array(2) * beta if node.input(2) else np.zeros(1, np.int64)
    channels = weight.shape[0]
    result = (channels, source.shape[0])
    sizes = zip(offset.shape[::-1], result, strict=False)
    if offset.ndim > 2 or any(own not in (1, size) for own, size in sizes):
        raise node.damaged(f"a bias of shape {list(offset.shape)} for {list(result[::-1])}")
    zero = np.zeros(channels, np.int64)
    per_channel = offset.size == 1 or (offset.size == channels == offset.shape[-1])
    if alpha == 1 and per_channel:
        return _linear(node, source, weight, np.broadcast_to(offset.reshape(-1), channels))
    sums = written_value(_linear(node, source, weight, zero))
    if alpha != 1:
        factor = np.asarray([alpha])
        sums = node.combine("multiply", sums, factor)
    return node.combine("add", sums, offset)


def _matmul(node: IntegerNode) -> Live | Products:
    if node.constant(1) is not None:
        weight = _weights(node)
        if weight.ndim != 2:
            raise node.unsupported(
                f"constant matrices of shape {list(weight.shape)}", "one matrix of two axes"
            )
        matrix = np.asarray(weight.T, order="C")
        return _linear(node, _source(node), matrix, np.zeros(matrix.shape[0], np.int64))
    a, b = live(node, 0), live(node, 1)
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise node.damaged(f"a product of shapes {list(a.shape)} and {list(b.shape)}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise node.damaged(f"a product of shapes {list(a.shape)} and {list(b.shape)}") from None
    bound = min(a.bound * b.bound * a.shape[-1], 2**31)
    rows = _transposed(b)
    second = b if rows is None else Live(rows, b.bound)
    return node.apply(IntegerMatmul(rows is not None), a, second, bound=bound)


def _transposed(value: Live) -> Activation | None:
    """Return the matrices whose rows are the columns of ``value``, if that is how they were made.

    A product reads either, and needs no transposition.
    """
    origin = value.activation.origin
    if isinstance(origin, str) or not isinstance(origin.op, Transpose):
        return None
    rank = len(value.shape)
    return origin.inputs[0] if origin.op.axes == (*range(rank - 2), rank - 1, rank - 2) else None


# ------------------------------------------------------------------------------ moves, reductions


def _reshaped(node: IntegerNode, form: forms.Reshaped) -> Live:
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


def _part(node: IntegerNode, part: Slice) -> Live:
    source = live(node, 0)
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
    part = _part(node, Slice.along(source.shape, axis, places))
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


STANDARD: Mapping[str, Handler] = {
    **{name: partial(_reshaped, form=form) for name, form in forms.RESHAPES.items()},
    "Concat": _concat,
    "Conv": _conv,
    "Gather": _gather,
    "Gemm": _gemm,
    "Identity": lambda node: node.value(0),
    "IntegerMean": partial(_reduced, mean=True),
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Pad": _pad,
    "ReduceMean": partial(_reduced, mean=True),
    "ReduceSum": partial(_reduced, mean=False),
    "Slice": lambda node: _part(node, forms.sliced(node, live(node, 0).shape)),
    "Transpose": _transpose,
}
"""Handlers by operator."""
