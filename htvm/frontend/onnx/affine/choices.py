"""Where along an axis the largest element is, and choices between tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.pointwise import split
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.real_layers import operand
from htvm.frontend.onnx.affine.shapes import Tensor, in_shape, moved, tensor_of
from htvm.frontend.onnx.affine.values import Constant, Real, Sums, Value
from htvm.frontend.operators import Activation
from patterns.ops.float32.place import RealArgExtreme
from patterns.ops.integer.extreme import ArgExtreme, Which
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.select import Select
from patterns.ops.moves.slice import Slice

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS"]


def _place(reader: Reader, node: OnnxNode, which: Which) -> Value:
    """The place along an axis, which the file has as int64 and the integer form as int32."""
    tensor = tensor_of(reader, node, 0)
    if isinstance(tensor, Sums):
        raise node.unsupported(
            f"places among sums of {tensor.activation.dtype}", "quantize them before"
        )
    shape = tensor.activation.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(shape))
    before, length, after = shape[:axis], shape[axis], shape[axis + 1 :]
    kept = bool(node.integer("keepdims", 1))
    if not kept and len(shape) == 1:
        raise node.unsupported("a single place without axes", "set keepdims")
    last = bool(node.integer("select_last_index", 0))
    if last:
        tensor = _reversed(reader, node, tensor, axis)
    if kept:
        # The axis that remains is put behind the one that goes.
        tensor = in_shape(reader, node, tensor, (*before, length, 1, *after))
    source = tensor.activation
    op = RealArgExtreme(which, axis) if isinstance(tensor, Real) else ArgExtreme(which, axis)
    out = (*before, 1, *after) if kept else (*before, *after)
    made = reader.write(node, op, (source,), out, dtype="int32")
    if last:
        one, end = np.full((), -1, "int32"), np.full((), length - 1, "int32")
        back = Rescale(one, end, 0, (0, length - 1), "int32", bound=length)
        made = reader.write(node, back, (made,), out, dtype="int32")
    return Sums(made, "int64")


def _reversed(reader: Reader, node: OnnxNode, tensor: Tensor, axis: int) -> Tensor:
    shape = tensor.activation.shape
    begin, strides = [0] * len(shape), [1] * len(shape)
    begin[axis], strides[axis] = shape[axis] - 1, -1
    return moved(reader, node, tensor, Slice(tuple(begin), shape, tuple(strides)), shape)


def _where(reader: Reader, node: OnnxNode) -> Value:
    """Elements of one tensor or another in reals, by a constant condition."""
    condition = reader.value(node, 0)
    if not isinstance(condition, Constant):
        raise node.unsupported(
            "its condition is computed at run time", "make it constant, or multiply by a mask"
        )
    mask = np.asarray(condition.data != 0)
    operands = [operand(reader, node, index, infinite=True) for index in (1, 2)]
    shapes = [tuple(item.shape) for item in operands]
    try:
        shape = tuple(int(n) for n in np.broadcast_shapes(mask.shape, *shapes))
    except ValueError:
        raise node.damaged(f"a choice by {list(mask.shape)} between {shapes}") from None
    tensors, (a, b) = split(operands)
    if not tensors:
        raise node.unsupported("both operands are constant", "fold constants when exporting")
    for chosen, index in ((mask.all(), 0), (not mask.any(), 1)):
        if chosen and isinstance(operands[index], Activation) and shapes[index] == shape:
            return reader.value(node, index + 1)
    made = Select(np.asarray(mask.astype("int8"), order="C"), a, b)
    return Real(reader.write(node, made, tensors, shape, dtype="float32"))


HANDLERS: dict[str, Handler] = {
    "ArgMax": partial(_place, which="maximum"),
    "ArgMin": partial(_place, which="minimum"),
    "Where": _where,
}
"""Handlers by operator."""
