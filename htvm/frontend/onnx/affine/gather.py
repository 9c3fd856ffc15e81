"""Gather with indices that are computed or inputs, as of embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.pointwise import quantized_constant
from htvm.frontend.onnx.affine.reader import Reader, offset_of
from htvm.frontend.onnx.affine.shapes import tensor_of
from htvm.frontend.onnx.affine.values import Constant, Quantized, Real, Sums, Value, View
from htvm.frontend.operators import Activation
from patterns.ops.moves.gather import Gather

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["gathered"]


def gathered(reader: Reader, node: OnnxNode, places: Activation) -> Value:
    """Return the elements of a tensor, or of a constant table, at int32 places.

    Raises:
        UnsupportedError: a table holds integers beyond int32.
    """
    value = reader.value(node, 0)
    if isinstance(value, Constant):
        return _looked_up(reader, node, value, places)
    tensor = tensor_of(reader, node, 0)
    source, step = tensor.activation, reader.steps.get(tensor.activation)
    axis = forms.axis_of(node, node.integer("axis", 0), len(source.shape))
    shape = (*source.shape[:axis], *places.shape, *source.shape[axis + 1 :])
    op = Gather(axis, tensor.step.zero_point if isinstance(tensor, View) else 0)
    made = reader.write(node, op, (source, places), shape, dtype=source.dtype, step=step)
    return replace(tensor, activation=made)


def _looked_up(reader: Reader, node: OnnxNode, constant: Constant, places: Activation) -> Value:
    source = constant.data.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(source))
    if not constant.data.size:
        raise node.unsupported(f"a table of shape {list(source)}", "one with elements")
    shape = (*source[:axis], *places.shape, *source[axis + 1 :])

    def written(table: Array, zero_point: int = 0) -> Activation:
        op = Gather(axis, zero_point, np.asarray(table, order="C"))
        return reader.write(node, op, (places,), shape, dtype=table.dtype.name)

    dtype, scale = constant.data.dtype, constant.scale
    if scale is not None and scale.size == 1 and dtype.name in ("int8", "uint8"):
        table, step = quantized_constant(node, constant)
        made = written(table, step.zero_point)
        reader.steps[made] = step
        return View(made, step, dtype.name)
    if scale is None and dtype.name in ("int8", "uint8"):
        moved = constant.data.astype("int64") - offset_of(dtype.name)
        return Quantized(written(moved.astype("int8")), dtype.name)
    if scale is None and dtype.name in ("int16", "int32", "int64"):
        narrow = constant.data.astype("int32")
        if (narrow != constant.data).any():
            raise node.unsupported("a table of integers beyond int32")
        return Sums(written(narrow), dtype.name)
    return Real(written(constant.real.astype("float32")))
