"""Layers, normalisations and reductions of float tensors, and functions of several tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.functions import magnitude
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.shapes import in_shape, moved, pending_move, tensor_of
from htvm.frontend.onnx.affine.values import Pending, Real, Sums, Value
from htvm.frontend.onnx.windows import check_storage_order, groups_of, sizes_of, windows_of
from htvm.frontend.operators import Activation
from patterns.ops.float32.combine import Function
from patterns.ops.float32.elementary import RealLog, RealSqrt
from patterns.ops.float32.maps import RealAverage, RealConv2d
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import PadAxes

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


def epsilon_of(node: OnnxNode) -> float:
    """Return what a normalisation adds to a variance, of float32.

    Raises:
        ModelError: it is negative, so that there may be no root.
        UnsupportedError: the variance is of another type.
    """
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
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


_FOLDED = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


def _combined(node: NodeReader, function: Function, *, mean: bool = False) -> Value:
    """Return a function of any number of tensors and constants, from left to right."""
    values = [node.operand(index) for index in range(len(node.inputs))]
    if not any(isinstance(value, Activation) for value in values):
        raise node.unsupported("all inputs are constant", "fold constants when exporting")

    def both(a: Activation | Array, b: Activation | Array) -> Activation | Array:
        if isinstance(a, Activation) or isinstance(b, Activation):
            return node.combine(function, a, b)
        return _FOLDED[function](a, b).astype("float32")

    total = reduce(both, values)
    assert isinstance(total, Activation)
    return Real(node.combine("divide", total, float(len(values))) if mean else total)


def _prelu(node: NodeReader) -> Value:
    source, slope = node.tensor(), node.operand(1)
    below = node.combine("multiply", node.combine("minimum", source, 0.0), slope)
    made = node.combine("add", node.combine("maximum", source, 0.0), below)
    if made.shape != source.shape:
        raise node.damaged(f"slopes of shape {list(slope.shape)} for {list(source.shape)}")
    return Real(made)


Reduced: TypeAlias = Callable[[NodeReader, Activation, tuple[int, ...]], Activation]
"""Writes what is left of a tensor over some axes."""


def _normalised(
    node: NodeReader, x: Activation, axes: Sequence[int], epsilon: float
) -> tuple[Activation, Activation, Activation]:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` over some axes, mean and square root."""
    mean = node.mean(x, axes)
    centred = node.combine("subtract", x, mean)
    variance = node.mean(node.combine("multiply", centred, centred), axes)
    root = node.write(RealSqrt(), node.combine("add", variance, epsilon))
    return node.combine("divide", centred, root), mean, root


def _affine(node: NodeReader, x: Activation) -> Activation:
    """Apply a factor and a summand for each channel (inputs 1 and 2)."""
    for index, function in ((1, "multiply"), (2, "add")):
        part = node.operand(index)
        if len(part.shape) != 1 or part.shape[0] not in (1, x.shape[1]):
            raise node.damaged(f"input {index} of shape {list(part.shape)}, one for each channel")
        shape = (part.shape[0], *(1,) * (len(x.shape) - 2))
        value: Activation | Array = (
            node.reshape(part, shape) if isinstance(part, Activation) else part.reshape(shape)
        )
        x = node.combine(function, x, value)  # type: ignore[arg-type]
    return x


def _instance_norm(node: NodeReader) -> Value:
    source = node.tensor()
    rank = len(source.shape)
    if rank < 3:
        raise node.damaged(f"an input of shape {list(source.shape)}")
    made, _, _ = _normalised(node, source, range(2, rank), epsilon_of(node))
    return Real(_affine(node, made))


def _layer_norm(node: NodeReader) -> list[Value]:
    source = node.tensor()
    rank = len(source.shape)
    axes = range(forms.axis_of(node, node.integer("axis", -1), rank), rank)
    result, mean, root = _normalised(node, source, axes, epsilon_of(node))
    for index, function in ((1, "multiply"), (2, "add")):
        if node.input(index):
            result = node.combine(function, result, node.operand(index))  # type: ignore[arg-type]
    if result.shape != source.shape:
        raise node.damaged(f"factors or summands that do not fit {list(source.shape)}")
    values: list[Value] = [Real(result)]
    if any(node.outputs[1:]):
        values += [Real(mean), Real(node.combine("divide", 1.0, root))]
    return values


