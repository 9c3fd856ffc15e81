"""What is read otherwise than in ONNX files: layers in reals, and averages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine import gemm, islands, real_layers
from htvm.frontend.onnx.affine.quantization import real_of_sums
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import Bound, Constant, Pending, Real, Value, View
from htvm.frontend.onnx.quantized import QDQ_HANDLERS
from htvm.frontend.operators import Activation
from patterns.ops.integer.reduction import Total
from patterns.ops.integer.rescale import Rescale
from patterns.ops.torch.total import torch_total


def _is_quantized(node: NodeReader) -> bool:
    """Whether a layer's input and weights are; quantizers leave some layers in reals."""
    values = node.in_integers(0), node.value(1)
    return isinstance(values[0], View) and not (
        isinstance(values[1], Constant) and values[1].scale is None
    )


def _layer(node: NodeReader, real: Handler) -> Value | list[Value]:
    """Return a layer with weights, given the handler of the one of reals.

    What int16 tensors make is computed in reals, as torch does, unless it is quantized to int16.
    """
    if not _is_quantized(node):
        return real(node)
    made = QDQ_HANDLERS[node.op](node)
    if not isinstance(made, Pending) or made.dtype != "int16":
        return made

    def real_form(bound: Bound, added: Constant | None) -> Activation:
        value = real(node)
        assert not isinstance(value, list)
        result = node.realised(value)
        if added is not None and added is not made.bias:
            result = node.combine("add", result, added.real.astype("float32"))
        return limited(node, result, bound)

    return replace(made, real=real_form)


def _mean(node: NodeReader, strides: Mapping[str, tuple[int, ...]]) -> Value | list[Value]:
    """Return the mean of a tensor.

    With a scale that is a power of two, sums of reals of 24 bits are exact in any order, and so are
    those of the integers.  Else float32 is as torch's kernel adds it, where that is known, because
    its errors decide how ties are rounded.
    """
    view = node.in_integers(0)
    rank = len(view.shape)
    pools = node.op == "GlobalAveragePool"
    given = range(2, rank) if pools else forms.axes_of(node, 1) or ()
    axes = sorted({forms.axis_of(node, axis, rank) for axis in given})
    if not isinstance(view, View) or not axes:
        return QDQ_HANDLERS[node.op](node)
    scale, zero = view.step.scale, view.step.zero_point
    count = math.prod(view.shape[axis] for axis in axes)
    span = (1 << (16 if view.dtype == "int16" else 8)) - 1
    exact = math.frexp(scale)[0] == 0.5 and span * count <= 1 << 24
    total = None if exact else torch_total(view.shape, strides[node.outputs[0]], axes, scale, zero)
    kept = pools or bool(node.integer("keepdims", 1))
    shape = tuple(
        1 if axis in axes else size
        for axis, size in enumerate(view.shape)
        if kept or axis not in axes
    )
    if total is not None:
        sums = node.write(total, view.activation)
        return Real(node.reshape(node.combine("divide", sums, float(count)), shape))
    if view.dtype == "int16" or (rank == 4 and axes == [2, 3]):
        return QDQ_HANDLERS[node.op](node)
    centred = node.write(Rescale.moving(-zero, (-255, 255), "int16"), view.activation)
    sums = node.write(Total(tuple(axes), kept), centred)
    real = real_of_sums(node, sums, np.asarray([scale], "float32"), 0)
    return Real(node.combine("divide", real, float(count)))


def handlers(strides: Mapping[str, tuple[int, ...]]) -> Mapping[str, Handler]:
    """Return handlers by operator of ONNX.

    Args:
        strides: of the tensors, in torch's memory, of which means are taken, by the mean's name.
    """
    mean = partial(_mean, strides=strides)
    return {
        **QDQ_HANDLERS,
        "AveragePool": real_layers.average,
        "Conv": partial(_layer, real=real_layers.HANDLERS["Conv"]),
        "Gemm": partial(_layer, real=gemm.real_gemm),
        "MatMul": partial(_layer, real=islands.product),
        "GlobalAveragePool": mean,
        "ReduceMean": mean,
    }
