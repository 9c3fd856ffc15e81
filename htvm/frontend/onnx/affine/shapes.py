"""Operators that move elements of tensors of any kind, join and pad them.

Scale and zero point stay the same, but where parts of several are concatenated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.quantization import in_reals, real_of_sums
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
from htvm.frontend.onnx.affine.unary import limited, requantized
from htvm.frontend.onnx.affine.values import (
    Bound,
    Constant,
    Pending,
    Quantized,
    Real,
    Sums,
    Value,
    View,
    in_steps,
    integers_of,
)
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import Rounding
from patterns.op import INT8, TensorType
from patterns.ops.integer.rescale import Rescale
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.concat import Attach, Concat, Take
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.reshape import Reshape, Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op

Tensor: TypeAlias = Quantized | View | Real | Sums
"""A value that stands for a written tensor."""

Movable: TypeAlias = Tensor | Constant
"""The same, or a constant, whose moves are folded."""


def tensor_of(node: NodeReader, index: int) -> Tensor:
    """Return an input that is a tensor; a value pending quantization becomes a real."""
    value = node.value(index)
    if isinstance(value, Constant):
        raise node.unsupported("its data are constant", "fold constants when exporting")
    if isinstance(value, Pending):
        return Real(node.realised(value))
    return value


def movable_of(node: NodeReader, index: int) -> Movable:
    """Return the same, or a constant."""
    value = node.value(index)
    return value if isinstance(value, Constant) else tensor_of(node, index)


def _reshaped(node: NodeReader, form: forms.Reshaped) -> Value:
    value = node.value(0)
    shape = form(node, value.shape)
    if isinstance(value, Pending):
        return pending_reshape(node, value, shape)
    source = movable_of(node, 0)
    if math.prod(source.shape) != math.prod(shape):
        raise node.damaged(f"a reshape of {list(source.shape)} to {list(shape)}")
    return reshape(node, source, shape)


def pending_reshape(node: NodeReader, pending: Pending, shape: tuple[int, ...]) -> Pending:
    """Return a value pending quantization in another shape."""
    if math.prod(pending.shape) != math.prod(shape):
        raise node.damaged(f"a reshape of {list(pending.shape)} to {list(shape)}")
    return pending_move(node, pending, Reshape(shape))


def pending_move(node: NodeReader, pending: Pending, op: Op) -> Pending:
    """Return a value pending quantization after a move of its elements, or their maxima."""
    shape = op.result_of([TensorType(pending.shape)]).shape

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        made = pending.finish(step, clip, pending.bias)
        return node.write(op, made, step=step)

    make = pending.real
    if make is None:
        return Pending(shape, finish, bound=pending.bound, dtype=pending.dtype)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        return node.write(op, make(bound, pending.bias))

    return Pending(shape, finish, real_form, bound=pending.bound, dtype=pending.dtype)


def _folded(node: OnnxNode, value: Constant, move: Callable[[Array], Array]) -> Constant:
    """Return a constant after a move, and its scales and zero points along the axes they are on."""
    data = move(value.data)
    if value.scale is None or value.zero_point is None:
        return Constant(data)
    if value.scale.size == 1:
        ones = (1,) * data.ndim
        return Constant(data, value.scale.reshape(ones), value.zero_point.reshape(ones))
    scale, zeros = (
        move(np.broadcast_to(item, value.shape)) for item in (value.scale, value.zero_point)
    )
    return Constant.along_axes(data, scale, zeros, node.where, blocks=value.blocks)


def _transpose(node: NodeReader) -> Value:
    source = node.value(0).shape
    axes, moves = forms.permuted(node, source)
    if moves:
        return _moved(node, Transpose(axes))
    return _reshaped(node, lambda *_: tuple(source[axis] for axis in axes))


def _moved(node: NodeReader, op: Move) -> Value:
    value = node.value(0)
    if isinstance(value, Pending):
        return pending_move(node, value, op)
    return move(node, movable_of(node, 0), op)


def move(node: NodeReader, value: Movable, op: Move) -> Movable:
    """Return a tensor or a constant of the same kind after a move of its elements.

    Raises:
        UnsupportedError: a constant would become too large.
    """
    if isinstance(value, Constant):
        shape = op.result_of([TensorType(value.shape)]).shape
        node.reader.graph.budget.spend("folded_elements", math.prod(shape), node.where)
        return _folded(node, value, lambda part: op.moved([part], 0))
    return moved(node, value, op)


def reshape(node: NodeReader, value: Movable, shape: tuple[int, ...]) -> Movable:
    """Return a tensor or a constant of the same kind with the same elements in another shape."""
    if isinstance(value, Constant):
        node.check_axes(shape)
        return _folded(node, value, lambda part: part.reshape(shape))
    return in_shape(node, value, shape)


def moved(node: NodeReader, tensor: Tensor, op: Op) -> Tensor:
    """Return a tensor of the same kind after a move of its elements."""
    wide = integers_of(tensor)
    if wide is not None and not isinstance(op, Filling):
        made = node.write(op, wide.activation, step=wide.step)
        return in_reals(node, replace(wide, activation=made))
    source = tensor.activation
    return replace(tensor, activation=node.write(op, source, step=node.reader.steps.get(source)))


def unsigned(node: NodeReader, tensor: Activation) -> Activation | None:
    """Return the uint8 tensor that an int8 one is 128 below of, if it was made or moved from one.

    Moves are written anew; those of int8 are left out of a network that does not read them.
    """
    origin = tensor.origin
    if not isinstance(origin, Applied) or isinstance(origin.op, Filling):
        return None
    if isinstance(origin.op, Rescale) and origin.op.offset == INT8[0]:
        (source,) = origin.inputs
        return source if source.dtype == "uint8" else None
    if tensor.dtype != "int8" or not isinstance(origin.op, Move | MaxPool | Reshape):
        return None
    if tensor not in node.reader.unsigned:
        parts = [found for part in origin.inputs if (found := unsigned(node, part)) is not None]
        if len(parts) < len(origin.inputs):
            return None
        made = Activation.of(replace(origin, position=node.reader.position(), inputs=tuple(parts)))
        node.reader.unsigned[tensor] = made
        if tensor in node.reader.sources:
            node.reader.sources[made] = node.reader.sources[tensor]
    return node.reader.unsigned[tensor]


def in_shape(node: NodeReader, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of the same kind with the same elements in another shape."""
    if tensor.activation.shape == shape:
        return tensor
    return moved(node, tensor, Reshape(shape))


