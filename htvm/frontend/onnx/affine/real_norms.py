"""Normalisations and reductions of float tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.real_forms import magnitude
from htvm.frontend.onnx.affine.real_layers import epsilon_of
from htvm.frontend.onnx.affine.values import Real, Value
from htvm.frontend.operators import Activation
from patterns.ops.float32.elementary import RealLog, RealSqrt

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
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
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
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
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
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
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

HANDLERS: dict[str, Handler] = {
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
}
"""Handlers by operator."""
