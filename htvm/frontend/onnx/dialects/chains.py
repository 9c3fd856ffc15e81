"""Multiply, add, divide, floor, clip: requantization as nodes, as quantlib and DIANA have it.

quantlib's is ``y = clip(floor((acc * mul + add) / divisor))`` with a power of two, which floors; a
half added to the quotient makes it round.  Eight-bit initialisers are two's complement, also where
they are declared as UINT8.

DIANA's is to divide, floor and clip with powers of two, which become shifts.  Layers of the analog
core have a gain and a converter before their scaling: divide by the gain, floor, clip to [-32, 31],
multiply, add, divide, floor, clip; `write` turns these into one operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.dialect import Options
from htvm.frontend.onnx.dialects.reader import (
    bare_chains,
    floor_chains,
    holds_integers,
    integer_reader,
)
from htvm.frontend.onnx.dialects.standard import STANDARD
from htvm.frontend.onnx.dialects.values import (
    Converted,
    Handler,
    IntegerNode,
    Live,
    PendingSum,
    Products,
    Scaled,
    Value,
    limits_of,
)
from htvm.frontend.onnx.dialects.write import (
    Scaling,
    converter_of,
    live,
    per_channel,
    requantize,
    write_analog,
    written_value,
)
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

_CASTS = {1: "", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "", 10: "", 11: ""}
"""ONNX's number of a type -> the integers it holds; other types hold all integers that occur."""


def exponent_of(node: OnnxNode, divisor: int) -> int:
    """Return the exponent of a divisor that is a power of two.

    Raises:
        UnsupportedError: it is not a power of two, or above 2**31.
    """
    if not 1 <= divisor <= 2**31 or divisor & (divisor - 1):
        raise node.unsupported(
            f"a division by {divisor}",
            "divisors are powers of two up to 2**31, which become shifts",
        )
    return divisor.bit_length() - 1


def _operands(node: IntegerNode) -> tuple[int, Array] | None:
    """Return (index of the computed operand, the other one as stored) if one operand is known."""
    for index in (0, 1):
        constant = node.constant(index)
        if constant is not None:
            return 1 - index, constant
    return None


def _add(node: IntegerNode) -> Value:
    operands = _operands(node)
    if operands is None:
        return _sum(node)
    return _plus(node, node.value(operands[0]), operands[1])


def _plus(node: IntegerNode, value: Value, constant: Array) -> Value:
    """Return a value plus a constant as stored."""
    if isinstance(value, Scaled):
        return replace(value, node=node, add=value.add + _steps(node, value, constant))
    summand = node.whole(constant, "the constant")
    if isinstance(value, Products):
        bias = per_channel(summand, value)
        if bias is not None:
            return replace(value, bias=value.bias + bias)
    return node.combine("add", written_value(value), summand)


def _steps(node: IntegerNode, value: Scaled, summand: Array) -> Array:
    """Return a constant in steps of a division that it is added to, int64: 0.5 makes it round.

    Raises:
        UnsupportedError: it is no whole number of steps, or no integer behind a Floor.
    """
    if value.floored:
        return node.whole(summand, "the constant behind a Floor") * value.divisor
    steps = summand.astype("float64") * value.divisor
    return node.whole(steps, f"the constant times the divisor {value.divisor}")


def _sum(node: IntegerNode) -> Value:
    a, b = live(node, 0), live(node, 1)
    narrow = {a.activation.dtype, b.activation.dtype} <= {"int8", "uint8"}
    if narrow and a.shape == b.shape:
        return PendingSum(node, (a, b))
    return node.combine("add", a, b)


def _subtract(node: IntegerNode) -> Value:
    operands = _operands(node)
    if operands is None:
        return node.combine("subtract", live(node, 0), live(node, 1))
    index, constant = operands
    value = node.value(index)
    if index == 0:
        # Integers are negated with more bits than they are stored with.
        wide = constant.astype("int64") if constant.dtype.kind in "iu" else constant
        return _plus(node, value, -wide)
    minus = np.asarray([-1], np.int64)
    if isinstance(value, Scaled):
        if value.floored and value.divisor != 1:
            raise node.unsupported("a fraction, floored, subtracted", "negate before the Floor")
        value = replace(value, mul=-value.mul, add=-value.add)
    else:
        value = node.combine("multiply", written_value(value), minus)
    return _plus(node, value, constant)


