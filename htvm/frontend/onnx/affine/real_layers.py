"""Layers of float networks: convolutions, products, pools, and functions of several tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.shapes import in_shape, moved, pending_move, tensor_of
from htvm.frontend.onnx.affine.values import Pending, Real, Sums, Value
from htvm.frontend.onnx.windows import check_storage_order, groups_of, sizes_of, windows_of
from htvm.frontend.operators import Activation
from patterns.ops.float32.combine import Function
from patterns.ops.float32.maps import RealAverage, RealConv2d
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import PadAxes

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


def epsilon_of(node: OnnxNode) -> float:
    """Return what a normalisation adds to a variance.

    Raises:
        ModelError: it is negative, so that there may be no root.
    """
    epsilon = node.number("epsilon", 1e-5)
    if epsilon < 0:
        raise node.damaged(f"attribute 'epsilon' is {epsilon}", "a positive number")
    return epsilon


def maps_of(node: NodeReader) -> tuple[Activation, bool]:
    """Return the input as maps (N, C, y, x), and whether the file has only one spatial axis."""
    source = node.tensor()
    if len(source.shape) == 3:
        n, c, x = source.shape
        return node.reshape(source, (n, c, 1, x)), True
    if len(source.shape) != 4:
        raise node.unsupported(f"an input of shape {list(source.shape)}", "one or two spatial axes")
    return source, False


def result_of(node: NodeReader, maps: Activation, flat: bool) -> Value:
    """Return maps as the file has them: without their height, if it has only one spatial axis."""
    n, c, y, x = maps.shape
    return Real(node.reshape(maps, (n, c, x) if flat else (n, c, y, x)))


# ------------------------------------------------------------------------------ products


def _conv(node: NodeReader) -> Value:
    source, flat = maps_of(node)
    weight = node.constant(1, "weights")
    if weight.ndim != (3 if flat else 4):
        raise node.unsupported(f"weights of shape {list(weight.shape)}")
    windows = windows_of(node, source.shape[3 if flat else 2 :], weight.shape[2:], one_axis=flat)
    weight = weight[:, :, None] if flat else weight
    groups, k = groups_of(node, source.shape[1], weight.shape), len(weight)
    bias = node.vector(2, k, "bias") if node.input(2) else np.zeros(k, "float32")
    op = RealConv2d(
        np.asarray(weight, order="C"), bias, windows.strides, windows.padding, windows.dilation,
        groups,
    )  # fmt: skip
    made = node.write(op, source)
    return result_of(node, made, flat)


# ------------------------------------------------------------------------------ normalisation


def _batch_norm(node: NodeReader) -> Value:
    """Apply an exported network's batch normalisation: a factor and a summand per channel."""
    source = node.tensor()
    node.ignore("momentum", "spatial")
    if node.integer("training_mode", 0):
        raise node.unsupported("training_mode", "export the network for inference")
    channels = source.shape[1] if len(source.shape) > 1 else 1
    parts = [
        node.vector(index, channels, role)
        for index, role in enumerate(("scale", "bias", "mean", "variance"), start=1)
    ]
    scale, bias, mean, variance = (part.astype("float64") for part in parts)
    spreads = variance + epsilon_of(node)
    if not np.all(spreads > 0):
        raise node.unsupported("a variance that is not positive")
    root = np.sqrt(spreads)
    spread = (-1, *(1,) * (len(source.shape) - 2))
    product = node.combine("multiply", source, (scale / root).astype("float32").reshape(spread))
    summand = (bias - mean * scale / root).astype("float32").reshape(spread)
    return Real(node.combine("add", product, summand))


# ------------------------------------------------------------------------------ pools