def _dropout(node: NodeReader) -> Value:
    node.ignore("ratio", "seed", inputs=(1,))
    if node.input(2) and node.array(2, "training mode").any():
        raise node.unsupported("a Dropout in training mode", "export the network for inference")
    return node.value(0)


def _cast(node: NodeReader) -> Value:
    value = node.value(0)
    if node.integer("to") == 1 and isinstance(value, Real | View | Pending):
        return value  # of float32 to itself
    node.ignore("saturate")  # of casts to floats of 8 bits
    wide = _WIDE.get(node.integer("to"))
    if wide is not None and isinstance(value, Sums):
        return Sums(value.activation, wide)
    if wide is not None and isinstance(value, Quantized):
        offset = offset_of(value.dtype)
        op = Rescale.moving(offset, (offset - 128, offset + 127), "int32")
        source = value.activation
        return Sums(node.write(op, source), wide)
    if not isinstance(value, Sums) or node.integer("to") != 1:
        raise node.unsupported(
            "a cast other than of reals to float32, of integers to int32 or int64, or of int32 "
            "sums and places to float32"
        )
    return Real(real_of_sums(node, value.activation, np.ones(1, "float32"), 0))


_WIDE = {6: "int32", 7: "int64"}
"""Types that hold int32, by their number in the standard."""

# ------------------------------------------------------------------------------ concatenation


