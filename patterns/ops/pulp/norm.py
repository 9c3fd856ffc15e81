"""Normalization in integers over the last axis, as the PULP flow defines it.

``trunc`` rounds toward zero, ``//`` down, ``isqrt`` is the integer square root.  Divisors are
powers of two.  Results saturate at the bounds of int8.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.rowwise import AffineNorm, LayerNorm, RmsNorm
from patterns.ops.rescale import constant_of
from patterns.primitive import call_primitive, dtype_of, primitive, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import BlockBuilder, Call, Expr, Var

    from byoc_dory.layers import Array

__all__ = [
    "PRIMITIVES",
    "affine_norm",
    "layer_norm",
    "read_affine_norm",
    "read_layer_norm",
    "read_rms_norm",
    "rms_norm",
]

PRIMITIVES = {
    "integer_affine_norm": "affine_norm",
    "integer_layer_norm": "layer_norm",
    "integer_rms_norm": "rms_norm",
}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1
_INT8 = (-128, 127)


def _magnitude(x: Expr, name: str) -> int:
    if dtype_of(x) not in ("int8", "uint8"):
        raise UnsupportedError(
            f"a norm of {dtype_of(x)}", where=f"operator '{name}'", hint="int8 or uint8"
        )
    return 128 if dtype_of(x) == "int8" else 255


def _exponent(divisor: int, name: str) -> int:
    if divisor < 1 or divisor & (divisor - 1):
        raise UnsupportedError(
            f"a division by {divisor}", where=f"operator '{name}'", hint="give a power of two"
        )
    return divisor.bit_length() - 1


def _row_vector(values: Array, length: int, role: str, name: str) -> Array:
    array = constant_of(np.asarray(values).reshape(-1), 1, name)
    if array.size != length:
        raise UnsupportedError(
            f"{array.size} values of the {role} for rows of {length}", where=f"operator '{name}'"
        )
    return array


def _work(worst: int) -> str:
    return "int32" if worst <= _INT32_MAX else "int64"


def _saturated(value: Any, kind: str) -> Any:
    low, high = (tirx.const(limit, kind) for limit in _INT8)
    return tirx.Cast("int8", tirx.max(tirx.min(value, high), low))


def _row_sum(source: te.Tensor, term: Any, kind: str, name: str) -> te.Tensor:
    k = te.reduce_axis((0, source.shape[-1]), "k")
    return te.compute(
        source.shape[:-1], lambda *i: te.sum(tirx.Cast(kind, term(*i, k)), axis=k), name=name
    )


def _roots(squares: te.Tensor, worst: int, kind: str) -> te.Tensor:
    """``isqrt`` of each element, none of which exceeds ``worst``.

    It is how many k from 1 on have a square not above the element.  Rows of bytes need at most 255
    of them, which is little beside the row itself.
    """
    k = te.reduce_axis((0, tirx.const(math.isqrt(worst), "int64")), "r")

    def counted(*index: Any) -> Any:
        candidate = tirx.Cast(kind, k) + tirx.const(1, kind)
        return te.sum(tirx.Cast(kind, candidate * candidate <= squares(*index)), axis=k)

    return te.compute(squares.shape, counted, name="isqrt")


def layer_norm(
    bb: BlockBuilder, x: Expr, weight: Array, bias: Array, divisor: int, *, name: str
) -> Var:
    """Write ``(trunc((x - m) * weight / s) + bias) // divisor``, saturated to int8.

    ``m = trunc(sum(x) / n)`` and ``s = isqrt(sum((x - m)**2) // n + 1)``.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 or uint8; the last axis is the row of n.
        weight, bias: n integers each, that fit int32.
        divisor: a power of two.
        name: of the operator.

    Raises:
        UnsupportedError: if constants do not fit.
    """
    shape, length = shape_of(x), shape_of(x)[-1]
    shift = _exponent(divisor, name)
    w, b = _row_vector(weight, length, "weight", name), _row_vector(bias, length, "bias", name)
    _magnitude(x, name)
    spread = 255  # of bytes, from the middle
    product = spread * int(np.abs(w.astype("int64")).max())
    kind = _work(max(product + int(np.abs(b.astype("int64")).max()), spread * spread * length))

    def body(source: te.Tensor, factor: te.Tensor, summand: te.Tensor) -> te.Tensor:
        sums = _row_sum(source, source, kind, "sums")
        count = tirx.const(length, kind)
        middle = te.compute(sums.shape, lambda *i: tirx.truncdiv(sums(*i), count), name="middle")

        def centred(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) - middle(*index[:-1])

        squares = _row_sum(source, lambda *i: centred(*i) * centred(*i), kind, "squares")
        variance = te.compute(
            sums.shape,
            lambda *i: tirx.truncdiv(squares(*i), count) + tirx.const(1, kind),
            name="variance",
        )
        root = _roots(variance, spread * spread + 1, kind)

        def element(*index: Any) -> Any:
            scaled = centred(*index) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            value = value + tirx.Cast(kind, summand[index[-1]])
            return _saturated(value >> tirx.const(shift, kind), kind)

        return te.compute(source.shape, element, name="normed")

    inputs = [("x", shape, dtype_of(x)), ("weight", w.shape, "int32"), ("bias", b.shape, "int32")]
    func = primitive("integer_layer_norm", inputs, body, {"shift": shift})
    args = [x, relax.const(w, "int32"), relax.const(b, "int32")]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


def rms_norm(bb: BlockBuilder, x: Expr, weight: Array, divisor: int, *, name: str) -> Var:
    """Write ``clip(trunc(x * weight / s) // divisor)``, ``s = isqrt(sum(x**2) // n + 1)``; int8.

    Arguments and errors as above.
    """
    shape, length = shape_of(x), shape_of(x)[-1]
    shift = _exponent(divisor, name)
    w = _row_vector(weight, length, "weight", name)
    most = _magnitude(x, name)
    kind = _work(max(most * int(np.abs(w.astype("int64")).max()), most * most * length))

    def body(source: te.Tensor, factor: te.Tensor) -> te.Tensor:
        def squared(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) * tirx.Cast(kind, source(*index))

        squares = _row_sum(source, squared, kind, "squares")
        count, one = tirx.const(length, kind), tirx.const(1, kind)
        mean = te.compute(
            squares.shape, lambda *i: tirx.truncdiv(squares(*i), count) + one, name="mean"
        )
        root = _roots(mean, most * most + 1, kind)

        def element(*index: Any) -> Any:
            scaled = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            return _saturated(value >> tirx.const(shift, kind), kind)

        return te.compute(source.shape, element, name="normed")

    inputs = [("x", shape, dtype_of(x)), ("weight", w.shape, "int32")]
    func = primitive("integer_rms_norm", inputs, body, {"shift": shift})
    args = [x, relax.const(w, "int32")]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


def affine_norm(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    bias: Array,
    mul: int,
    divisor: int,
    *,
    name: str,
) -> Var:
    """Write ``clip(((x * weight + bias) * mul) // divisor)`` to int8; weight and bias per column.

    Arguments and errors as above.
    """
    shape, length = shape_of(x), shape_of(x)[-1]
    shift = _exponent(divisor, name)
    w, b = _row_vector(weight, length, "weight", name), _row_vector(bias, length, "bias", name)
    largest = _magnitude(x, name) * int(np.abs(w.astype("int64")).max())
    kind = _work((largest + int(np.abs(b.astype("int64")).max())) * max(abs(mul), 1))

    def body(source: te.Tensor, factor: te.Tensor, summand: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            value = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
            value = (value + tirx.Cast(kind, summand[index[-1]])) * tirx.const(mul, kind)
            return _saturated(value >> tirx.const(shift, kind), kind)

        return te.compute(source.shape, element, name="normed")

    inputs = [("x", shape, dtype_of(x)), ("weight", w.shape, "int32"), ("bias", b.shape, "int32")]
    func = primitive("integer_affine_norm", inputs, body, {"mul": mul, "shift": shift})
    args = [x, relax.const(w, "int32"), relax.const(b, "int32")]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


# ------------------------------------------------------------------------------ reading


def _constants(call: Call) -> list[Array]:
    """The constants of a call of one of these functions, in order."""
    return [argument.value.numpy() for argument in list(call.args[1])[1:]]


def read_layer_norm(call: Call, attrs: Mapping[str, Any]) -> LayerNorm:
    """The function of a call that `layer_norm` wrote, and its parameters."""
    weight, bias = _constants(call)
    return LayerNorm(weight, bias, attrs["shift"])


def read_rms_norm(call: Call, attrs: Mapping[str, Any]) -> RmsNorm:
    """The function of a call that `rms_norm` wrote, and its parameters."""
    (weight,) = _constants(call)
    return RmsNorm(weight, attrs["shift"])


def read_affine_norm(call: Call, attrs: Mapping[str, Any]) -> AffineNorm:
    """The function of a call that `affine_norm` wrote, and its parameters."""
    weight, bias = _constants(call)
    return AffineNorm(weight, bias, attrs["mul"], attrs["shift"])
