"""Operators that move elements: scale and zero point stay the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, Reader, offset_of
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
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.transpose import Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op
    from patterns.ops.moves.base import Move

__all__ = [
    "HANDLERS",
    "Movable",
    "Tensor",
    "in_shape",
    "movable_of",
    "move",
    "moved",
    "pending_move",
    "pending_reshape",
    "reshape",
    "tensor_of",
]

Tensor: TypeAlias = Quantized | View | Real | Sums
"""A value that stands for a written tensor."""

Movable: TypeAlias = Tensor | Constant
"""The same, or a constant, whose moves are folded."""


def tensor_of(reader: Reader, node: OnnxNode, index: int) -> Tensor:
    """Return an input that is a tensor; a value pending quantization becomes a real."""
    value = reader.value(node, index)
    if isinstance(value, Constant):
        raise node.unsupported("its data are constant", "fold constants when exporting")
    if isinstance(value, Pending):
        return Real(reader.realised(value, node.where))
    return value


def movable_of(reader: Reader, node: OnnxNode, index: int) -> Movable:
    """Return the same, or a constant."""
    value = reader.value(node, index)
    return value if isinstance(value, Constant) else tensor_of(reader, node, index)


def _reshaped(reader: Reader, node: OnnxNode, shape: Sequence[int]) -> Value:
    wanted = tuple(int(size) for size in shape)
    value = reader.value(node, 0)
    if isinstance(value, Pending):
        return pending_reshape(reader, node, value, wanted)
    source = movable_of(reader, node, 0)
    if math.prod(source.shape) != math.prod(wanted):
        raise node.damaged(f"a reshape of {list(source.shape)} to {list(wanted)}")
    return reshape(reader, node, source, wanted)


def pending_reshape(
    reader: Reader, node: OnnxNode, pending: Pending, shape: tuple[int, ...]
) -> Pending:
    """Return a value pending quantization in another shape."""
    if math.prod(pending.shape) != math.prod(shape):
        raise node.damaged(f"a reshape of {list(pending.shape)} to {list(shape)}")
    return pending_move(reader, node, pending, Reshape(shape), shape)


def pending_move(
    reader: Reader, node: OnnxNode, pending: Pending, op: Op, shape: tuple[int, ...]
) -> Pending:
    """Return a value pending quantization after a move of its elements, or their maxima."""

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        made = pending.finish(step, clip, pending.bias)
        return reader.write(node, op, (made,), shape, step=step)

    make = pending.real
    if make is None:
        return Pending(shape, finish, bound=pending.bound)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        return reader.write(node, op, (make(bound, pending.bias),), shape, dtype="float32")

    return Pending(shape, finish, real_form, bound=pending.bound)


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


def _shape_of(reader: Reader, node: OnnxNode) -> tuple[int, ...]:
    return reader.value(node, 0).shape


def _reshape(reader: Reader, node: OnnxNode, form: forms.Reshaped) -> Value:
    return _reshaped(reader, node, form(node, _shape_of(reader, node), reader.given(node)))


def _transpose(reader: Reader, node: OnnxNode) -> Value:
    source = _shape_of(reader, node)
    axes, moves = forms.permuted(node, source)
    shape = tuple(source[axis] for axis in axes)
    return _moved(reader, node, Transpose(axes), shape) if moves else _reshaped(reader, node, shape)


def _moved(reader: Reader, node: OnnxNode, op: Move, shape: tuple[int, ...]) -> Value:
    value = reader.value(node, 0)
    if isinstance(value, Pending):
        return pending_move(reader, node, value, op, shape)
    return move(reader, node, movable_of(reader, node, 0), op, shape)


def move(
    reader: Reader, node: OnnxNode, value: Movable, op: Move, shape: tuple[int, ...]
) -> Movable:
    """Return a tensor or a constant of the same kind after a move of its elements.

    Raises:
        UnsupportedError: a constant would become too large.
    """
    if isinstance(value, Constant):
        reader.graph.budget.spend("folded_elements", math.prod(shape), node.where)
        return _folded(node, value, lambda part: op.moved([part], 0))
    return moved(reader, node, value, op, shape)


def reshape(reader: Reader, node: OnnxNode, value: Movable, shape: tuple[int, ...]) -> Movable:
    """Return a tensor or a constant of the same kind with the same elements in another shape."""
    if isinstance(value, Constant):
        node.check_axes(shape)
        return _folded(node, value, lambda part: part.reshape(shape))
    return in_shape(reader, node, value, shape)


def moved(reader: Reader, node: OnnxNode, tensor: Tensor, op: Op, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of the same kind after a move of its elements."""
    source = tensor.activation
    step = reader.steps.get(source)
    made = reader.write(node, op, (source,), shape, dtype=source.dtype, step=step)
    return replace(tensor, activation=made)


def in_shape(reader: Reader, node: OnnxNode, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of the same kind with the same elements in another shape."""
    if tensor.activation.shape == shape:
        return tensor
    return moved(reader, node, tensor, Reshape(shape), shape)


def _slice(reader: Reader, node: OnnxNode) -> Value:
    op = forms.sliced(node, _shape_of(reader, node), reader.given(node))
    return _moved(reader, node, op, op.sizes)


def _identity(reader: Reader, node: OnnxNode) -> Value:
    return reader.value(node, 0)


def _dropout(reader: Reader, node: OnnxNode) -> Value:
    node.ignore("ratio", "seed", inputs=(1,))
    if node.input(2) and reader.array(node, 2, "training mode").any():
        raise node.unsupported("a Dropout in training mode", "export the network for inference")
    return reader.value(node, 0)


def _cast(reader: Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
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
        return Sums(reader.write(node, op, (source,), source.shape, dtype="int32"), wide)
    if not isinstance(value, Sums) or node.integer("to") != 1:
        raise node.unsupported(
            "a cast other than of reals to float32, of integers to int32 or int64, or of int32 "
            "sums and places to float32"
        )
    from htvm.frontend.onnx.affine.quantization import real_of_sums

    one = np.ones(1, "float32")
    return Real(real_of_sums(reader, node, value.activation, one, 0))


_WIDE = {6: "int32", 7: "int64"}
"""Types that hold int32, by their number in the standard."""

HANDLERS: dict[str, Handler] = {
    **{name: partial(_reshape, form=form) for name, form in forms.RESHAPES.items()},
    "Cast": _cast,
    "Dropout": _dropout,
    "Identity": _identity,
    "Slice": _slice,
    "Transpose": _transpose,
}
"""Handlers by operator."""
