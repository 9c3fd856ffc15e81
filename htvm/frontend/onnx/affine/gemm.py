"""Gemm: ``alpha * A' @ B' + beta * C``, where A' and B' may be transposed matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.islands import integer_product
from htvm.frontend.onnx.affine.products import matrix_product, weight_of
from htvm.frontend.onnx.affine.reader import NodeReader, split
from htvm.frontend.onnx.affine.shapes import in_shape, moved
from htvm.frontend.onnx.affine.values import Constant, Pending, Real, Value, View
from htvm.frontend.operators import Activation, Quantization
from patterns.ops.float32.combine import RealMatmul
from patterns.ops.moves.reshape import Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


def gemm(node: NodeReader) -> Value:
    """Return a Gemm between quantized tensors, of integers if both matrices are quantized.

    It is one of reals also if alpha is not positive, or if weights have a scale for each of their
    input channels.

    Raises:
        ModelError: the shapes do not fit together.
        UnsupportedError: the weights of a quantized matrix are reals, or wider than 8 bits.
    """
    first, second = node.in_integers(0), node.value(1)
    channels = 0 if node.integer("transB", 0) else 1
    if not isinstance(first, View) or node.number("alpha", 1.0) <= 0:
        return real_gemm(node)
    if isinstance(second, View) and first.dtype != "int16":
        _check_matrices(node, first.shape, second.shape)
        second = second if channels else View(_transposed(node, second), second.step, second.dtype)
        product = integer_product(node, first_matrix(node, first), second)
        return _plus(node, product) if node.input(2) else product
    if not isinstance(second, Constant) or _is_scaled_across(second, channels):
        return real_gemm(node)
    summand = node.value(2) if node.input(2) else None
    first, beta = first_matrix(node, first), node.number("beta", 1.0)
    if summand is not None and not isinstance(summand, Constant):
        return _plus(node, weighted(node, first, second, channels, None))
    if summand is not None and beta != 1:
        summand = Constant((summand.real * np.float32(beta)).astype("float32"))
    return weighted(node, first, second, channels, summand)


def weighted(
    node: NodeReader,
    view: View,
    constant: Constant,
    channels: int,
    summand: Constant | None,
) -> Pending | Real:
    """Return a matrix times constant weights, plus a constant.

    Args:
        node: the node.
        view: the matrix.
        constant: the weights.
        channels: axis of the weights' output channels.
        summand: is added to the product; in reals, if its rows differ.

    Raises:
        ModelError, UnsupportedError: as of `gemm`.
    """
    _check_matrices(node, constant.data.shape)
    weight = weight_of(node, constant, channels)
    if summand is None:
        return matrix_product(node, view, weight, None)
    shape = (view.shape[0], len(weight.data))
    own = (1,) * (2 - summand.data.ndim) + summand.data.shape
    if len(own) != 2 or any(size not in (1, n) for size, n in zip(own, shape, strict=True)):
        raise node.damaged(f"a summand of shape {list(summand.data.shape)} for {list(shape)}")
    if own[0] == 1:
        return matrix_product(node, view, weight, summand)
    product = node.realised(matrix_product(node, view, weight, None))
    real = summand.real.astype("float32")
    return Real(node.combine("add", product, real))


def first_matrix(node: NodeReader, view: View) -> View:
    """Return the first matrix as it is multiplied: transposed if asked for, times alpha."""
    _check_matrices(node, view.shape)
    scale = np.float32(node.number("alpha", 1.0)) * np.float32(view.step.scale)
    source = _transposed(node, view) if node.integer("transA", 0) else view.activation
    return View(source, Quantization(float(scale), view.step.zero_point), view.dtype)


def real_gemm(node: NodeReader) -> Value:
    """Return a Gemm of reals.

    Raises:
        ModelError: the shapes do not fit together.
        UnsupportedError: both matrices are constant.
    """
    a, b = (node.operand(index) for index in (0, 1))
    _check_matrices(node, a.shape, b.shape)
    a = _turned_real(node, a) if node.integer("transA", 0) else a
    b = _turned_real(node, b) if node.integer("transB", 0) else b
    if a.shape[1] != b.shape[0]:
        raise node.damaged(f"a product of {list(a.shape)} and {list(b.shape)}")
    tensors, (first, second) = split((a, b))
    if not tensors:
        raise node.unsupported("both operands are constant", "fold constants when exporting")
    made = node.write(RealMatmul(a=first, b=second), *tensors)
    made = node.scaled(made, node.number("alpha", 1.0))
    return _plus(node, Real(made)) if node.input(2) else Real(made)


def _plus(node: NodeReader, product: Pending | Real) -> Real:
    """Return a product of reals plus beta times the last input."""
    summand, real, beta = node.operand(2), node.realised(product), node.number("beta", 1.0)
    if isinstance(summand, Activation):
        summand = node.scaled(summand, beta)
    else:
        summand = summand * np.float32(beta)
    total = node.combine("add", real, summand)
    if total.shape != real.shape:
        raise node.damaged(f"a summand of shape {list(summand.shape)} for {list(real.shape)}")
    return Real(total)


def _is_scaled_across(constant: Constant, channels: int) -> bool:
    """Whether constant weights have scales along another axis than that of output channels."""
    scale = constant.scale
    return scale is not None and scale.ndim == 2 and scale.size != scale.shape[channels]


def _check_matrices(node: OnnxNode, *shapes: tuple[int, ...]) -> None:
    if any(len(shape) != 2 for shape in shapes):
        raise node.damaged(f"a product of {' and '.join(str(list(shape)) for shape in shapes)}")


def _transposed(node: NodeReader, matrix: View | Real) -> Activation:
    rows, columns = matrix.activation.shape
    if 1 in (rows, columns):
        return in_shape(node, matrix, (columns, rows)).activation
    return moved(node, matrix, Transpose((1, 0))).activation


def _turned_real(node: NodeReader, matrix: Activation | Array) -> Activation | Array:
    if isinstance(matrix, Activation):
        return _transposed(node, Real(matrix))
    return np.asarray(matrix.T, order="C")