def _multiply(node: IntegerNode) -> Value:
    operands = _operands(node)
    if operands is None:
        return node.combine("multiply", live(node, 0), live(node, 1))
    factor = node.integer_array(1 - operands[0])
    value = node.value(operands[0])
    if isinstance(value, Scaled):
        if value.divisor != 1:
            raise node.unsupported("a product of a fraction", "floor and clip before")
        return replace(value, node=node, mul=value.mul * factor, add=value.add * factor)
    return Scaled(node, value, factor, np.zeros(1, np.int64))


def _divide(node: IntegerNode) -> Value:
    divisors = node.integer_array(1).reshape(-1)
    if (divisors != divisors[0]).any():
        raise node.unsupported("a division by several numbers", "one divisor for all channels")
    exponent_of(node, int(divisors[0]))
    value = node.value(0)
    if isinstance(value, Scaled):
        if value.divisor != 1:
            raise node.unsupported("a division of a fraction", "floor and clip before")
        return replace(value, node=node, divisor=int(divisors[0]))
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    return Scaled(node, value, one, zero, int(divisors[0]))


def _floor(node: IntegerNode) -> Value:
    value = node.value(0)
    if isinstance(value, Scaled):
        return replace(value, node=node, floored=True)
    return value


def _clip(node: IntegerNode) -> Value:
    low, high = _bounds(node)
    value = node.value(0)
    if not isinstance(value, Scaled):
        value = Scaled(node, value, np.ones(1, np.int64), np.zeros(1, np.int64), 1, True)
    if value.divisor != 1 and not value.floored:
        raise node.unsupported("a clip of a fraction", "put a Floor between division and clip")
    shift = exponent_of(node, value.divisor)
    waiting = converter_of(value, shift, (low, high))
    if waiting is not None:
        return waiting
    scaling = Scaling(value.mul, value.add, shift, (low, high))
    if isinstance(value.base, Converted):
        analog = write_analog(node, value.base, scaling)
        if analog is not None:
            return analog
    return requantize(node, value.base, scaling)


def _bounds(node: IntegerNode) -> tuple[int, int]:
    if node.input(1) or node.input(2):
        if not node.input(1) or not node.input(2):
            raise node.unsupported("a clip with one bound", "give both")
        low, high = (int(node.integer_array(index).reshape(-1)[0]) for index in (1, 2))
    else:
        low, high = node.int32("min"), node.int32("max")
    if low > high:
        raise node.damaged(f"a clip to [{low}, {high}]")
    return low, high


def _cast(node: IntegerNode) -> Value:
    value, to = node.value(0), node.integer("to")
    if to not in _CASTS:
        raise node.unsupported(f"a cast to type {to}", "integers of up to 32 bits, or FLOAT")
    dtype = _CASTS[to]
    if isinstance(value, Scaled) and dtype:
        if value.divisor != 1 and not value.floored:
            raise node.unsupported("a cast of a fraction to integers", "put a Floor before")
    if dtype in ("", "int32") or not isinstance(value, Live):
        if dtype in ("int8", "uint8", "int16"):
            raise node.unsupported(f"a cast to {dtype} of what may not fit", "clip before")
        return value
    low, high = limits_of(dtype)
    own_low, own_high = limits_of(value.activation.dtype)
    own_low, own_high = max(own_low, -value.bound), min(own_high, value.bound)
    if low <= own_low and own_high <= high:
        return value
    raise node.unsupported(
        f"a cast of values from {own_low} to {own_high} to {dtype}", "clip them before"
    )


CHAINS: Mapping[str, Handler] = {
    "Add": _add,
    "Cast": _cast,
    "Clip": _clip,
    "Div": _divide,
    "Floor": _floor,
    "Mul": _multiply,
    "Sub": _subtract,
}
"""Handlers by operator."""

_HANDLERS: Mapping[str, Handler] = {**STANDARD, **CHAINS}


def _quantlib_marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the floors after a scaled division; none if there is a bare one, which is DIANA's."""
    if bare_chains(graph) or not holds_integers(graph, options):
        return ()
    return floor_chains(graph)


def _diana_marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the floors after a division whose dividend has not been multiplied."""
    return bare_chains(graph) if holds_integers(graph, options) else ()


QUANTLIB = integer_reader(_HANDLERS, _quantlib_marks, "quantlib's integers", "uint8")
DIANA = integer_reader(_HANDLERS, _diana_marks, "DIANA's integers")
