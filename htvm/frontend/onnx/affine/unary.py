"""Functions of one 8-bit tensor, element by element: tables of 256 entries, or rescaling.

The float function is computed for all 256 arguments when the file is read, between dequantization
and quantization in float32, as onnxruntime does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array, OnnxRequant
from htvm.frontend.onnx.affine.functions import Function
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
from htvm.frontend.onnx.affine.values import (
    Bound,
    Constant,
    Pending,
    Quantized,
    Real,
    Value,
    View,
    in_steps,
)
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import Rounding, converted
from patterns.op import INT8
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.float32.combine import Function as Combination
from patterns.ops.float32.combine import RealCombine
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    pass

_ALL = np.arange(-128, 128)


def _table(
    view_step: Quantization,
    step: Quantization,
    clip: Clip,
    function: Function,
    rounding: Rounding,
) -> Array:
    """Return a table, int8 [256], for arguments from -128 to 127."""
    real = (_ALL - view_step.zero_point).astype("float32") * np.float32(view_step.scale)
    with np.errstate(all="ignore"):
        ratio = in_steps(np.asarray(function(real), "float32"), step, rounding)
    rounded = np.rint(np.nan_to_num(ratio, nan=1e9, posinf=1e9, neginf=-1e9)) + step.zero_point
    return np.clip(rounded, *clip).astype("int8")


def mapped(
    node: NodeReader,
    view: View,
    step: Quantization,
    function: Function,
    clip: Clip = INT8,
) -> Activation:
    """Return a quantized function of an 8-bit tensor: a conversion if possible, else a table."""
    table = _table(view.step, step, clip, function, node.reader.rounding)
    source = view.activation
    requant = _conversion(view.step, step, clip, table)
    if requant is not None:
        convert = Convert(requant, clip, offset=-view.step.zero_point)
        return node.write(convert, source, step=step)
    op = TableLookup(table, zero_point=step.zero_point)
    return node.write(op, source, stem=node.op.lower(), step=step)


def requantized(node: NodeReader, view: View, step: Quantization, clip: Clip = INT8) -> Activation:
    """Return an 8-bit tensor in another quantization."""
    if node.reader.rounding != "tflite":
        return mapped(node, view, step, lambda x: x, clip)
    convert = converted(view.step, step, clip)
    return node.write(convert, view.activation, step=step)


def _conversion(
    before: Quantization, after: Quantization, clip: Clip, table: Array
) -> OnnxRequant | None:
    """Return the change of scale that a table amounts to, if any: retargeting can omit that."""
    with np.errstate(over="ignore"):
        ratio = np.float32(before.scale) / np.float32(after.scale)
    if not 0 < float(ratio) < 2.0**16:
        return None
    product = (_ALL - before.zero_point).astype("float32") * ratio
    same = np.clip(np.rint(product) + after.zero_point, *clip)
    if not np.array_equal(same, table):
        return None
    multiplier, shift = float_scale(float(ratio))
    return OnnxRequant((multiplier,), (shift,), after.zero_point)


def pending_map(node: NodeReader, view: View, function: Function) -> Pending:
    """Return a function of an 8-bit tensor, pending until it is quantized."""

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        return mapped(node, view, step, function, clip)

    return Pending(view.shape, finish)


# ------------------------------------------------------------------------------ bounds


def bounded(node: NodeReader, value: Value, low: float, high: float) -> Value:
    """Apply bounds to the reals that a value stands for."""
    if isinstance(value, Pending):
        bound = value.bound.within(low, high)
        return replace(value, bound=bound, of=None)
    if isinstance(value, View):

        def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
            return requantized(node, value, step, clip)

        def real_form(bound: Bound, _: Constant | None) -> Activation:
            return limited(node, node.realised(value), bound)

        return Pending(value.shape, finish, real_form, bound=Bound(low, high))
    if isinstance(value, Real):
        return Real(limited(node, value.activation, Bound(low, high)))
    raise node.unsupported(f"it bounds a {type(value).__name__.lower()}")


def limited(node: NodeReader, source: Activation, bound: Bound) -> Activation:
    """Return a float tensor within bounds."""
    limits: tuple[tuple[Combination, float], ...] = (
        ("maximum", bound.low), ("minimum", bound.high),
    )  # fmt: skip
    for function, limit in limits:
        if not math.isinf(limit):
            constant = np.full((1,) * len(source.shape), limit, "float32")
            source = node.write(RealCombine(function, b=constant), source, stem=function)
    return source


def _clip(node: NodeReader) -> Value:
    limits = []
    for index, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), start=1):
        limit = default
        if node.input(index):
            value = node.value(index)
            if not isinstance(value, Constant) or value.data.size != 1:
                raise node.unsupported(f"its {name} is computed at run time", "make it constant")
            limit = float(value.real.reshape(-1)[0])
        elif name in node.attributes:
            limit = node.number(name)
        limits.append(limit)
    low, high = limits
    if not low <= high:
        raise node.damaged(f"it clips to [{low}, {high}]")
    source = node.value(0)
    if isinstance(source, Quantized):
        return _clipped(node, source, low, high)
    return bounded(node, source, low, high)


def _clipped(node: NodeReader, source: Quantized, low: float, high: float) -> Quantized:
    """Apply bounds to the integers of an 8-bit tensor, as narrow ones are clipped (QCDQ)."""
    offset, value = offset_of(source.dtype), source.activation
    least, most = (int(min(max(each, -1000), 1000)) - offset for each in (low, high))
    if least <= INT8[0] and most >= INT8[1]:
        return source
    origin, step = value.origin, node.reader.steps.get(value)
    own = getattr(origin.op, "clip", None) if isinstance(origin, Applied) else None
    if isinstance(origin, Applied) and own is not None:
        # The operator before clips as well; once is enough.
        clip = (min(max(own[0], least), most), min(max(own[1], least), most))
        op = replace(origin.op, **{"clip": clip})
        made = node.write(op, *origin.inputs, stem=origin.stem, step=step)
        return Quantized(made, source.dtype)
    table = np.clip(_ALL, least, most).clip(*INT8).astype("int8")
    zero = 0 if step is None else step.zero_point
    made = node.write(TableLookup(table, zero_point=zero), value, stem="clip", step=step)
    return Quantized(made, source.dtype)


HANDLERS: dict[str, Handler] = {
    "Clip": _clip,
    "Relu": lambda node: bounded(node, node.value(0), 0.0, math.inf),
}
"""Handlers by operator."""