def average(node: NodeReader) -> Value:
    """Return averages over windows, each divided by the number of elements that it counts."""
    source, flat = maps_of(node)
    windows = windows_of(node, source.shape[3 if flat else 2 :], one_axis=flat)
    windows.check_padding(node)
    counted = bool(node.integer("count_include_pad", 0))
    top, left, bottom, right = windows.padding
    if any(windows.padding):
        widths = ((0, 0), (0, 0), (top, bottom), (left, right))
        source = node.write(PadAxes(0, widths), source)
    made = node.write(RealAverage(windows.kernel, windows.strides, windows.dilation), source)
    factor = windows.counts(counted)
    if (factor != math.prod(windows.kernel)).any():
        ratio = (math.prod(windows.kernel) / factor).astype("float32")
        made = node.combine("multiply", made, ratio)
    return result_of(node, made, flat)


def max_pool(node: NodeReader) -> Value:
    """Return maxima over windows of one or two axes, of integers or reals."""
    value = node.value(0)
    if not isinstance(value, Pending) or len(value.shape) != 4:
        value = tensor_of(node, 0)
    if isinstance(value, Sums):
        value = Real(node.realised(value))
    windows = windows_of(node, sizes_of(node, value.shape), one_axis=True)
    check_storage_order(node)
    if any(node.outputs[1:]):
        raise node.unsupported(
            "the places of its maxima are used", "leave out the second output (return_indices)"
        )
    windows.check_padding(node)
    pool = MaxPool(
        windows.kernel, windows.strides, windows.padding, windows.layout, windows.dilation
    )
    if isinstance(value, Pending):  # rounding does not change which is largest
        return pending_move(node, value, pool)
    if len(value.shape) == 4:
        return moved(node, value, pool)
    n, c, x = value.shape
    made = moved(node, in_shape(node, value, (n, c, 1, x)), pool)
    return in_shape(node, made, (n, c, windows.outputs[1]))


def global_of(node: NodeReader, *, mean: bool) -> Value:
    source = node.tensor()
    if len(source.shape) < 3:
        raise node.damaged(f"an input of shape {list(source.shape)}")
    axes = tuple(range(2, len(source.shape)))
    return Real(node.mean(source, axes) if mean else node.reduce("maximum", source, axes))


# ------------------------------------------------------------------------------ several tensors


def combined_all(
    node: NodeReader, function: Function, values: Sequence[Activation | Array]
) -> Activation:
    """Return a function of any number of tensors and constants, from left to right."""
    tensors = [value for value in values if isinstance(value, Activation)]
    if not tensors:
        raise node.unsupported("all inputs are constant", "fold constants when exporting")
    result: Activation | Array | None = None
    for value in values:
        if result is None:
            result = value
        elif isinstance(result, Activation) or isinstance(value, Activation):
            result = node.combine(function, result, value)
        else:
            result = _FOLDED[function](result, value).astype("float32")
    assert isinstance(result, Activation)
    return result


_FOLDED = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


def _variadic(node: NodeReader, function: Function) -> Value:
    values = [node.operand(index) for index in range(len(node.inputs))]
    return Real(combined_all(node, function, values))


def _mean(node: NodeReader) -> Value:
    values = [node.operand(index) for index in range(len(node.inputs))]
    total = combined_all(node, "add", values)
    return Real(node.combine("divide", total, float(len(values))))


def _prelu(node: NodeReader) -> Value:
    source, slope = node.tensor(), node.operand(1)
    below = node.combine("multiply", node.combine("minimum", source, 0.0), slope)
    made = node.combine("add", node.combine("maximum", source, 0.0), below)
    if made.shape != source.shape:
        raise node.damaged(f"slopes of shape {list(slope.shape)} for {list(source.shape)}")
    return Real(made)


PARTS: dict[str, Handler] = {
    "BatchNormalization": _batch_norm,
    "GlobalMaxPool": partial(global_of, mean=False),
    "Max": partial(_variadic, function="maximum"),
    "Mean": _mean,
    "Min": partial(_variadic, function="minimum"),
    "PRelu": _prelu,
    "Sum": partial(_variadic, function="add"),
}
"""Those that may also stand between quantized tensors, where they are computed in reals."""

HANDLERS: dict[str, Handler] = {
    **PARTS,
    "AveragePool": average,
    "Conv": _conv,
    "GlobalAveragePool": partial(global_of, mean=True),
    "MaxPool": max_pool,
}
"""Handlers by operator."""
