"""Functions of one 8-bit tensor, element by element: tables of 256 entries, or rescaling.

The float function is computed for all 256 arguments when the file is read, between dequantization
and quantization in float32, as onnxruntime does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array, OnnxRequant
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
from htvm.frontend.onnx.affine.values import (
    INT8,
    Bound,
    Constant,
    Pending,
    Quantized,
    Real,
    Value,
    View,
)
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import converted
from patterns.ops.convert import Convert
from patterns.ops.float32.combine import Function as Combination
from patterns.ops.float32.combine import RealCombine
from patterns.ops.onnxruntime.rounding import float_scale
from patterns.ops.table_map import TableLookup

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

Function: TypeAlias = "Callable[[Array], Array]"
"""A function of float32 arrays."""

_ALL = np.arange(-128, 128)


def _table(view_step: Quantization, step: Quantization, clip: Clip, function: Function) -> Array:
    """Return a table, int8 [256], for arguments from -128 to 127."""
    real = (_ALL - view_step.zero_point).astype("float32") * np.float32(view_step.scale)
    with np.errstate(all="ignore"):
        ratio = np.asarray(function(real), "float32") / np.float32(step.scale)
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
    table = _table(view.step, step, clip, function)
    source = view.activation
    requant = _conversion(view.step, step, clip, table)
    if requant is not None:
        convert = Convert(requant, clip, offset=-view.step.zero_point)
        return node.write(convert, source, step=step)
    op = TableLookup(table, zero_point=step.zero_point)
    return node.write(op, source, stem=node.op.lower(), step=step)


def requantized(node: NodeReader, view: View, step: Quantization, clip: Clip = INT8) -> Activation:
    """Return an 8-bit tensor in another quantization."""
    if node.reader.rounding == "onnx":
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


def _relu(node: NodeReader) -> Value:
    return bounded(node, node.value(0), 0.0, math.inf)


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


# ------------------------------------------------------------------------------ tables


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)), "float32")


def _erf(x: Array) -> Array:
    return np.asarray([math.erf(float(value)) for value in x], "float32")


def _elu(node: OnnxNode) -> Function:
    alpha = np.float32(node.number("alpha", 1.0))
    return lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _celu(node: OnnxNode) -> Function:
    alpha = np.float32(celu_width(node))
    return lambda x: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))


def celu_width(node: OnnxNode) -> float:
    """Return ``alpha`` of a Celu, which divides by it."""
    alpha = node.number("alpha", 1.0)
    if np.float32(alpha) == 0:
        raise node.damaged(f"attribute 'alpha' is {alpha}", "give another number than 0")
    return alpha


def _selu(node: OnnxNode) -> Function:
    alpha = np.float32(node.number("alpha", 1.67326319217681884765625))
    gamma = np.float32(node.number("gamma", 1.05070102214813232421875))
    return lambda x: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _swish(node: OnnxNode) -> Function:
    alpha = np.float32(node.number("alpha", 1.0))
    return lambda x: x * _sigmoid(alpha * x)


def _thresholded(node: OnnxNode) -> Function:
    alpha = np.float32(node.number("alpha", 1.0))
    return lambda x: np.where(x > alpha, x, np.float32(0))


def _leaky(node: OnnxNode) -> Function:
    alpha = np.float32(node.number("alpha", 0.01))
    return lambda x: np.where(x >= 0, x, alpha * x)


def _hard_sigmoid(node: OnnxNode) -> Function:
    alpha, beta = np.float32(node.number("alpha", 0.2)), np.float32(node.number("beta", 0.5))
    return lambda x: np.clip(alpha * x + beta, 0, 1)


def _gelu(node: OnnxNode) -> Function:
    if node.text("approximate", "none") == "tanh":
        root = np.float32(math.sqrt(2 / math.pi))
        return lambda x: x * 0.5 * (1 + np.tanh(root * (x + np.float32(0.044715) * x**3)))
    return lambda x: x * 0.5 * (1 + _erf(x * np.float32(math.sqrt(0.5))))


FUNCTIONS: dict[str, Callable[[OnnxNode], Function]] = {
    "Abs": lambda _: np.abs,
    "Ceil": lambda _: np.ceil,
    "Celu": _celu,
    "Elu": _elu,
    "Erf": lambda _: _erf,
    "Exp": lambda _: np.exp,
    "Floor": lambda _: np.floor,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _: lambda x: x * np.clip(x / np.float32(6) + np.float32(0.5), 0, 1),
    "LeakyRelu": _leaky,
    "Log": lambda _: np.log,
    "Mish": lambda _: lambda x: x * np.tanh(np.logaddexp(x, np.float32(0))),
    "Neg": lambda _: np.negative,
    "Reciprocal": lambda _: lambda x: np.float32(1) / x,
    "Round": lambda _: np.rint,
    "Selu": _selu,
    "Sigmoid": lambda _: _sigmoid,
    "Sign": lambda _: np.sign,
    "Softplus": lambda _: lambda x: np.logaddexp(x, np.float32(0)),
    "Softsign": lambda _: lambda x: x / (1 + np.abs(x)),
    "Sqrt": lambda _: np.sqrt,
    "Swish": _swish,
    "Tanh": lambda _: np.tanh,
    "ThresholdedRelu": _thresholded,
}


HANDLERS: dict[str, Handler] = {
    "Clip": _clip,
    "Relu": _relu,
}
"""Handlers by operator."""
