"""Interval analysis of the integer form: no int32 of the generated C may overflow.

Signed overflow is undefined in C, and no operator's definition includes it.  Weights are known, so
the sums of a layer are bounded exactly; operations after them are bounded one by one. PrimFuncs
ensure themselves that they do not overflow inside; their results may be anything their type can
hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from patterns.names import name_of
from patterns.ops.integer.limits import check_int32
from patterns.ops.requantize import tflite_reach
from patterns.primitive import dtype_of, kind_of, parameters_of, shape_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var


@dataclass(frozen=True, eq=False)
class Interval:
    """Smallest and largest value: int64 arrays that broadcast over the tensor (per channel)."""

    low: Any
    high: Any

    @property
    def magnitude(self) -> int:
        """The largest absolute value."""
        return max(-int(np.min(self.low)), int(np.max(self.high)))


# Where a product with a float32 scale could exceed it, it saturates.
_FLOAT_PRODUCT = Interval(np.int64(-(2**30)), np.int64(2**30))


def _type_interval(dtype: str) -> Interval:
    limits = np.iinfo(dtype)
    return Interval(np.int64(limits.min), np.int64(limits.max))


_NARROW = ("int8", "uint8", "int16")


def check_ranges(module: IRModule) -> dict[Var, Interval]:
    """Refuse a module in which an int32 value may exceed the range of int32.

    Returns:
        The intervals of the variables of ``main`` for which one is known.

    Raises:
        UnsupportedError: the message names the layer and the bound.
    """
    known: dict[Var, Interval] = {}
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            interval = _of(module, binding.value, known)
            if interval is None:
                continue
            low, high = int(np.min(interval.low)), int(np.max(interval.high))
            check_int32(low, high, f"layer '{name_of(binding.value) or binding.var.name}'")
            known[binding.var] = interval
    return known


def _of(module: IRModule, value: Expr, known: Mapping[Var, Interval]) -> Interval | None:
    """Return the interval of a binding's value; ``None`` if unknown."""
    if not isinstance(value, relax.Call):
        return known.get(value) if isinstance(value, relax.Var) else None
    if dtype_of(value) in _NARROW:
        return _type_interval(dtype_of(value))
    if dtype_of(value) != "int32":
        return None
    operator = str(getattr(value.op, "name", ""))
    if kind_of(module, value) == "tflite_requantize":
        return _scaled(*(_argument(arg, known) for arg in value.args[1]))
    if kind_of(module, value) in ("onnx_requantize", "torch_requantize"):
        return _FLOAT_PRODUCT
    if kind_of(module, value) == "mul_shift_requantize":
        clip = parameters_of(module, value)["clip"]
        assert isinstance(clip, tuple)
        low, high = clip
        return Interval(np.int64(low), np.int64(high))
    if operator == "relax.call_tir":
        return _type_interval("int32")
    if operator == "relax.clip":
        return _clipped(value, _argument(value.args[0], known))
    rule = _RULES.get(operator)
    if rule is None:
        return None
    if operator in ("relax.nn.conv2d", "relax.matmul"):
        return rule(value)
    parts = [_argument(arg, known) for arg in value.args]
    return None if None in parts else rule(*parts)


def _argument(arg: Expr, known: Mapping[Var, Interval]) -> Interval | None:
    if isinstance(arg, GenericConst):
        data = arg.value.numpy().astype("int64")
        return Interval(data, data)
    if isinstance(arg, relax.Var):
        dtype = dtype_of(arg)
        if dtype in _NARROW:
            return _type_interval(dtype)
        return known.get(arg, _type_interval("int32") if dtype == "int32" else None)
    return None


def _sums(call: Any) -> Interval:
    """Return the interval of sums of products, per output channel if the weights are known."""
    data = _type_interval(dtype_of(call.args[0]))
    low, high = data.low, data.high
    if not isinstance(call.args[1], GenericConst):
        other = _type_interval(dtype_of(call.args[1]))
        sizes = shape_of(call.args[1])
        terms = sizes[-2]
        if call.op.name == "relax.nn.conv2d":
            terms = math.prod(sizes) // sizes[str(call.attrs.kernel_layout).index("O")]
        corners = [a * b * terms for a in (low, high) for b in (other.low, other.high)]
        return Interval(min(corners), max(corners))
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
    return Interval(positive * low + negative * high, positive * high + negative * low)


def _scaled(acc: Any, multiplier: Any, shift: Any) -> Interval | None:
    """Return the interval after TFLite's requantization, by channels where sums have them."""
    if acc is None or multiplier is None or shift is None:
        return None
    largest = np.maximum(-np.ravel(acc.low), np.ravel(acc.high))
    if largest.size not in (1, multiplier.high.size):
        largest = largest.max()
    bound = np.int64(tflite_reach(largest, multiplier.high, shift.high))
    return Interval(-bound, bound)


def _clipped(call: Any, interval: Interval | None) -> Interval:
    """Return the interval after a clip, which holds whatever came before."""
    low, high = (np.int64(int(arg.value)) for arg in call.args[1:3])
    if interval is None:
        return Interval(low, high)
    return Interval(np.clip(interval.low, low, high), np.clip(interval.high, low, high))


def _corners(operation: Callable[[Any, Any], Any]) -> Callable[[Interval, Interval], Interval]:
    """Return the interval function of an operation that is monotonic in each operand."""

    def rule(a: Interval, b: Interval) -> Interval:
        corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Interval(
            np.minimum.reduce(np.broadcast_arrays(*corners)),
            np.maximum.reduce(np.broadcast_arrays(*corners)),
        )

    return rule


_RULES: dict[str, Callable[..., Interval | None]] = {
    "relax.nn.conv2d": _sums,
    "relax.matmul": _sums,
    "relax.add": _corners(np.add),
    "relax.subtract": _corners(np.subtract),
    "relax.multiply": _corners(np.multiply),
    "relax.right_shift": _corners(np.right_shift),
    "relax.astype": lambda value: value,
    # Which channel is where is no longer known.
    "relax.permute_dims": lambda value: Interval(np.min(value.low), np.max(value.high)),
}
