"""Parts that a file leaves in reals between dequantization and quantization.

A function of one 8-bit tensor, however many nodes it consists of, becomes a table when its result
is quantized; the product of two 8-bit tensors becomes one of integers.  Everything else is computed
in float32, from a dequantized tensor until it is quantized again, and runs on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine import pointwise, pools, unary
from htvm.frontend.onnx.affine.functions import FUNCTIONS, Form, Function
from htvm.frontend.onnx.affine.quantization import real_of_sums
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, split
from htvm.frontend.onnx.affine.real_layers import reduced
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import Bound, Constant, Pending, Real, Value, View
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.float32.combine import RealMatmul
from patterns.ops.float32.elementary import RealSqrt
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.onnxruntime.rounding import OnnxQuantize

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

# ------------------------------------------------------------------ functions of one 8-bit tensor


def _curve(value: Value) -> tuple[View, Function] | None:
    """Return the 8-bit tensor that a value is a function of, and the function."""
    if isinstance(value, View):
        return value, lambda x: x
    if isinstance(value, Pending) and value.bound == Bound():
        return value.of
    return None


def _table(
    node: NodeReader, view: View, function: Function, make: Callable[[], Activation]
) -> Pending:
    def real_form(bound: Bound, _: Constant | None) -> Activation:
        return limited(node, make(), bound)

    pending = unary.pending_map(node, view, function)
    return replace(pending, real=real_form, of=(view, function))


def _mapped_function(node: NodeReader, outer: Function, form: Form) -> Value:
    curve = _curve(node.value(0))

    def make() -> Activation:
        return form(node, node.tensor())

    if curve is None:
        return Real(make())
    view, inner = curve
    return _table(node, view, lambda x: outer(inner(x)), make)


def _function(node: NodeReader) -> Value:
    found = FUNCTIONS[node.op]
    return _mapped_function(node, found.function(node), found.form(node))


def _pow(node: NodeReader) -> Value:
    exponents = node.value(1)
    if not isinstance(exponents, Constant) or exponents.data.size != 1:
        raise node.unsupported("exponents that are not one constant", "one number")
    shape = node.value(0).shape
    if exponents.data.ndim > len(shape):
        raise node.unsupported(
            f"exponents of shape {list(exponents.data.shape)} for {list(shape)}", "one number"
        )
    exponent = np.float32(exponents.real.reshape(-1)[0])
    form = _POWERS.get(float(exponent))
    if form is None:
        raise node.unsupported(
            f"a power of {exponent}", f"one of {', '.join(map(str, sorted(_POWERS)))}"
        )
    return _mapped_function(node, lambda x: np.power(x, exponent), form)


_POWERS: dict[float, Form] = {
    -1.0: FUNCTIONS["Reciprocal"].write,
    -0.5: lambda node, x: node.combine("divide", 1.0, node.write(RealSqrt(), x)),
    0.5: FUNCTIONS["Sqrt"].write,
    2.0: lambda node, x: node.combine("multiply", x, x),
    3.0: lambda node, x: node.combine("multiply", node.combine("multiply", x, x), x),
}


def _composed(node: NodeReader) -> Value | None:
    """Combine operands that are functions of one tensor; return ``None`` if they are not."""
    values = [node.value(index) for index in (0, 1)]
    functions: list[Function] = []
    views: list[View] = []
    for value in values:
        curve = _curve(value)
        if curve is not None:
            views.append(curve[0])
            functions.append(curve[1])
            continue
        # A number, rather than an 8-bit tensor beside another one.
        if not isinstance(value, Constant) or value.data.size != 1:
            return None
        if value.scale is not None and node.op in pointwise.FUNCTIONS:
            return None
        number = np.float32(value.real.reshape(-1)[0])
        functions.append(partial(np.full_like, fill_value=number))
    first = views[0] if views else None
    same = all(v.activation is views[0].activation and v.step == views[0].step for v in views)
    if first is None or not same or all(isinstance(value, View) for value in values):
        return None
    numbers = [value.real for value in values if isinstance(value, Constant)]
    if any(item.ndim > len(first.shape) or not np.isfinite(item).all() for item in numbers):
        return None
    if node.op == "Div" and isinstance(values[1], Constant) and not values[1].real.all():
        return None
    fold = pointwise.FOLDED[node.op]

    def function(x: Array) -> Array:
        return np.asarray(fold(functions[0](x), functions[1](x)), "float32")

    def make() -> Activation:
        a, b = (node.operand(index) for index in (0, 1))
        return node.combine(pointwise.REAL[node.op], a, b)

    return _table(node, first, function, make)


# ------------------------------------------------------------------ products of two tensors


def product(node: NodeReader) -> Value:
    """Return a MatMul of two computed tensors, or of reals."""
    first, second = (node.value(index) for index in (0, 1))
    if isinstance(first, View) and isinstance(second, View):
        return integer_product(node, first, second)
    _product_shape(node, first.shape, second.shape)
    tensors, (x, y) = split([node.operand(index) for index in (0, 1)])
    return Real(node.write(RealMatmul(a=x, b=y), *tensors))


def _product_shape(node: OnnxNode, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if min(len(a), len(b)) < 2 or a[-1] != b[-2]:
        raise node.damaged(f"a product of shapes {list(a)} and {list(b)}")
    try:
        outer = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError as error:
        raise node.damaged(f"a product of shapes {list(a)} and {list(b)}") from error
    return (*outer, a[-2], b[-1])


def integer_product(node: NodeReader, a: View, b: View) -> Pending:
    """Return the product of two 8-bit tensors, pending until it is quantized."""
    shape = _product_shape(node, a.shape, b.shape)

    def sums() -> Activation:
        return node.write(IntegerMatmul(), _centred(node, a), _centred(node, b))

    scale = np.float32(a.step.scale) * np.float32(b.step.scale)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        made = real_of_sums(node, sums(), np.asarray([scale], "float32"), 0)
        return limited(node, made, bound)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        ratio = np.asarray([scale / np.float32(step.scale)], "float32")
        steps = real_of_sums(node, sums(), ratio, 0)
        # In steps of the output, so that rectifiers bound the rounded values.
        low, high = (float(limit - step.zero_point) for limit in clip)
        bounds = Bound(low, high) if clip != (-128, 127) else Bound()
        inside = limited(node, steps, bounds)
        op = OnnxQuantize(1.0, step.zero_point)
        return node.write(op, inside, step=step)

    return Pending(shape, finish, real_form)


def _centred(node: NodeReader, view: View) -> Activation:
    """Return the integers minus their zero point, int16; unchanged if it is 0."""
    zero = view.step.zero_point
    if zero == 0:
        return view.activation
    op = Rescale.moving(-zero, (-256, 255), "int16")
    return node.write(op, view.activation)


# ------------------------------------------------------------------ rows


def _softmax(node: NodeReader) -> Value:
    value = node.value(0)

    def make() -> Activation:
        source = node.tensor()
        rank = len(source.shape)
        axis = forms.axis_of(node, _softmax_axis(node), rank)
        axes = tuple(range(axis, rank)) if node.reader.graph.opset < 13 else (axis,)
        moved = node.combine("subtract", source, node.reduce("maximum", source, axes))
        terms = node.exp(moved)
        return node.combine("divide", terms, node.reduce("add", terms, axes))

    axis = _softmax_axis(node)
    last = isinstance(value, View) and axis % len(value.shape) == len(value.shape) - 1
    if not isinstance(value, View) or not last or node.reader.session.kernel(node) is None:
        return Real(make())
    waiting = pointwise.softmax(node, value, axis)
    return replace(waiting, real=lambda bound, _: limited(node, make(), bound))


def _softmax_axis(node: NodeReader) -> int:
    return node.integer("axis", -1 if node.reader.graph.opset >= 13 else 1)


def _mean(node: NodeReader) -> Value:
    value = node.value(0)
    axes = forms.axes_of(node, 1) or ()
    real = partial(reduced, node, NodeReader.mean, alone=True)
    maps = isinstance(value, View) and len(value.shape) == 4
    if not isinstance(value, View) or not maps or sorted(axis % 4 for axis in axes) != [2, 3]:
        return real()
    shape = None if node.integer("keepdims", 1) else value.shape[:2]
    return pools.average(node, value, pools.global_windows(node, value), shape, real_form=real)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(pointwise.FOLDED, lambda node: _composed(node) or pointwise.arithmetic(node)),
    "MatMul": product,
    "Pow": _pow,
    "ReduceMean": _mean,
    "Softmax": _softmax,
}
"""Handlers by operator."""
