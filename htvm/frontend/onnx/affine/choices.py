"""Where along an axis the largest element is, and choices between tensors."""

from __future__ import annotations

from functools import partial

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, split
from htvm.frontend.onnx.affine.shapes import in_shape, moved, tensor_of
from htvm.frontend.onnx.affine.values import Constant, Real, Sums, Value
from htvm.frontend.operators import Activation
from patterns.ops.broadcast import broadcast
from patterns.ops.float32.reduce import RealArgExtreme
from patterns.ops.integer.extreme import ArgExtreme, Which
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.select import Select
from patterns.ops.moves.slice import Slice


def _place(node: NodeReader, which: Which) -> Value:
    """The place along an axis, which the file has as int64 and the integer form as int32."""
    tensor = tensor_of(node, 0)
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
        backwards = range(length - 1, -1, -1)
        tensor = moved(node, tensor, Slice.along(shape, axis, backwards))
    if kept:
        # The axis that remains is put behind the one that goes.
        tensor = in_shape(node, tensor, (*before, length, 1, *after))
    source = tensor.activation
    op = RealArgExtreme(which, axis) if isinstance(tensor, Real) else ArgExtreme(which, axis)
    made = node.write(op, source)
    if last:
        one, end = np.full((), -1, "int32"), np.full((), length - 1, "int32")
        back = Rescale(one, end, 0, (0, length - 1), "int32", bound=length)
        made = node.write(back, made)
    return Sums(made, "int64")


def _where(node: NodeReader) -> Value:
    """Elements of one tensor or another in reals, by a constant condition."""
    condition = node.value(0)
    if not isinstance(condition, Constant):
        raise node.unsupported(
            "its condition is computed at run time", "make it constant, or multiply by a mask"
        )
    mask = np.asarray(condition.data != 0)
    operands = [node.operand(index, infinite=True) for index in (1, 2)]
    shape = broadcast(mask.shape, *(item.shape for item in operands))
    tensors, (a, b) = split(operands)
    if not tensors:
        raise node.unsupported("both operands are constant", "fold constants when exporting")
    for chosen, index in ((mask.all(), 0), (not mask.any(), 1)):
        operand = operands[index]
        if chosen and isinstance(operand, Activation) and operand.shape == shape:
            return node.value(index + 1)
    made = Select(np.asarray(mask.astype("int8"), order="C"), a, b)
    return Real(node.write(made, *tensors))


HANDLERS: dict[str, Handler] = {
    "ArgMax": partial(_place, which="maximum"),
    "ArgMin": partial(_place, which="minimum"),
    "Where": _where,
}
"""Handlers by operator."""