def concat(node: NodeReader, parts: Sequence[View | Constant], axis: int) -> Pending:
    """Return tensors and 8-bit constants concatenated, each converted to the result's scale."""
    shapes = [part.shape if isinstance(part, View) else part.data.shape for part in parts]
    axis, result = _joined(node, shapes, axis)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        made: list[Activation | Array] = []
        for part in parts:
            if isinstance(part, Constant):
                made.append(_requantized(part, step, clip, node.reader.rounding))
            elif part.step == step and clip == INT8:
                made.append(part.activation)
            else:
                made.append(requantized(node, part, step, clip))
        return _written(node, made, axis, step)

    return Pending(result, finish)


def _joined(
    node: OnnxNode, shapes: Sequence[tuple[int, ...]], axis: int
) -> tuple[int, tuple[int, ...]]:
    """Return the axis, counted from the front, and the shape of a concatenation."""
    axis = forms.axis_of(node, axis, len(shapes[0]))
    return axis, Concat(axis).result_of([TensorType(shape) for shape in shapes]).shape


def _requantized(constant: Constant, step: Quantization, clip: Clip, rounding: Rounding) -> Array:
    """Return a constant as int8 in the result's quantization, rounded like a QuantizeLinear."""
    ratio = np.rint(in_steps(constant.real.astype("float32"), step, rounding))
    return np.clip(ratio + step.zero_point, *clip).astype("int8")


def _written(
    node: NodeReader,
    parts: Sequence[Activation | Array],
    axis: int,
    step: Quantization | None,
) -> Activation:
    """Write a concatenation of tensors and constants of the same type."""

    def together(tensors: Sequence[Activation]) -> Activation:
        if len(tensors) == 1:
            return tensors[0]
        return node.write(Concat(axis), *tensors, step=step)

    def attached(tensor: Activation, constant: Array, first: bool) -> Activation:
        op = Attach(np.asarray(constant, order="C"), axis, first)
        return node.write(op, tensor, step=step)

    made: Activation | Array | None = None
    for constant, run in groupby(parts, key=lambda part: isinstance(part, np.ndarray)):
        items = list(run)
        if constant:
            array = np.concatenate([item for item in items if isinstance(item, np.ndarray)], axis)
            made = attached(made, array, False) if isinstance(made, Activation) else array
            continue
        tensor = together([item for item in items if isinstance(item, Activation)])
        if isinstance(made, np.ndarray):
            made = attached(tensor, made, True)
        else:
            made = tensor if made is None else together([made, tensor])
    if not isinstance(made, Activation):
        raise node.unsupported("all its parts are constant", "fold constants when exporting")
    return made


def _concat(node: NodeReader) -> Value:
    values = [node.value(index) for index in range(len(node.inputs))]
    axis = node.integer("axis")
    tensors = [value for value in values if isinstance(value, Quantized)]
    if len(tensors) == len(values):
        if len({value.dtype for value in tensors}) != 1:
            raise node.unsupported("parts of int8 and uint8", "quantize all parts alike")
        axis, _ = _joined(node, [item.activation.shape for item in tensors], axis)
        parts = [value.activation for value in tensors]
        return Quantized(_written(node, parts, axis, None), tensors[0].dtype)
    quantized = [
        value
        for value in values
        if isinstance(value, View) or (isinstance(value, Constant) and value.scale is not None)
    ]

    views = [view for value in values if (view := integers_of(value)) is not None]
    if len(views) == len(values) and len({view.step for view in views}) == 1:
        axis, _ = _joined(node, [view.shape for view in views], axis)
        joined = _written(node, [view.activation for view in views], axis, views[0].step)
        return in_reals(node, replace(views[0], activation=joined))

    def real() -> Activation:
        reals = [
            value.real.astype("float32") if isinstance(value, Constant) else node.realised(value)
            for value in values
        ]
        return _written(node, reals, _joined(node, [part.shape for part in reals], axis)[0], None)

    if len(quantized) == len(values) and any(isinstance(value, View) for value in values):
        waiting = concat(node, quantized, axis)
        return replace(waiting, real=lambda bound, _: limited(node, real(), bound))
    return Real(real())


# ------------------------------------------------------------------------------ paddings


