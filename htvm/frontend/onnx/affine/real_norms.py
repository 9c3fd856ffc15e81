"""Normalisations and reductions of float tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.real_forms import RealWriter
from htvm.frontend.onnx.affine.real_layers import epsilon_of, operand
from htvm.frontend.onnx.affine.shapes import in_shape
from htvm.frontend.onnx.affine.values import Real, Value
from htvm.frontend.operators import Activation

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS"]

_Reduced: TypeAlias = Callable[[RealWriter, Activation, tuple[int, ...]], Activation]


def _source(reader: Reader, node: OnnxNode) -> Activation:
    found = operand(reader, node, 0)
    if not isinstance(found, Activation):
        raise node.unsupported("its input is constant", "fold constants when exporting")
    return found


def _normalised(out: RealWriter, x: Activation, axes: Sequence[int], epsilon: float) -> Activation:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` over some axes."""
    centred = out.combine("subtract", x, out.mean(x, axes))
    variance = out.mean(out.combine("multiply", centred, centred), axes)
    return out.combine("divide", centred, out.sqrt(out.combine("add", variance, epsilon)))


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
    source, out = _source(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    if rank < 3:
        raise node.damaged(f"an input of shape {list(source.shape)}")
    made = _normalised(out, source, range(2, rank), epsilon_of(node))
    return Real(_affine(reader, node, out, made, rank))


def _group_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = _source(reader, node), RealWriter(reader, node)
    groups, shape = node.integer("num_groups"), source.shape
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise node.damaged(f"{groups} groups of {list(shape)}")
    if reader.graph.opset < 21:
        raise node.unsupported("one factor per group (opset 18)", "opset 21: one per channel")
    split = (shape[0], groups, math.prod(shape[1:]) // groups)
    rows = in_shape(reader, node, Real(source), split).activation
    made = _normalised(out, rows, (2,), epsilon_of(node))
    whole = in_shape(reader, node, Real(made), shape).activation
    return Real(_affine(reader, node, out, whole, len(shape)))


def _mean_variance(reader: Reader, node: OnnxNode) -> Value:
    source, out = _source(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    axes = sorted({forms.axis_of(node, at, rank) for at in node.integers("axes", (0, 2, 3))})
    return Real(_normalised(out, source, axes, 1e-9))


def _rms_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = _source(reader, node), RealWriter(reader, node)
    rank = len(source.shape)
    if node.integer("stash_type", 1) != 1:
        raise node.unsupported("a stash_type other than float32")
    first = forms.axis_of(node, node.integer("axis", -1), rank)
    power = out.mean(out.combine("multiply", source, source), range(first, rank))
    root = out.sqrt(out.combine("add", power, epsilon_of(node)))
    made = out.combine("divide", source, root)
    return Real(out.combine("multiply", made, operand(reader, node, 1)))


def _lp_norm(reader: Reader, node: OnnxNode) -> Value:
    source, out = _source(reader, node), RealWriter(reader, node)
    axis = forms.axis_of(node, node.integer("axis", -1), len(source.shape))
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise node.unsupported(f"a norm of order {order}", "1 or 2")
    length = _l1(out, source, (axis,)) if order == 1 else _l2(out, source, (axis,))
    # Where all elements are 0, so is the result.
    return Real(out.combine("divide", source, out.combine("maximum", length, 1e-38)))


def _log_softmax(reader: Reader, node: OnnxNode) -> Value:
    source, out = _source(reader, node), RealWriter(reader, node)
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


def _reduced(reader: Reader, node: OnnxNode, make: _Reduced) -> Value:
    given = forms.axes_of(node, reader.given(node), 1) or ()
    out, source = RealWriter(reader, node), _source(reader, node)
    keep, noop = node.integer("keepdims", 1), node.integer("noop_with_empty_axes", 0)
    if not given and noop:
        raise node.unsupported("a reduction over no axis")
    rank = len(source.shape)
    axes = tuple(sorted({forms.axis_of(node, axis, rank) for axis in given or range(rank)}))
    made = make(out, source, axes)
    if keep:
        return Real(made)
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    return Real(out.reshape(made, kept))


_REDUCTIONS: dict[str, _Reduced] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": lambda out, x, axes: out.log(out.reduce("add", x, axes)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMin": _least,
    "ReduceSumSquare": _squares,
}

HANDLERS: dict[str, Handler] = {
    **{name: partial(_reduced, make=make) for name, make in _REDUCTIONS.items()},
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms_norm,
}
"""Handlers by operator."""
