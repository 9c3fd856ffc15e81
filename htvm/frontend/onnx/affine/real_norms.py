"""Normalisations and reductions of float tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.real_forms import RealWriter
from htvm.frontend.onnx.affine.real_layers import epsilon_of, operand, tensor
from htvm.frontend.onnx.affine.shapes import in_shape
from htvm.frontend.onnx.affine.values import Real, Value
from htvm.frontend.operators import Activation

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS", "reduced"]

Reduced: TypeAlias = Callable[[RealWriter, Activation, tuple[int, ...]], Activation]
"""Writes what is left of a tensor over some axes."""


def _normalised(
    out: RealWriter, x: Activation, axes: Sequence[int], epsilon: float
) -> tuple[Activation, Activation, Activation]:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` over some axes, mean and square root."""
    mean = out.mean(x, axes)
    centred = out.combine("subtract", x, mean)
    variance = out.mean(out.combine("multiply", centred, centred), axes)
    root = out.sqrt(out.combine("add", variance, epsilon))
    return out.combine("divide", centred, root), mean, root


def _affine(
    reader: Reader, node: OnnxNode, out: RealWriter, x: Activation, rank: int
) -> Activation:
    """Apply a factor and a summand for each channel (inputs 1 and 2)."""
    for index, function in ((1, "multiply"), (2, "add")):
        part = operand(reader, node, index)
        if len(part.shape) != 1 or part.shape[0] not in (1, x.shape[1]):
            raise node.damaged(f"input {index} of shape {list(part.shape)}, one for each channel")
        shape = (part.shape[0], *(1,) * (rank - 2))
        value = (
            in_shape(reader, node, Real(part), shape).activation
            if isinstance(part, Activation)
            else part.reshape(shape)
        )
        x = out.combine(function, x, value)  # type: ignore[arg-type]
    return x


def _instance_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    if rank < 3:
        raise node.damaged(f"an input of shape {list(source.shape)}")
    made, _, _ = _normalised(out, source, range(2, rank), epsilon_of(node))
    return Real(_affine(reader, node, out, made, rank))


def _layer_norm(reader: Reader, node: OnnxNode) -> list[Value]:
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
    source, out = tensor(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    axes = range(forms.axis_of(node, node.integer("axis", -1), rank), rank)
    result, mean, root = _normalised(out, source, axes, epsilon_of(node))
    for index, function in ((1, "multiply"), (2, "add")):
        if node.input(index):
            result = out.combine(function, result, operand(reader, node, index))  # type: ignore[arg-type]
    if result.shape != source.shape:
        raise node.damaged(f"factors or summands that do not fit {list(source.shape)}")
    values: list[Value] = [Real(result)]
    if any(node.outputs[1:]):
        values += [Real(mean), Real(out.divided(1.0, root))]
    return values


def _group_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    groups, shape = node.integer("num_groups"), source.shape
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise node.damaged(f"{groups} groups of {list(shape)}")
    if reader.graph.opset < 21:
        raise node.unsupported("one factor per group (opset 18)", "opset 21: one per channel")
    split = (shape[0], groups, math.prod(shape[1:]) // groups)
    rows = in_shape(reader, node, Real(source), split).activation
    made, _, _ = _normalised(out, rows, (2,), epsilon_of(node))
    whole = in_shape(reader, node, Real(made), shape).activation
    return Real(_affine(reader, node, out, whole, len(shape)))


def _mean_variance(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    axes = sorted({forms.axis_of(node, at, rank) for at in node.integers("axes", (0, 2, 3))})
    return Real(_normalised(out, source, axes, 1e-9)[0])


def _rms_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
    first = forms.axis_of(node, node.integer("axis", -1), rank)
    power = out.mean(out.combine("multiply", source, source), range(first, rank))
    root = out.sqrt(out.combine("add", power, epsilon_of(node)))
    made = out.combine("divide", source, root)
    return Real(out.combine("multiply", made, operand(reader, node, 1)))


def _lp_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    axis = forms.axis_of(node, node.integer("axis", -1), len(source.shape))
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise node.unsupported(f"a norm of order {order}", "1 or 2")
    length = _l1(out, source, (axis,)) if order == 1 else _l2(out, source, (axis,))
    # Where all elements are 0, so is the result.
    return Real(out.combine("divide", source, out.combine("maximum", length, 1e-38)))


def _log_softmax(reader: Reader, node: OnnxNode) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    rank, old = len(source.shape), reader.graph.opset < 13
    axis = forms.axis_of(node, node.integer("axis", 1 if old else -1), rank)
    axes = tuple(range(axis, rank)) if old else (axis,)
    moved = out.combine("subtract", source, out.reduce("maximum", source, axes))
    return Real(out.combine("subtract", moved, out.log(out.reduce("add", out.exp(moved), axes))))


# ------------------------------------------------------------------------------ reductions


def _l1(out: RealWriter, x: Activation, axes: tuple[int, ...]) -> Activation:
    size = out.combine("maximum", x, out.combine("multiply", x, -1.0))
    return out.reduce("add", size, axes)


def _l2(out: RealWriter, x: Activation, axes: tuple[int, ...]) -> Activation:
    return out.sqrt(_squares(out, x, axes))


def _squares(out: RealWriter, x: Activation, axes: tuple[int, ...]) -> Activation:
    return out.reduce("add", out.combine("multiply", x, x), axes)


def _least(out: RealWriter, x: Activation, axes: tuple[int, ...]) -> Activation:
    return out.scaled(out.reduce("maximum", out.scaled(x, -1.0), axes), -1.0)


def _log_sum_exp(out: RealWriter, x: Activation, axes: tuple[int, ...]) -> Activation:
    most = out.reduce("maximum", x, axes)
    terms = out.exp(out.combine("subtract", x, most))
    return out.combine("add", out.log(out.reduce("add", terms, axes)), most)


def reduced(reader: Reader, node: OnnxNode, make: Reduced, *, alone: bool = False) -> Value:
    """Return what is left of a tensor over some axes.

    Args:
        reader, node: the node.
        make: writes it.
        alone: whether that of a single element is the element, so that there may be no axis.
    """
    given = forms.axes_of(node, reader.given(node), 1) or ()
    out, source = RealWriter(reader, node), tensor(reader, node)
    if not given and node.integer("noop_with_empty_axes", 0):
        if not alone:
            raise node.unsupported("a reduction over no axis")
        return Real(source)
    rank = len(source.shape)
    if not given and not rank:
        raise node.damaged("a reduction of a tensor of 0 axes")
    axes = tuple(sorted({forms.axis_of(node, axis, rank) for axis in given or range(rank)}))
    made = make(out, source, axes)
    if node.integer("keepdims", 1):
        return Real(made)
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    return Real(out.reshape(made, kept))


_REDUCTIONS: dict[str, Reduced] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": lambda out, x, axes: out.log(out.reduce("add", x, axes)),
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
        reduced, make=lambda out, x, axes: out.reduce("maximum", x, axes), alone=True
    ),
    "ReduceSum": partial(reduced, make=lambda out, x, axes: out.reduce("add", x, axes), alone=True),
}
"""Handlers by operator."""