def _group_norm(node: NodeReader) -> Value:
    source = node.tensor()
    groups, shape = node.integer("num_groups"), source.shape
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise node.damaged(f"{groups} groups of {list(shape)}")
    if node.reader.graph.opset < 21:
        raise node.unsupported("one factor per group (opset 18)", "opset 21: one per channel")
    split = (shape[0], groups, math.prod(shape[1:]) // groups)
    made, _, _ = _normalised(node, node.reshape(source, split), (2,), epsilon_of(node))
    return Real(_affine(node, node.reshape(made, shape)))


def _mean_variance(node: NodeReader) -> Value:
    source = node.tensor()
    rank = len(source.shape)
    axes = sorted({forms.axis_of(node, at, rank) for at in node.integers("axes", (0, 2, 3))})
    return Real(_normalised(node, source, axes, 1e-9)[0])


def _rms_norm(node: NodeReader) -> Value:
    source = node.tensor()
    rank = len(source.shape)
    first = forms.axis_of(node, node.integer("axis", -1), rank)
    power = node.mean(node.combine("multiply", source, source), range(first, rank))
    root = node.write(RealSqrt(), node.combine("add", power, epsilon_of(node)))
    made = node.combine("divide", source, root)
    return Real(node.combine("multiply", made, node.operand(1)))


def _lp_norm(node: NodeReader) -> Value:
    source = node.tensor()
    axis = forms.axis_of(node, node.integer("axis", -1), len(source.shape))
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise node.unsupported(f"a norm of order {order}", "1 or 2")
    length = _l1(node, source, (axis,)) if order == 1 else _l2(node, source, (axis,))
    # Where all elements are 0, so is the result.
    return Real(node.combine("divide", source, node.combine("maximum", length, 1e-38)))


def _log_softmax(node: NodeReader) -> Value:
    source = node.tensor()
    rank, old = len(source.shape), node.reader.graph.opset < 13
    axis = forms.axis_of(node, node.integer("axis", 1 if old else -1), rank)
    axes = tuple(range(axis, rank)) if old else (axis,)
    moved = node.combine("subtract", source, node.reduce("maximum", source, axes))
    total = node.reduce("add", node.exp(moved), axes)
    return Real(node.combine("subtract", moved, node.write(RealLog(), total)))


# ------------------------------------------------------------------------------ reductions


def _l1(node: NodeReader, x: Activation, axes: tuple[int, ...]) -> Activation:
    return node.reduce("add", magnitude(node, x), axes)


def _l2(node: NodeReader, x: Activation, axes: tuple[int, ...]) -> Activation:
    return node.write(RealSqrt(), _squares(node, x, axes))


def _squares(node: NodeReader, x: Activation, axes: tuple[int, ...]) -> Activation:
    return node.reduce("add", node.combine("multiply", x, x), axes)


def _least(node: NodeReader, x: Activation, axes: tuple[int, ...]) -> Activation:
    return node.scaled(node.reduce("maximum", node.scaled(x, -1.0), axes), -1.0)


def _log_sum_exp(node: NodeReader, x: Activation, axes: tuple[int, ...]) -> Activation:
    most = node.reduce("maximum", x, axes)
    terms = node.exp(node.combine("subtract", x, most))
    return node.combine("add", node.write(RealLog(), node.reduce("add", terms, axes)), most)


def reduced(node: NodeReader, make: Reduced, *, alone: bool = False) -> Value:
    """Return what is left of a tensor over some axes.

    Args:
        node: the node.
        make: writes it.
        alone: whether that of a single element is the element, so that there may be no axis.
    """
    given = forms.axes_of(node, 1) or ()
    source = node.tensor()
    if not given and node.integer("noop_with_empty_axes", 0):
        if not alone:
            raise node.unsupported("a reduction over no axis")
        return Real(source)
    rank = len(source.shape)
    if not given and not rank:
        raise node.damaged("a reduction of a tensor of 0 axes")
    axes = tuple(sorted({forms.axis_of(node, axis, rank) for axis in given or range(rank)}))
    made = make(node, source, axes)
    if node.integer("keepdims", 1):
        return Real(made)
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    return Real(node.reshape(made, kept))


_REDUCTIONS: dict[str, Reduced] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": lambda node, x, axes: node.write(RealLog(), node.reduce("add", x, axes)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMin": _least,
    "ReduceSumSquare": _squares,
}


PARTS: dict[str, Handler] = {
    **{name: partial(reduced, make=make) for name, make in _REDUCTIONS.items()},
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms_norm,
    "ReduceMax": partial(
        reduced, make=lambda node, x, axes: node.reduce("maximum", x, axes), alone=True
    ),
    "ReduceSum": partial(
        reduced, make=lambda node, x, axes: node.reduce("add", x, axes), alone=True
    ),
    "BatchNormalization": _batch_norm,
    "GlobalMaxPool": partial(global_of, mean=False),
    "Max": partial(_combined, function="maximum"),
    "Mean": partial(_combined, function="add", mean=True),
    "Min": partial(_combined, function="minimum"),
    "PRelu": _prelu,
    "Sum": partial(_combined, function="add"),
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
