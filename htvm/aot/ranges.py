"""Interval analysis of the integer form: no int32 of the generated C may overflow.

Signed overflow is undefined in C, and no definition of an operator means it.  Weights are known,
so the sums of a layer are bounded exactly; what follows them is bounded operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from byoc_dory.errors import UnsupportedError
from patterns.names import name_of
from patterns.primitive import kind_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var

__all__ = ["check_ranges"]

_INT32 = (-(2**31), 2**31 - 1)


@dataclass(frozen=True, eq=False)
class _Interval:
    """Smallest and largest value: int64 arrays that broadcast over the tensor (per channel)."""

    low: Any
    high: Any


_INT8 = _Interval(np.int64(-128), np.int64(127))


def check_ranges(module: IRModule) -> None:
    """Refuse a module in which an int32 value may leave the range of int32.

    Raises:
        UnsupportedError: names the layer and the bound.
    """
    known: dict[Var, _Interval] = {}
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            interval = _of(module, binding.value, known)
            if interval is None:
                continue
            low, high = int(np.min(interval.low)), int(np.max(interval.high))
            if low < _INT32[0] or high > _INT32[1]:
                raise UnsupportedError(
                    f"values between {low} and {high} do not fit 32 bits",
                    where=f"layer '{name_of(binding.value) or binding.var.name}'",
                    hint="smaller weights, biases or requantization factors are needed",
                )
            known[binding.var] = interval


def _of(module: IRModule, value: Expr, known: Mapping[Var, _Interval]) -> _Interval | None:
    """The interval of a binding's value; ``None`` if nothing is known about it."""
    if not isinstance(value, relax.Call):
        return known.get(value) if isinstance(value, relax.Var) else None
    if _is_int8(value):
        return _INT8
    operator = str(getattr(value.op, "name", ""))
    if kind_of(module, value) == "tflite_requantize":
        return _scaled(*(_argument(arg, known) for arg in value.args[1]))
    rule = _RULES.get(operator)
    if rule is None:
        return None
    if operator in ("relax.nn.conv2d", "relax.matmul"):
        return rule(value)
    parts = [_argument(arg, known) for arg in value.args]
    return None if None in parts else rule(*parts)


def _is_int8(expr: Expr) -> bool:
    return isinstance(expr.ty, relax.TensorType) and str(expr.ty.dtype.dtype) == "int8"


def _argument(arg: Expr, known: Mapping[Var, _Interval]) -> _Interval | None:
    if isinstance(arg, GenericConst):
        data = arg.value.numpy().astype("int64")
        return _Interval(data, data)
    if isinstance(arg, relax.Var):
        return _INT8 if _is_int8(arg) else known.get(arg)
    return None


def _sums(call: Any) -> _Interval | None:
    """Sums of products of int8 inputs with known weights, per output channel."""
    if not isinstance(call.args[1], GenericConst):
        terms = int(call.args[1].ty.shape[-2]) if call.op.name == "relax.matmul" else 0
        bound = np.int64(terms * 128 * 128)
        return _Interval(-bound, bound) if terms else None
    weight = call.args[1].value.numpy().astype("int64")
    shape: tuple[int, ...] = (-1,)
    if call.op.name == "relax.matmul":
        channel = weight.ndim - 1
    else:
        channel = str(call.attrs.kernel_layout).index("O")
        shape = (-1,) if str(call.attrs.data_layout) == "NHWC" else (-1, 1, 1)
    axes = tuple(axis for axis in range(weight.ndim) if axis != channel)
    positive = np.where(weight > 0, weight, 0).sum(axes).reshape(shape)
    negative = np.where(weight < 0, weight, 0).sum(axes).reshape(shape)
    return _Interval(negative * 127 - positive * 128, positive * 127 - negative * 128)


def _scaled(acc: Any, multiplier: Any, shift: Any) -> _Interval | None:
    """TFLite's requantization keeps a magnitude, times a power of two if it shifts left."""
    if acc is None or multiplier is None or shift is None:
        return None
    largest = np.maximum(np.abs(np.min(acc.low)), np.abs(np.max(acc.high)))
    bound = np.minimum(largest << np.int64(max(0, int(np.max(shift.high)))), 2**31 - 1)
    return _Interval(-bound, bound)


def _corners(operation: Callable[[Any, Any], Any]) -> Callable[[_Interval, _Interval], _Interval]:
    """The interval of an operation that is monotonous in each operand."""

    def rule(a: _Interval, b: _Interval) -> _Interval:
        corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return _Interval(
            np.minimum.reduce(np.broadcast_arrays(*corners)),
            np.maximum.reduce(np.broadcast_arrays(*corners)),
        )

    return rule


_RULES: dict[str, Callable[..., _Interval | None]] = {
    "relax.nn.conv2d": _sums,
    "relax.matmul": _sums,
    "relax.add": _corners(np.add),
    "relax.subtract": _corners(np.subtract),
    "relax.multiply": _corners(np.multiply),
    "relax.right_shift": _corners(np.right_shift),
    "relax.astype": lambda value: value,
}
