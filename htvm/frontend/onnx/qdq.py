"""QDQ: float operators between DequantizeLinear and QuantizeLinear, as quantizers write them.

Their meaning is integer arithmetic, as onnxruntime runs it after fusing the three: its
requantization, with rectifiers folded into saturation.  Values that are not quantized again stay
reals (`htvm.frontend.onnx.affine.islands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from htvm.frontend.onnx.affine import gemm, islands, quantization
from htvm.frontend.onnx.affine.products import filtered, matrix_product, weight_of
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, Reader
from htvm.frontend.onnx.affine.values import Constant, Value, View
from htvm.frontend.onnx.qoperator import COMMON
from htvm.frontend.onnx.qoperator import OWN as QOPERATOR
from htvm.frontend.registration import registered

if TYPE_CHECKING:
    from htvm.frontend.onnx.dialect import Network, Options
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode


def marks(graph: OnnxGraph, _: Options) -> tuple[OnnxNode, ...]:
    """Return QuantizeLinear and DequantizeLinear, in a file without quantized operators."""
    if any(node.op in QOPERATOR for node in graph.nodes):
        return ()
    return tuple(node for node in graph.nodes if node.op in quantization.HANDLERS)


def read(graph: OnnxGraph, _: Options) -> Network:
    """Return the network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    return Reader(graph, HANDLERS).read()


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


def _conv(node: NodeReader) -> Value:
    view, weights = node.view(0, "input"), weights_of(node, 1)
    return filtered(node, view, weights, bias_of(node, 2))


def _matmul(node: NodeReader) -> Value:
    view, constant = (node.value(index) for index in (0, 1))
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


_HANDLERS: Mapping[str, Handler] = {
    **COMMON,
    "Conv": _conv,
    "Gemm": gemm.gemm,
    "MatMul": _matmul,
}

HANDLERS = registered("ONNX, QDQ", _HANDLERS, Value)
"""Handlers by operator."""