def _pad(node: NodeReader) -> Value:
    tensor = tensor_of(node, 0)
    source = tensor.activation.shape
    widths = forms.padded(node, source)
    mode = node.text("mode", "constant")
    if mode in ("reflect", "edge", "wrap"):
        node.ignore("value", inputs=(2,))
        return _mirrored(node, tensor, widths, mode)
    if mode != "constant":
        raise node.unsupported(f"a padding in mode '{mode}'", "constant, reflect, edge or wrap")
    fill, wide = _fill(node), integers_of(tensor)
    if wide is not None and fill == 0:
        zeros = PadAxes(wide.step.zero_point, widths)
        made = node.write(zeros, wide.activation, step=wide.step)
        return in_reals(node, replace(wide, activation=made))
    if isinstance(tensor, Real):
        padded = moved(node, tensor, PadAxes(0, widths))
        return padded if fill == 0 else _filled(node, padded, source, widths, fill)
    number = int(fill)
    if isinstance(tensor, View):
        ratio = float(np.rint(in_steps(np.float32(fill), tensor.step, node.reader.rounding)))
        number = int(min(max(ratio + tensor.step.zero_point, -128), 127))
    elif isinstance(tensor, Quantized) and tensor.dtype == "uint8":
        number -= 128
    op = PadAxes(number, widths)
    return moved(node, tensor, _as_tflite(op) if node.reader.rounding == "tflite" else op)


def _as_tflite(op: PadAxes) -> PadAxes | Pad:
    """Return a padding of maps as the layer that the reader of TFLite files makes of it."""
    for layout, first in (("NHWC", 1), ("NCHW", 2)):
        rest = [*op.widths[:first], *op.widths[first + 2 :]]
        if len(op.widths) == 4 and not any(map(any, rest)):
            (top, bottom), (left, right) = op.widths[first : first + 2]
            return Pad(op.value, (top, left, bottom, right), layout)
    return op


def _fill(node: NodeReader) -> float:
    if "value" in node.attributes:
        fill = node.number("value", 0.0)
    else:
        constant = node.value(2) if node.input(2) else None
        if constant is not None and not isinstance(constant, Constant):
            raise node.unsupported("its value is computed at run time", "make it constant")
        if constant is not None and constant.data.size != 1:
            raise node.damaged(f"a padding with {constant.data.size} numbers")
        fill = float(constant.real.reshape(-1)[0]) if constant is not None else 0.0
    if not math.isfinite(fill):
        raise node.unsupported(f"a padding with {fill}", "pad with a number")
    return fill


def _filled(
    node: NodeReader,
    padded: Tensor,
    source: tuple[int, ...],
    widths: Sequence[tuple[int, int]],
    fill: float,
) -> Real:
    """Return a tensor padded with zeros, with another number there; adding 0 is exact."""
    shape = padded.activation.shape
    node.reader.graph.budget.spend("folded_elements", math.prod(shape), node.where)
    border = np.pad(np.zeros(source, "float32"), widths, constant_values=np.float32(fill))
    return Real(node.combine("add", padded.activation, border))


def _mirrored(
    node: NodeReader,
    tensor: Tensor,
    widths: Sequence[tuple[int, int]],
    mode: str,
) -> Tensor:
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        size = tensor.activation.shape[axis]
        if mode == "reflect" and max(width) >= size:
            raise node.unsupported(f"a reflection of {max(width)} of {size} elements")
        node.reader.graph.budget.spend_places(size + sum(width), node.where)
        places = np.pad(np.arange(size), width, mode=mode)
        tensor = moved(node, tensor, Take(axis, tuple(int(place) for place in places)))
    return tensor


HANDLERS: dict[str, Handler] = {
    **{name: partial(_reshaped, form=form) for name, form in forms.RESHAPES.items()},
    "Cast": _cast,
    "Concat": _concat,
    "Dropout": _dropout,
    "Identity": lambda node: node.value(0),
    "Pad": _pad,
    "Slice": lambda node: _moved(node, forms.sliced(node, node.value(0).shape)),
    "Transpose": _transpose,
}
"""Handlers by operator."""
