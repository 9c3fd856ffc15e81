"""Operators that move elements: scale and zero point stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.unary import mapped
from htvm.frontend.onnx.affine.values import (
    Bound,
    Constant,
    Pending,
    Quantized,
    Real,
    Sums,
    Value,
    View,
)
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad_axes import PadAxes
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.slice import Slice
from patterns.ops.moves.transpose import Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import Node
    from patterns.ops.moves.base import Move

__all__ = ["HANDLERS", "concat"]


def _tensor(reader: Reader, node: Node, index: int) -> Quantized | View | Real | Sums:
    """An input that is a tensor; what waits for quantization becomes a real."""
    value = reader.value(node, index)
    if isinstance(value, Constant):
        raise node.unsupported("its data are constant", "fold constants when exporting")
    if isinstance(value, Pending):
        return Real(reader.realised(value, node.where))
    return value


def _like(value: Quantized | View | Real | Sums, activation: Activation) -> Value:
    """The same kind of value, of other elements."""
    match value:
        case View():
            return View(activation, value.step)
        case Quantized():
            return Quantized(activation, value.dtype)
        case Sums():
            return Sums(activation)
    return Real(activation)


def _reshaped(reader: Reader, node: Node, shape: Sequence[int]) -> Value:
    wanted = tuple(int(size) for size in shape)
    value = reader.value(node, 0)
    if isinstance(value, Constant):
        return _folded(value, lambda data: data.reshape(wanted))
    if isinstance(value, Pending):
        return _pending_reshape(reader, node, value, wanted)
    tensor = _tensor(reader, node, 0)
    source = tensor.activation
    if math.prod(source.shape) != math.prod(wanted):
        raise node.damaged(f"a reshape of {list(source.shape)} to {list(wanted)}")
    if source.shape == wanted:
        return tensor
    step = reader.steps.get(source)
    made = reader.write(node, Reshape(wanted), (source,), wanted, dtype=source.dtype, step=step)
    return _like(tensor, made)


def _pending_reshape(
    reader: Reader, node: Node, pending: Pending, shape: tuple[int, ...]
) -> Pending:
    def finish(step: Quantization, clip: Clip, bias: Constant | None) -> Activation:
        made = pending.finish(step, clip, pending.bias)
        return reader.write(node, Reshape(shape), (made,), shape, step=step)

    if math.prod(pending.shape) != math.prod(shape):
        raise node.damaged(f"a reshape of {list(pending.shape)} to {list(shape)}")

    make = pending.real
    if make is None:
        return Pending(shape, finish, bound=pending.bound)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        made = make(bound, pending.bias)
        return reader.write(node, Reshape(shape), (made,), shape, dtype="float32")

    return Pending(shape, finish, real_form, bound=pending.bound)


def _folded(value: Constant, move: Callable[[Array], Array]) -> Constant:
    if value.scale is None or value.zero_point is None:
        return Constant(move(value.data))
    full = value.data.shape
    scale, zeros = (np.broadcast_to(item, full) for item in (value.scale, value.zero_point))
    if value.scale.size == 1:
        data = move(value.data)
        ones = (1,) * data.ndim
        return Constant(data, value.scale.reshape(ones), value.zero_point.reshape(ones))
    return Constant(move(value.data), move(scale), move(zeros))


def _shape_of(reader: Reader, node: Node) -> tuple[int, ...]:
    value = reader.value(node, 0)
    if isinstance(value, Constant):
        return tuple(value.data.shape)
    return value.shape if isinstance(value, Pending | View) else value.activation.shape


def _reshape(reader: Reader, node: Node) -> Value:
    source = _shape_of(reader, node)
    wanted = [int(size) for size in reader.array(node, 1, "shape").reshape(-1)]
    if not node.integer("allowzero", 0):
        wanted = [
            source[axis] if size == 0 and axis < len(source) else size
            for axis, size in enumerate(wanted)
        ]
    known = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) > 1 or known == 0 or math.prod(source) % known:
        raise node.damaged(f"a reshape of {list(source)} to {wanted}")
    return _reshaped(
        reader, node, [math.prod(source) // known if size == -1 else size for size in wanted]
    )


def _flatten(reader: Reader, node: Node) -> Value:
    source = _shape_of(reader, node)
    rank = len(source)
    axis = node.integer("axis", 1)
    axis = rank if axis == rank else _axis(node, axis, rank)
    return _reshaped(reader, node, [math.prod(source[:axis]), math.prod(source[axis:])])


def _axis(node: Node, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise node.damaged(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank


def _axes(reader: Reader, node: Node) -> tuple[int, ...] | None:
    if "axes" in node.attributes:
        return node.integers("axes")
    if node.input(1):
        return tuple(int(axis) for axis in reader.array(node, 1, "axes").reshape(-1))
    return None


def _squeeze(reader: Reader, node: Node) -> Value:
    source = _shape_of(reader, node)
    given = _axes(reader, node)
    if given is None:
        given = tuple(axis for axis, size in enumerate(source) if size == 1)
    axes = {_axis(node, axis, len(source)) for axis in given}
    if any(source[axis] != 1 for axis in axes):
        raise node.damaged(f"axes {sorted(axes)} of {list(source)} are not all 1")
    return _reshaped(reader, node, [n for axis, n in enumerate(source) if axis not in axes])


def _unsqueeze(reader: Reader, node: Node) -> Value:
    shape = list(_shape_of(reader, node))
    given = _axes(reader, node)
    if given is None:
        raise node.damaged("attribute or input 'axes' is missing")
    rank = len(shape) + len(given)
    axes = {_axis(node, axis, rank) for axis in given}
    if len(axes) != len(given):
        raise node.damaged(f"axes {given} name one twice")
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return _reshaped(reader, node, shape)


def _transpose(reader: Reader, node: Node) -> Value:
    source = _shape_of(reader, node)
    axes = node.integers("perm", tuple(reversed(range(len(source)))))
    if sorted(axes) != list(range(len(source))):
        raise node.damaged(f"perm {axes} of a tensor of {len(source)} axes")
    value = reader.value(node, 0)
    if isinstance(value, Constant):
        return _folded(value, lambda data: data.transpose(axes))
    shape = tuple(source[axis] for axis in axes)
    order = [axis for axis in axes if source[axis] != 1]
    if order == sorted(order):
        return _reshaped(reader, node, shape)
    return _moved(reader, node, Transpose(tuple(axes)), shape)


def _moved(reader: Reader, node: Node, op: Move, shape: tuple[int, ...]) -> Value:
    tensor = _tensor(reader, node, 0)
    source = tensor.activation
    step = reader.steps.get(source)
    made = reader.write(node, op, (source,), shape, dtype=source.dtype, step=step)
    return _like(tensor, made)


def _slice(reader: Reader, node: Node) -> Value:
    source = _shape_of(reader, node)
    rank = len(source)
    if "starts" in node.attributes:
        starts, ends = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes", tuple(range(len(starts)))), (1,) * len(starts)
    else:
        parts = [reader.optional(node, index, "range") for index in range(1, 5)]
        starts, ends, axes, steps = (  # type: ignore[assignment]
            None if part is None else tuple(int(v) for v in part.reshape(-1)) for part in parts
        )
        if starts is None or ends is None:
            raise node.damaged("input 1 or 2 is missing", "a Slice needs starts and ends")
        axes = tuple(range(len(starts))) if axes is None else axes
        steps = (1,) * len(starts) if steps is None else steps
    axes = tuple(_axis(node, axis, rank) for axis in axes)
    if not len(starts) == len(ends) == len(set(axes)) == len(axes) == len(steps):
        raise node.damaged(f"starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    begin, sizes, strides = [0] * rank, list(source), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise node.unsupported(f"a slice in steps of {step}", "positive steps")
        first, last, _ = slice(start, end, step).indices(source[axis])
        begin[axis], strides[axis] = first, step
        sizes[axis] = max(0, -(-(last - first) // step))
    if not all(sizes):
        raise node.damaged(f"a slice of {list(source)} that leaves nothing")
    op = Slice(tuple(begin), tuple(sizes), tuple(strides))
    return _moved(reader, node, op, tuple(sizes))


def _pad(reader: Reader, node: Node) -> Value:
    value = reader.value(node, 0)
    mode = node.text("mode", "constant")
    if mode != "constant" or not isinstance(value, View | Quantized):
        raise node.unsupported(
            f"a padding in mode '{mode}' of a {type(value).__name__.lower()}",
            "pad quantized tensors with a constant",
        )
    source = value.activation.shape
    if "pads" in node.attributes:
        pads, fill = node.integers("pads"), node.number("value", 0.0)
    else:
        pads = tuple(int(n) for n in reader.array(node, 1, "widths").reshape(-1))
        constant = reader.value(node, 2) if node.input(2) else None
        if constant is not None and not isinstance(constant, Constant):
            raise node.unsupported("its value is computed at run time", "make it constant")
        fill = float(constant.real.reshape(-1)[0]) if constant is not None else 0.0
    if len(pads) != 2 * len(source) or min(pads) < 0:
        raise node.damaged(f"widths {pads} for a tensor of {len(source)} axes")
    if not math.isfinite(fill):
        raise node.unsupported(f"a padding with {fill}", "pad with a number")
    number = int(fill)
    if isinstance(value, View):
        ratio = float(np.rint(np.float32(fill) / np.float32(value.step.scale)))
        number = int(min(max(ratio + value.step.zero_point, -128), 127))
    elif value.dtype == "uint8":
        number -= 128
    widths = list(zip(pads[: len(source)], pads[len(source) :], strict=True))
    shape = tuple(n + sum(width) for n, width in zip(source, widths, strict=True))
    return _moved(reader, node, PadAxes(number, tuple(widths)), shape)


def concat(reader: Reader, node: Node, views: Sequence[View], axis: int) -> Pending:
    """The tensors one after the other, each brought to the step of the result."""
    shapes = [view.shape for view in views]
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        raise node.damaged(f"a concatenation along axis {axis} of {shapes}")
    axis %= rank
    frames = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(frames) != 1:
        raise node.damaged(f"a concatenation along axis {axis} of {shapes}")
    total = sum(shape[axis] for shape in shapes)
    result = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        parts = [
            view.activation
            if view.step == step and clip == (-128, 127)
            else mapped(reader, node, view, step, lambda x: x, clip)
            for view in views
        ]
        return reader.write(node, Concat(axis), parts, result, step=step)

    return Pending(result, finish)


def _concat(reader: Reader, node: Node) -> Value:
    views = [reader.view(node, index, f"part {index}") for index in range(len(node.inputs))]
    return concat(reader, node, views, node.integer("axis"))


def _identity(reader: Reader, node: Node) -> Value:
    return reader.value(node, 0)


def _cast(reader: Reader, node: Node) -> Value:
    value = reader.value(node, 0)
    if not isinstance(value, Sums) or node.integer("to") != 1:
        raise node.unsupported("a cast other than of int32 sums to float32")
    from htvm.frontend.onnx.affine.quantization import real_of_sums

    one = np.ones(1, "float32")
    return Real(real_of_sums(reader, node, value.activation, one, 0))


HANDLERS: dict[str, Handler] = {
    "Cast": _cast,
    "Concat": _concat,
    "Dropout": _identity,
    "Flatten": _flatten,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""What the nodes mean."""
