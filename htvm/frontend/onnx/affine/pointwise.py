"""Sums, differences and products of two tensors, and softmax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from byoc_dory.layers import Array, OnnxRequant, Shift
from htvm.frontend.onnx.affine.reader import NodeReader, offset_of
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import Bound, Constant, Pending, Real, Value, View
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.op import Op
from patterns.ops.add import Add
from patterns.ops.broadcast import broadcast
from patterns.ops.float32 import combine
from patterns.ops.onnxruntime.average import OnnxSoftmax
from patterns.ops.onnxruntime.binary import Function, OnnxAdd, OnnxBinary
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

Operand: TypeAlias = "View | tuple[Array, Quantization]"
"""A tensor, or int8 elements and their quantization."""

FUNCTIONS: dict[str, Function] = {
    "Add": "add",
    "Mul": "multiply",
    "Sub": "subtract",
}
REAL: dict[str, combine.Function] = {**FUNCTIONS, "Div": "divide"}
"""Function of reals by operator."""


def quantized_constant(node: OnnxNode, constant: Constant) -> tuple[Array, Quantization]:
    """Return a dequantized 8-bit constant as int8, and its quantization.

    Raises:
        UnsupportedError: it has several scales, or another type.
    """
    assert constant.scale is not None and constant.zero_point is not None
    dtype = constant.data.dtype.name
    if constant.scale.size != 1 or dtype not in ("int8", "uint8"):
        raise node.unsupported(
            f"a constant operand of type {dtype} with {constant.scale.size} scales",
            "int8 or uint8 with one scale",
        )
    # An array, even for a single number without axes.
    moved = np.asarray(constant.data.astype("int64") - offset_of(dtype)).astype("int8")
    zero = int(constant.zero_point.reshape(-1)[0]) - offset_of(dtype)
    return moved, Quantization(float(constant.scale.reshape(-1)[0]), zero)


def binary(
    node: NodeReader,
    function: Function,
    a: Operand,
    b: Operand,
    *,
    kernel: str | None,
) -> Pending:
    """Return a function of two 8-bit tensors, pending until it is quantized.

    ``kernel`` is the type of the integers in onnxruntime's own kernel, int8 or uint8; ``None`` if
    it is rounded after each step in reals.
    """
    parts = [item.activation if isinstance(item, View) else item[0] for item in (a, b)]
    steps = [item.step if isinstance(item, View) else item[1] for item in (a, b)]
    tensors = [item for item in parts if isinstance(item, Activation)]
    shape = broadcast(parts[0].shape, parts[1].shape)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        scales = [np.float32(item.scale) for item in steps]
        output = np.float32(step.scale)
        ratios = [scale / output for scale in scales]
        if function == "multiply":
            ratios = [scales[0] * scales[1] / output]
        multipliers, shifts = zip(*(float_scale(float(ratio)) for ratio in ratios), strict=True)
        zeros = (steps[0].zero_point, steps[1].zero_point)
        requant = OnnxRequant(multipliers, shifts, step.zero_point, zeros)

        reals = () if kernel else (*(item.scale for item in steps), step.scale)
        kind: Literal["int8", "uint8"] = "uint8" if kernel == "uint8" else "int8"

        first, second = (None if isinstance(item, Activation) else item for item in parts)
        op: Op = OnnxBinary(requant, clip, function, first, second, steps=reals, kernel=kind)
        if function == "add" and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
            op = OnnxAdd(requant, clip, steps=reals, kernel=kind)
            # In one step, the sum is that of the integers, which accelerators compute, too.
            if node.reader.rounding == "torch" and {*steps, step} == {Quantization(step.scale, 0)}:
                op = Add(Shift(0), clip)
        return node.write(op, *tensors, step=step)

    def real_form(bound: Bound, _: Constant | None) -> Activation:
        operands: list[Activation | Array] = [
            node.realised(item)
            if isinstance(item, View)
            else (item[0].astype("int64") - item[1].zero_point) * np.float32(item[1].scale)
            for item in (a, b)
        ]
        return limited(node, node.combine(function, *operands), bound)

    return Pending(shape, finish, real_form)


def arithmetic(node: NodeReader) -> Value:
    """Return a sum, difference, product or quotient of two tensors or constants."""
    first, second = node.value(0), node.value(1)
    if isinstance(first, Constant) and isinstance(second, Constant):
        elements = math.prod(broadcast(first.shape, second.shape))
        node.reader.graph.budget.spend("folded_elements", elements, node.where)
        return Constant(FOLDED[node.op](first.real, second.real))
    biased = with_bias(first, second) if node.op == "Add" else None
    if biased is not None:
        return biased
    for value in (first, second):
        if isinstance(value, Constant) and np.isnan(value.real).any():
            raise node.damaged("a constant operand that holds NaN", "export the file again")
    operands = [_operand(node, value) for value in (first, second)]
    if node.op in FUNCTIONS and all(operand is not None for operand in operands):
        a, b = operands
        assert a is not None and b is not None
        kernel = node.reader.session.kernel(node)
        return binary(node, FUNCTIONS[node.op], a, b, kernel=kernel)
    _check_number(node, first, second)
    parts: list[Activation | Array] = [
        value.real if isinstance(value, Constant) else node.realised(value)
        for value in (first, second)
    ]
    return Real(node.combine(REAL[node.op], *parts))


FOLDED: dict[str, Any] = {
    "Add": np.add,
    "Div": np.divide,
    "Mul": np.multiply,
    "Sub": np.subtract,
}


def _operand(node: OnnxNode, value: Value) -> Operand | None:
    if isinstance(value, View):
        return value
    if isinstance(value, Constant) and value.scale is not None and value.scale.size == 1:
        return None if value.data.dtype == np.int16 else quantized_constant(node, value)
    return None  # reals, among them constants with several scales


def with_bias(pending: Value, bias: Value) -> Pending | None:
    """Return the sum of a product and a constant per channel; ``None`` if they are none."""
    if isinstance(pending, Constant):
        pending, bias = bias, pending
    if not isinstance(pending, Pending) or not isinstance(bias, Constant):
        return None
    axis, rank = pending.bias_axis, len(pending.shape)
    if axis is None or pending.bias is not None or pending.bound != Bound():
        return None
    if bias.data.ndim > rank:
        return None
    own = (1,) * (rank - bias.data.ndim) + bias.data.shape
    if any(
        size not in (1, pending.shape[axis] if at == axis else 1) for at, size in enumerate(own)
    ):
        return None
    return replace(pending, bias=bias)


def _check_number(node: OnnxNode, first: Value, second: Value) -> None:
    """Check that a number beside an 8-bit tensor leaves something to compute.

    Raises:
        UnsupportedError: it is not finite, or the tensor is divided by zero.
    """
    for value, other, divides in ((first, second, node.op == "Div"), (second, first, False)):
        if not isinstance(value, View) or not isinstance(other, Constant):
            continue
        if other.data.size == 1 and other.data.ndim <= len(value.shape):
            number = np.float32(other.real.reshape(-1)[0])
            if not np.isfinite(number) or (divides and number == 0):
                raise node.unsupported(
                    f"the constant operand {number}", "all results would be infinite or no number"
                )


# ------------------------------------------------------------------------------ softmax


def softmax(node: NodeReader, view: View, axis: int) -> Pending:
    """Return a softmax over the last axis, pending until it is quantized."""
    rank = len(view.shape)
    if not -rank <= axis < rank:
        raise node.damaged(f"axis {axis} of a tensor of {rank} axes")
    if axis % rank != rank - 1:
        raise node.unsupported(f"a softmax over axis {axis} of {rank}", "use the last axis")

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        op = OnnxSoftmax(view.step.scale, step.scale, step.zero_point, clip)
        return node.write(op, view.activation, step=step)

    return Pending(view.shape, finish)
