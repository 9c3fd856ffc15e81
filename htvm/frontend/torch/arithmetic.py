"""What is read otherwise than in ONNX files: layers in reals, and means of whole axes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine import gemm, real_layers
from htvm.frontend.onnx.affine.quantization import real_of_sums
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.values import Constant, Real, Value, View
from htvm.frontend.onnx.quantized import QDQ_HANDLERS
from patterns.ops.integer.reduction import Total
from patterns.ops.integer.rescale import Rescale


def _is_quantized(node: NodeReader) -> bool:
    """Whether a layer's input and weights are; quantizers leave some layers in reals."""
    values = node.value(0), node.value(1)
    return isinstance(values[0], View) and not (
        isinstance(values[1], Constant) and values[1].scale is None
    )


def _conv(node: NodeReader) -> Value | list[Value]:
    return (QDQ_HANDLERS if _is_quantized(node) else real_layers.HANDLERS)["Conv"](node)


def _gemm(node: NodeReader) -> Value | list[Value]:
    return QDQ_HANDLERS["Gemm"](node) if _is_quantized(node) else gemm.real_gemm(node)


def _mean(node: NodeReader) -> Value | list[Value]:
    """Return the mean of a tensor, whose integers are summed exactly.

    torch sums reals in an order of its own, with an error far below that of one sum after the
    other.
    """
    view, rank = node.value(0), len(node.value(0).shape)
    axes = sorted({forms.axis_of(node, axis, rank) for axis in forms.axes_of(node, 1) or ()})
    if not isinstance(view, View) or not axes or (rank == 4 and axes == [2, 3]):
        return QDQ_HANDLERS["ReduceMean"](node)
    total = Total(tuple(axes), bool(node.integer("keepdims", 1)))
    centred = Rescale.moving(-view.step.zero_point, (-255, 255), "int16")
    sums = node.write(total, node.write(centred, view.activation))
    real = real_of_sums(node, sums, np.asarray([view.step.scale], "float32"), 0)
    count = math.prod(view.shape[axis] for axis in axes)
    return Real(node.combine("divide", real, float(count)))


HANDLERS: Mapping[str, Handler] = {
    **QDQ_HANDLERS,
    "Conv": _conv,
    "Gemm": _gemm,
    "ReduceMean": _mean,
}
"""Handlers by operator of ONNX."""
