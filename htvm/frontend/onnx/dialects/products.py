"""Convolutions and products of matrices, in integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, Products
from htvm.frontend.onnx.dialects.write import live, written
from htvm.frontend.onnx.windows import groups_of, windows_of
from htvm.frontend.operators import Activation
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.moves.transpose import Transpose

_INT32_MAX = 2**31 - 1

_NARROW = ("int8", "uint8")


def _weights(node: IntegerNode) -> Array:
    """Return input 1 as int8.  Eight-bit initialisers are two's complement, whatever their type.

    Raises:
        UnsupportedError: they are not constant, are not integers, or do not fit int8.
    """
    raw = node.constant(1)
    if raw is not None and raw.dtype == np.uint8:
        return raw.view(np.int8)
    values = node.integer_array(1)
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < -128 or high > 127:
        raise node.unsupported(
            f"weights '{node.input(1)}' from {low} to {high}", "weights are int8: -128 to 127"
        )
    return values.astype(np.int8)


def _source(node: IntegerNode) -> Live:
    source = live(node, 0)
    if source.activation.dtype not in _NARROW:
        raise node.unsupported(
            f"a layer on {source.activation.dtype}",
            "layers with weights read int8 or uint8; requantize before, or say what the model's "
            "input holds with input_types",
        )
    return source


def _bias(node: IntegerNode, index: int, channels: int) -> Array:
    if not node.input(index):
        return np.zeros(channels, np.int64)
    values = node.integer_array(index).reshape(-1)
    if values.size not in (1, channels):
        raise node.unsupported(f"{values.size} biases for {channels} output channels")
    return np.broadcast_to(values, channels).copy()


def _conv(node: IntegerNode) -> Products:
    source, weight = _source(node), _weights(node)
    shape = source.shape
    if len(shape) not in (3, 4) or weight.ndim != len(shape):
        raise node.unsupported(
            f"weights of shape {list(weight.shape)} on a tensor of shape {list(shape)}",
            "convolutions over one or two axes",
        )
    groups = groups_of(node, shape[1], weight.shape)
    windows = windows_of(node, shape[2:], weight.shape[2:], one_axis=True)
    bias = _bias(node, 2, weight.shape[0])
    result = (shape[0], weight.shape[0], *windows.outputs[-len(shape[2:]) :])
    if len(shape) == 3:  # one axis: a map of one row
        source = node.reshape(source, (*shape[:2], 1, shape[2]))
        weight = weight[:, :, None]
    return Products(node, source, weight, bias, windows.filter(groups), result)


def _linear(node: IntegerNode, source: Live, weight: Array, bias: Array) -> Products:
    shape = source.shape
    if shape[-1] != weight.shape[1]:
        raise node.damaged(
            f"a product of shapes {list(shape)} and {[weight.shape[1], weight.shape[0]]}"
        )
    rows = node.reshape(source, (int(np.prod(shape[:-1])), shape[-1]))
    return Products(node, rows, weight, bias, None, (*shape[:-1], weight.shape[0]))


def _gemm(node: IntegerNode) -> Live | Products:
    source, weight = _source(node), _weights(node)
    if node.integer("transA", 0) or len(source.shape) != 2 or weight.ndim != 2:
        raise node.unsupported("a transposed first operand", "transpose it before")
    if not node.integer("transB", 0):
        weight = np.asarray(weight.T, order="C")
    alpha, beta = node.int32("alpha", 1), node.int32("beta", 1)
    offset = node.integer_array(2) * beta if node.input(2) else np.zeros(1, np.int64)
    channels = weight.shape[0]
    result = (channels, source.shape[0])
    sizes = zip(offset.shape[::-1], result, strict=False)
    if offset.ndim > 2 or any(own not in (1, size) for own, size in sizes):
        raise node.damaged(f"a bias of shape {list(offset.shape)} for {list(result[::-1])}")
    zero = np.zeros(channels, np.int64)
    per_channel = offset.size == 1 or (offset.size == channels == offset.shape[-1])
    if alpha == 1 and per_channel:
        return _linear(node, source, weight, np.broadcast_to(offset.reshape(-1), channels))
    sums = written(_linear(node, source, weight, zero))
    if alpha != 1:
        factor = np.asarray([alpha])
        sums = node.combine("multiply", sums, factor)
    return node.combine("add", sums, offset)


def _matmul(node: IntegerNode) -> Live | Products:
    if node.constant(1) is not None:
        weight = _weights(node)
        if weight.ndim != 2:
            raise node.unsupported(
                f"constant matrices of shape {list(weight.shape)}", "one matrix of two axes"
            )
        matrix = np.asarray(weight.T, order="C")
        return _linear(node, _source(node), matrix, np.zeros(matrix.shape[0], np.int64))
    a, b = live(node, 0), live(node, 1)
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise node.damaged(f"a product of shapes {list(a.shape)} and {list(b.shape)}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise node.damaged(f"a product of shapes {list(a.shape)} and {list(b.shape)}") from None
    bound = min(a.bound * b.bound * a.shape[-1], 2**31)
    rows = _transposed(b)
    second = b if rows is None else Live(rows, b.bound)
    return node.apply(IntegerMatmul(rows is not None), a, second, bound=bound)


def _transposed(value: Live) -> Activation | None:
    """Return the matrices whose rows are the columns of ``value``, if that is how they were made.

    A product reads either, and needs no transposition.
    """
    origin = value.activation.origin
    if isinstance(origin, str) or not isinstance(origin.op, Transpose):
        return None
    rank = len(value.shape)
    return origin.inputs[0] if origin.op.axes == (*range(rank - 2), rank - 1, rank - 2) else None


PRODUCTS: Mapping[str, Handler] = {"Conv": _conv, "Gemm": _gemm, "MatMul": _matmul}
"""Handlers by operator."""
