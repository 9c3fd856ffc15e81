"""Element-wise functions in integers, as the PULP flow defines them: GELU, hard swish, division."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "divide", "gelu", "hard_swish", "tabulated"]

PRIMITIVES = {
    "integer_divide": "divide",
    "integer_gelu": "gelu",
    "integer_hard_swish": "hard_swish",
}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1


def _magnitude(x: Expr) -> int:
    limits = np.iinfo(dtype_of(x))
    return max(-int(limits.min), int(limits.max))


def _element_wise(
    bb: BlockBuilder,
    x: Expr,
    kind: str,
    working: str,
    function: Callable[[Any], Any],
    parameters: dict[str, Parameter],
    name: str,
) -> Var:
    """Write an int32 function of each element, computed in type ``working``."""
    shape = shape_of(x)

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            return tirx.Cast("int32", function(tirx.Cast(working, source(*index))))

        return te.compute(extents(shape), element, name=kind)

    func = primitive(kind, [("x", shape, dtype_of(x))], body, parameters)
    return call_primitive(bb, func, [x], shape, "int32", name, last=True)


def _check(worst: int, what: str, name: str) -> None:
    if worst > _INT32_MAX:
        raise UnsupportedError(
            f"{what} may reach {worst}",
            where=f"operator '{name}'",
            hint="its result is kept in 32 bits; narrow its input, or its factors",
        )


def gelu(bb: BlockBuilder, x: Expr, b: int, one: int, *, name: str) -> Var:
    """Write ``x * ((one + L) >> 1)``, ``L = sgn(x) * (one - (min(|x|, -b) + b)**2)``; int32.

    Args:
        bb: where to write, inside a dataflow block.
        x: of any integer type.
        b: where the error function is flat, negative.
        one: the integer that stands for 1.0.
        name: of the operator.

    Raises:
        UnsupportedError: if the result may not fit int32, or ``b`` is positive.
    """
    if b > 0:
        raise UnsupportedError(f"b = {b}", where=f"operator '{name}'", hint="b is negative")
    _check(_magnitude(x) * (abs(one) + b * b), "a GELU", name)

    def function(value: Any) -> Any:
        def of(number: int) -> Any:
            return tirx.const(number, "int32")

        inner = tirx.min(tirx.max(value, -value), of(-b)) + of(b)
        flat = of(one) - inner * inner
        signed = tirx.Select(value > 0, flat, tirx.Select(value < 0, -flat, of(0)))
        return value * ((of(one) + signed) >> of(1))

    return _element_wise(bb, x, "integer_gelu", "int32", function, {"b": b, "one": one}, name)


def hard_swish(bb: BlockBuilder, x: Expr, three: int, six: int, sixth: int, *, name: str) -> Var:
    """Write ``x * clip(x + three, 0, six) * sixth``, int32.

    Args:
        bb: where to write, inside a dataflow block.
        x: of any integer type.
        three, six, sixth: the integers that stand for 3.0, 6.0 and 1 / 6.
        name: of the operator.

    Raises:
        UnsupportedError: if the result may not fit int32.
    """
    _check(_magnitude(x) * max(six, 1) * max(abs(sixth), 1), "a hard swish", name)
    _check(_magnitude(x) + abs(three), "a hard swish", name)

    def function(value: Any) -> Any:
        low, high = tirx.const(0, "int32"), tirx.const(six, "int32")
        gate = tirx.max(tirx.min(value + tirx.const(three, "int32"), high), low)
        return value * gate * tirx.const(sixth, "int32")

    parameters: dict[str, Parameter] = {"three": three, "six": six, "sixth": sixth}
    return _element_wise(bb, x, "integer_hard_swish", "int32", function, parameters, name)


def divide(bb: BlockBuilder, x: Expr, numerator: int, denominator: int, *, name: str) -> Var:
    """Write ``(numerator * x) // denominator``, which floors; int32.

    Args:
        bb: where to write, inside a dataflow block.
        x: of any integer type.
        numerator: below 2**62 in magnitude with ``x``.
        denominator: positive, fits int32.
        name: of the operator.

    Raises:
        UnsupportedError: if a number is out of these ranges, or the result does not fit int32.
    """
    worst = _magnitude(x) * abs(numerator)
    if not 0 < denominator <= _INT32_MAX or worst + denominator >= 2**62:
        raise UnsupportedError(
            f"a division of up to {worst} by {denominator}",
            where=f"operator '{name}'",
            hint="the divisor must be positive and fit int32, the dividend 62 bits",
        )
    _check(-(-worst // denominator), "a quotient", name)
    working = "int32" if worst + denominator <= _INT32_MAX else "int64"

    def function(value: Any) -> Any:
        divisor = tirx.const(denominator, working)
        product = value * tirx.const(numerator, working)
        # What C's division rounds toward zero is lowered before.
        lowered = tirx.Select(product < 0, product - (divisor - tirx.const(1, working)), product)
        return tirx.truncdiv(lowered, divisor)

    parameters: dict[str, Parameter] = {"numerator": numerator, "denominator": denominator}
    return _element_wise(bb, x, "integer_divide", working, function, parameters, name)


# ------------------------------------------------------------------------------ reading


def tabulated(kind: str, attrs: Mapping[str, Any], dtype: str) -> list[int] | None:
    """What a GELU or hard swish makes of each byte of ``dtype``; ``None`` for other kinds.

    Args:
        kind: of the operator.
        attrs: parameters of its PrimFunc.
        dtype: of what it reads, int8 or uint8.

    Returns:
        256 integers, by the byte of the argument in two's complement.
    """
    values = np.arange(256, dtype="uint8").view(dtype).tolist()
    if kind == "gelu":
        return [_gelu_of(x, attrs["b"], attrs["one"]) for x in values]
    if kind == "hard_swish":
        three, six, sixth = attrs["three"], attrs["six"], attrs["sixth"]
        return [x * min(max(x + three, 0), six) * sixth for x in values]
    return None


def _gelu_of(x: int, b: int, one: int) -> int:
    flat = one - (min(abs(x), -b) + b) ** 2
    signed = flat if x > 0 else -flat if x < 0 else 0
    return x * ((one + signed) >> 1)
