"""Softmax in integers, as the PULP flow defines it: a polynomial.  `patterns.ops.pulp.ita` has the
other.

It runs over the last axis of int8 or uint8 tensors.  Distances from the maximum are below 256, so
the exponential is a table, made when the model is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.rowwise import TableSoftmax
from patterns.ops.requantize import int_constant
from patterns.primitive import call_primitive, dtype_of, primitive, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import BlockBuilder, Call, Expr, Var

    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "exponentials", "integer_softmax", "read_integer_softmax"]

PRIMITIVES = {"integer_softmax": "integer_softmax"}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1


def _eight_bits(x: Expr, name: str) -> str:
    if dtype_of(x) not in ("int8", "uint8"):
        raise UnsupportedError(
            f"a softmax of {dtype_of(x)}", where=f"operator '{name}'", hint="int8 or uint8"
        )
    return dtype_of(x)


def _largest_of(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[-1]), "k")
    rows = x.shape[:-1]
    return te.compute(rows, lambda *i: te.max(tirx.Cast("int32", x(*i, k)), axis=k), name="largest")


def exponentials(
    coefficients: tuple[int, int, int], log2: int, distances: int = 256
) -> tuple[int, ...]:
    """``(A * (p + B)**2 + C) >> z`` for each distance d from the maximum.

    ``z = min(d // log2, 31)`` and ``p = z * log2 - d``.
    """
    a, b, c = coefficients
    table = []
    for distance in range(distances):
        z = min(distance // log2, 31)
        table.append((a * (z * log2 - distance + b) ** 2 + c) >> z)
    return tuple(table)


def integer_softmax(
    bb: BlockBuilder,
    x: Expr,
    coefficients: tuple[int, int, int],
    log2: int,
    levels: int,
    *,
    name: str,
) -> Var:
    """Write ``e * (levels - 1) // sum(e)`` of the polynomial exponential e; uint8.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 or uint8; the last axis is the row.
        coefficients: A, B and C of the polynomial ``A * (p + B)**2 + C``.
        log2: steps of the input that halve the exponential.
        levels: of the output, at most 256.
        name: of the operator.

    Raises:
        UnsupportedError: if the exponential is negative, zero at the maximum, or too large.
    """
    shape, dtype = shape_of(x), _eight_bits(x, name)
    if log2 < 1 or not 2 <= levels <= 256:
        raise UnsupportedError(
            f"log2 {log2} and {levels} levels",
            where=f"operator '{name}'",
            hint="1 and more; 2 to 256",
        )
    table = _checked_exponentials(coefficients, log2, shape[-1], name)
    wide = "int64" if max(table) * (levels - 1) > _INT32_MAX else "int32"

    def body(source: te.Tensor, exponential: te.Tensor) -> te.Tensor:
        return _shares(source, exponential, levels - 1, wide)

    attributes: dict[str, Parameter] = {
        "coefficients": coefficients,
        "log2": log2,
        "levels": levels,
    }
    inputs = [("x", shape, dtype), ("exponential", (256,), "int32")]
    func = primitive("integer_softmax", inputs, body, attributes)
    args = [x, int_constant(table)]
    return call_primitive(bb, func, args, shape, "uint8", name, last=True)


def read_integer_softmax(call: Call, attrs: Mapping[str, Any]) -> TableSoftmax:
    """The function of a call that `integer_softmax` wrote, and its parameters."""
    return TableSoftmax(tuple(call.args[1][1].value.numpy().tolist()), attrs["levels"])


def _checked_exponentials(
    coefficients: tuple[int, int, int], log2: int, row: int, name: str
) -> tuple[int, ...]:
    table = exponentials(coefficients, log2)
    if min(table) < 0 or table[0] == 0 or max(table) * row > _INT32_MAX:
        raise UnsupportedError(
            f"exponentials from {min(table)} to {max(table)} in rows of {row}",
            where=f"operator '{name}'",
            hint="they must not be negative, and their sum must fit int32",
        )
    return table


def _shares(source: te.Tensor, exponential: te.Tensor, highest: int, wide: str) -> te.Tensor:
    """``e * highest // sum(e)`` of the rows, products in the type ``wide``."""
    largest = _largest_of(source)
    j = te.reduce_axis((0, source.shape[-1]), "j")

    def term(*index: Any) -> Any:
        return exponential[largest(*index[:-1]) - tirx.Cast("int32", source(*index))]

    rows = source.shape[:-1]
    total = te.compute(rows, lambda *i: te.sum(term(*i, j), axis=j), name="total")

    def element(*index: Any) -> Any:
        scaled = tirx.Cast(wide, term(*index)) * tirx.const(highest, wide)
        return tirx.Cast("uint8", tirx.truncdiv(scaled, tirx.Cast(wide, total(*index[:-1]))))

    return te.compute(source.shape, element, name="softmax")
