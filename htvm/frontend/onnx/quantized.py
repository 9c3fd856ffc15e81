"""Networks with scales: QOperator, and QDQ, as quantizers write them.

Operators of QOperator take integers, scales and zero points (QLinearConv and its kin).  Those of
QDQ are float operators between DequantizeLinear and QuantizeLinear.  Their meaning is integer
arithmetic, as onnxruntime runs it after fusing the three: its requantization, with rectifiers
folded into saturation.  Values that are not quantized again stay reals
(`htvm.frontend.onnx.affine.islands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine import (
    gemm,
    islands,
    moves,
    pointwise,
    pools,
    quantization,
    real_layers,
    shapes,
    transposed,
    unary,
)
from htvm.frontend.onnx.affine.functions import FUNCTIONS
from htvm.frontend.onnx.affine.products import Weight, filtered, matrix_product, weight_of
from htvm.frontend.onnx.affine.quantization import constant_of, step_of
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, Reader, offset_of
from htvm.frontend.onnx.affine.unary import mapped
from htvm.frontend.onnx.affine.values import Constant, Pending, Quantized, Real, Sums, Value, View
from htvm.frontend.onnx.dialect import DialectReader
from htvm.frontend.onnx.windows import windows_of
from htvm.frontend.scales import folded_bias, padded
from patterns.ops.convolution import Conv2dSums
from patterns.ops.dense import LinearSums

if TYPE_CHECKING:
    from htvm.frontend.onnx.dialect import Options
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode


# ------------------------------------------------------------------------------ operands


def _view(node: NodeReader, index: int) -> View:
    """Return an 8-bit tensor (input ``index``), its scale and zero point (the next inputs)."""
    value = node.value(index)
    if not isinstance(value, Quantized):
        raise node.unsupported(
            f"input {index} is no 8-bit tensor", "quantize it with QuantizeLinear before"
        )
    return quantization.view_of(node, value, index + 1)


def _operand(node: NodeReader, index: int) -> pointwise.Operand:
    if isinstance(node.value(index), Constant):
        return pointwise.quantized_constant(node, constant_of(node, index))
    return _view(node, index)


def _finished(node: NodeReader, value: Pending | Real, index: int) -> Quantized:
    """Return the result, quantized as inputs ``index`` and the next one specify."""
    return quantization.quantized(node, value, *step_of(node, index))


def _plain_bias(node: NodeReader, index: int, view: View, weight: Weight) -> Constant | None:
    """Return an int32 bias in steps of s_in * s_w."""
    data = node.optional(index, "bias")
    if data is None:
        return None
    if data.dtype != np.int32:
        raise node.damaged(f"a bias of type {data.dtype}", "int32, in steps of s_in * s_w")
    scale = np.asarray(np.float32(view.step.scale) * weight.scale, "float32")
    return Constant(data, scale, np.zeros(1, "int64"))


# ------------------------------------------------------------------------------ products


def _conv(node: NodeReader) -> Value:
    view, constant = _view(node, 0), constant_of(node, 3, 0)
    bias = _plain_bias(node, 8, view, weight_of(node, constant, 0))
    return _finished(node, filtered(node, view, constant, bias), 6)


def _matmul(node: NodeReader) -> Value:
    view = _view(node, 0)
    if isinstance(node.value(3), Quantized):
        pending = islands.integer_product(node, view, _view(node, 3))
        return _finished(node, pending, 6)
    constant = constant_of(node, 3, -1)
    if constant.data.ndim != 2:
        raise node.unsupported(
            f"weights of shape {list(constant.data.shape)}", "a constant matrix is supported"
        )
    pending = matrix_product(node, view, weight_of(node, constant, 1), None)
    return _finished(node, pending, 6)


def _gemm(node: NodeReader) -> Value:
    channels = 0 if node.integer("transB", 0) else 1
    constant = constant_of(node, 3, channels)
    if node.number("alpha", 1.0) <= 0:
        raise node.unsupported(f"an alpha of {node.number('alpha')}", "a positive one")
    view = gemm.first_matrix(node, _view(node, 0))
    bias = _plain_bias(node, 6, view, weight_of(node, constant, channels))
    product = gemm.weighted(node, view, constant, channels, bias)
    if node.input(7):
        return _finished(node, product, 7)
    return Real(node.realised(product))


# ------------------------------------------------------------------------------ integers


def _centred(node: NodeReader, index: int, zero_index: int) -> tuple[Quantized, int]:
    """Return an 8-bit tensor and the int8 zero point of ConvInteger and MatMulInteger."""
    value = node.value(index)
    if not isinstance(value, Quantized):
        raise node.unsupported(f"input {index} is no 8-bit tensor that is computed")
    zeros = node.optional(zero_index, "zero point")
    zero = 0 if zeros is None else int(zeros.reshape(-1)[0])
    if zeros is not None and zeros.size != 1:
        raise node.unsupported("an activation with several zero points")
    return value, zero - offset_of(value.dtype)


def _integer_weight(node: NodeReader, axis: int) -> Weight:
    data = node.array(1, "weights")
    zeros = node.optional(3, "zero point")
    zeros = np.zeros(1, data.dtype) if zeros is None else zeros.reshape(-1)
    scale = np.ones(zeros.size, "float32")
    return weight_of(node, quantization.dequantized(node, data, scale, zeros, axis), axis)


def _bias_of(weight: Weight, zero: int) -> Array:
    none = np.zeros(len(weight.data), "int32")
    return folded_bias(weight.data, none, zero).astype("int32")


def _conv_integer(node: NodeReader) -> Value:
    value, zero = _centred(node, 0, 2)
    source, weight = value.activation, _integer_weight(node, 0)
    windows = windows_of(node, source.shape[2:], weight.data.shape[2:])
    groups = node.integer("group", 1)
    if source.shape[1] != weight.data.shape[1] * groups or source.shape[0] != 1:
        raise node.damaged(f"{list(source.shape)} with weights {list(weight.data.shape)}")
    window = windows.filter(groups)
    source, window = padded(source, window, zero, lambda _: node.reader.position(), node.where)
    op = Conv2dSums(weight.data, _bias_of(weight, zero), window)
    return Sums(node.write(op, source))


def _matmul_integer(node: NodeReader) -> Value:
    value, zero = _centred(node, 0, 2)
    weight = _integer_weight(node, 1)
    source = value.activation
    if len(source.shape) != 2 or source.shape[1] != weight.data.shape[1]:
        raise node.unsupported(
            f"a product of {list(source.shape)} and {list(weight.data.shape[::-1])}",
            "two matrices, the second constant",
        )
    op = LinearSums(weight.data, _bias_of(weight, zero))
    return Sums(node.write(op, source))


# ------------------------------------------------------------------------------ the rest


def _binary(function: Any) -> Handler:
    def handler(node: NodeReader) -> Value:
        a, b = _operand(node, 0), _operand(node, 3)
        if not isinstance(a, View) and not isinstance(b, View):
            raise node.unsupported("both operands are constant", "fold constants when exporting")
        _, kernel = step_of(node, 6)
        pending = pointwise.binary(node, function, a, b, kernel=kernel)
        return _finished(node, pending, 6)

    return handler


def _concat(node: NodeReader) -> Value:
    count = (len(node.inputs) - 2) // 3
    if count < 1 or len(node.inputs) != 2 + 3 * count:
        raise node.damaged(f"{len(node.inputs)} inputs", "two, and three for each part")
    parts = [
        constant_of(node, index) if isinstance(node.value(index), Constant) else _view(node, index)
        for index in range(2, len(node.inputs), 3)
    ]
    pending = shapes.concat(node, parts, node.integer("axis"))
    return _finished(node, pending, 0)


def _first_channels(node: OnnxNode) -> None:
    if node.integer("channels_last", 0):
        raise node.unsupported("channels_last", "channels first (NCHW)")


def _global_average(node: NodeReader) -> Value:
    _first_channels(node)
    view = _view(node, 0)
    pending = pools.average(node, view, pools.global_windows(node, view))
    return _finished(node, pending, 3)


def _average(node: NodeReader) -> Value:
    _first_channels(node)
    pending = pools.fused_average(node, _view(node, 0))
    return _finished(node, pending, 3)


def _unary(op: str) -> Handler:
    def handler(node: NodeReader) -> Value:
        view, (step, dtype) = _view(node, 0), step_of(node, 3)
        return Quantized(mapped(node, view, step, FUNCTIONS[op].function(node)), dtype)

    return handler


def _softmax(node: NodeReader) -> Value:
    view, old = _view(node, 0), node.integer("opset", 13) < 13
    axis = node.integer("axis", 1 if old else -1)
    if old and axis % len(view.shape) != len(view.shape) - 1:
        raise node.unsupported(f"a softmax over axis {axis} and those after it", "the last")
    pending = pointwise.softmax(node, view, axis)
    return _finished(node, pending, 3)


OWN: Mapping[str, Handler] = {
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QGemm": _gemm,
    "QLinearAdd": _binary("add"),
    "QLinearAveragePool": _average,
    "QLinearConcat": _concat,
    "QLinearConv": _conv,
    "QLinearGlobalAveragePool": _global_average,
    "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearMatMul": _matmul,
    "QLinearMul": _binary("multiply"),
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _softmax,
}
"""Operators that only this dialect has."""

COMMON: Mapping[str, Handler] = {
    **pools.HANDLERS,
    **quantization.HANDLERS,
    **shapes.HANDLERS,
    **moves.HANDLERS,
    **unary.HANDLERS,
    **islands.HANDLERS,
    **real_layers.PARTS,
    **transposed.HANDLERS,
}
"""Operators that may stand between DequantizeLinear and QuantizeLinear, as in QDQ."""

_QOPERATOR_HANDLERS = {**COMMON, **OWN}

QOPERATOR = DialectReader(
    _QOPERATOR_HANDLERS,
    marks=lambda graph, _: tuple(node for node in graph.nodes if node.op in OWN),
    read=lambda graph, _: Reader(graph, _QOPERATOR_HANDLERS).read(),
)
"""Recognised by operators that take integers and scales."""


# ------------------------------------------------------------------------------ QDQ


def bias_of(node: NodeReader, index: int) -> Constant | None:
    """Return an optional input that must be constant."""
    if not node.input(index):
        return None
    value = node.value(index)
    if not isinstance(value, Constant):
        raise node.unsupported("its bias is computed at run time", "make it constant")
    return value


def weights_of(node: NodeReader, index: int) -> Constant:
    """Return an input that must be constant."""
    value = node.value(index)
    if not isinstance(value, Constant):
        raise node.unsupported(
            "both operands are computed at run time",
            "one of them must be a dequantized constant",
        )
    return value


def _qdq_conv(node: NodeReader) -> Value:
    view, weights = node.view(0, "input"), weights_of(node, 1)
    return filtered(node, view, weights, bias_of(node, 2))


def _qdq_matmul(node: NodeReader) -> Value:
    view, constant = node.in_integers(0), node.value(1)
    weights = isinstance(constant, Constant) and constant.scale is not None
    if not isinstance(view, View) or not weights:
        return islands.product(node)
    assert isinstance(constant, Constant)
    if constant.data.ndim != 2 or _has_blocks(constant):
        return islands.product(node)
    return matrix_product(node, view, weight_of(node, constant, 1), None)


def _has_blocks(constant: Constant) -> bool:
    """Whether parts of a sum of products have scales of their own, so that only reals are exact."""
    return constant.blocks and bool(constant.spread)


def _qdq_marks(graph: OnnxGraph, _: Options) -> tuple[OnnxNode, ...]:
    """Return QuantizeLinear and DequantizeLinear, in a file without quantized operators."""
    if any(node.op in OWN for node in graph.nodes):
        return ()
    return tuple(node for node in graph.nodes if node.op in quantization.HANDLERS)


QDQ_HANDLERS: Mapping[str, Handler] = {
    **COMMON,
    "Conv": _qdq_conv,
    "Gemm": gemm.gemm,
    "MatMul": _qdq_matmul,
}

QDQ = DialectReader(QDQ_HANDLERS, _qdq_marks, lambda graph, _: Reader(graph, QDQ_HANDLERS).read())
"""Recognised by QuantizeLinear and DequantizeLinear."""
