"""Convolutions, normalisations, pools and products of float networks of maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.windows import windows_of
from htvm.frontend.operators import Activation
from patterns.ops.float32.average import RealAverage
from patterns.ops.float32.conv2d import RealConv2d
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS"]


def _map(reader: Any, node: OnnxNode) -> Activation:
    """Return the first input, which must be a computed tensor with two spatial axes."""
    value = reader.value(node, 0)
    if not isinstance(value, Activation):
        raise node.unsupported("its input is constant", "fold constants when exporting")
    if len(value.shape) != 4:
        raise node.unsupported(
            f"an input of shape {list(value.shape)}", "maps (N, C, y, x) are supported"
        )
    return value


def _vector(reader: Any, node: OnnxNode, index: int, size: int, role: str) -> Array:
    values: Array = reader.constant(node, index).reshape(-1)
    if values.size != size:
        raise node.damaged(f"{values.size} values of {role} for {size} channels")
    if not np.isfinite(values).all():
        raise node.unsupported(f"a {role} that is not finite")
    return values.astype("float32")


def _conv(reader: Any, node: OnnxNode) -> Activation:
    source, weight = _map(reader, node), reader.constant(node, 1)
    if weight.ndim != 4 or not np.isfinite(weight).all():
        raise node.unsupported(f"weights of shape {list(weight.shape)}, or not finite")
    windows = windows_of(node, source.shape[2:], weight.shape[2:])
    groups, k = node.integer("group", 1), weight.shape[0]
    if source.shape[1] != weight.shape[1] * groups or k % groups:
        raise node.damaged(
            f"{source.shape[1]} input channels in {groups} groups, and weights of shape "
            f"{list(weight.shape)}"
        )
    bias = np.zeros(k, "float32")
    if node.input(2):
        bias = _vector(reader, node, 2, k, "bias")
    op = RealConv2d(
        weight.astype("float32"), bias, windows.strides, windows.padding, windows.dilation, groups
    )
    shape = (source.shape[0], k, *windows.outputs)
    result: Activation = reader.write(node, op, (source,), shape)
    return result


def _batch_norm(reader: Any, node: OnnxNode) -> Activation:
    """Apply an exported network's batch normalisation: a factor and a summand per channel."""
    source = _map(reader, node)
    node.ignore("momentum", "spatial")
    if node.integer("training_mode", 0):
        raise node.unsupported("training_mode", "export the network for inference")
    parts = [
        _vector(reader, node, index, source.shape[1], role)
        for index, role in enumerate(("scale", "bias", "mean", "variance"), start=1)
    ]
    scale, bias, mean, variance = (part.astype("float64") for part in parts)
    root = np.sqrt(variance + node.number("epsilon", 1e-5))
    if not np.all(root > 0):
        raise node.unsupported("a variance that is not positive")
    factor = (scale / root).astype("float32").reshape(-1, 1, 1)
    summand = (bias - mean * scale / root).astype("float32").reshape(-1, 1, 1)
    product = reader.combine(node, "multiply", source, factor)
    shifted: Activation = reader.combine(node, "add", product, summand)
    return shifted


def _average(reader: Any, node: OnnxNode) -> Activation:
    source = _map(reader, node)
    windows = windows_of(node, source.shape[2:])
    if any(windows.padding) or windows.dilation != (1, 1):
        raise node.unsupported("an average with padding or dilation", "pad before")
    op, shape = RealAverage(windows.kernel, windows.strides), (*source.shape[:2], *windows.outputs)
    result: Activation = reader.write(node, op, (source,), shape)
    return result


def _global_average(reader: Any, node: OnnxNode) -> Activation:
    source = _map(reader, node)
    batch, channels, *maps = source.shape
    op = RealAverage((maps[0], maps[1]), (1, 1))
    result: Activation = reader.write(node, op, (source,), (batch, channels, 1, 1))
    return result


def _max_pool(reader: Any, node: OnnxNode) -> Activation:
    source = _map(reader, node)
    windows = windows_of(node, source.shape[2:])
    if windows.dilation != (1, 1) or len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("a maximum with dilation, or with its indices")
    op = MaxPool(windows.kernel, windows.strides, windows.padding, "NCHW")
    result: Activation = reader.write(node, op, (source,), (*source.shape[:2], *windows.outputs))
    return result


def _flatten(reader: Any, node: OnnxNode) -> Activation:
    value = reader.value(node, 0)
    if not isinstance(value, Activation):
        raise node.unsupported("its input is constant", "fold constants when exporting")
    shape = forms.flattened(node, value.shape)
    result: Activation = reader.write(node, Reshape(shape), (value,), shape)
    return result


def _gemm(reader: Any, node: OnnxNode) -> Activation:
    source, weight = reader.value(node, 0), reader.constant(node, 1)
    if node.integer("transA", 0) or node.number("alpha", 1.0) != 1.0:
        raise node.unsupported("transA, or an alpha other than 1", "transA=0 and alpha=1")
    if node.integer("transB", 0):
        weight = weight.T
    if weight.ndim != 2 or len(source.shape) != 2 or source.shape[1] != weight.shape[0]:
        raise node.damaged(f"a product of {list(source.shape)} and {list(weight.shape)}")
    matrix = np.ascontiguousarray(weight, "float32")
    product: Activation = reader.matmul(node, source, matrix, (source.shape[0], matrix.shape[1]))
    if not node.input(2):
        return product
    if node.number("beta", 1.0) != 1.0:
        raise node.unsupported("a beta other than 1", "scale the bias when exporting")
    biased: Activation = reader.combine(node, "add", product, reader.constant(node, 2))
    return biased


HANDLERS: Mapping[str, Any] = {
    "AveragePool": _average,
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average,
    "MaxPool": _max_pool,
}
"""Handlers by operator."""
