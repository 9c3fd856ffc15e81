"""Operators that move elements: scale and zero point stay the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
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
from patterns.op import TensorType
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.transpose import Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op
    from patterns.ops.moves.base import Move

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
        return Pending(shape, finish, bound=pending.bound)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        return node.write(op, make(bound, pending.bias))

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
    source = tensor.activation
    return replace(tensor, activation=node.write(op, source, step=node.reader.steps.get(source)))


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
    from htvm.frontend.onnx.affine.quantization import real_of_sums

    one = np.ones(1, "float32")
    return Real(real_of_sums(node, value.activation, one, 0))


_WIDE = {6: "int32", 7: "int64"}
"""Types that hold int32, by their number in the standard."""

HANDLERS: dict[str, Handler] = {
    **{name: partial(_reshaped, form=form) for name, form in forms.RESHAPES.items()},
    "Cast": _cast,
    "Dropout": _dropout,
    "Identity": lambda node: node.value(0),
    "Slice": lambda node: _moved(node, forms.sliced(node, node.value(0).shape)),
    "Transpose": _transpose,
}
"""Handlers by operator."""
