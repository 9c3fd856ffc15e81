"""Softmax in integers, as the PULP flow defines it: a polynomial, or powers of two (ITA).

All run over the last axis of int8 or uint8 tensors.  Distances from the maximum are below 256, so
the polynomial's exponential is a table, made when the model is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.primitive import call_primitive, dtype_of, primitive, shape_of
from patterns.requantize import int_constant

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "exponentials", "integer_softmax", "ita_max", "ita_partial_max"]

PRIMITIVES = {
    "integer_softmax": "integer_softmax",
    "ita_max": "ita_max",
    "ita_partial_max": "ita_partial_max",
}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1
_MOST_GROUPS = 64


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


def _shift_down(value: Any, amount: Any) -> Any:
    # Both bounds are written out: TVM takes variable amounts for possibly negative.
    return value >> tirx.max(tirx.min(amount, tirx.const(31, "int32")), tirx.const(0, "int32"))


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
    where = f"operator '{name}'"
    if log2 < 1 or not 2 <= levels <= 256:
        raise UnsupportedError(
            f"log2 {log2} and {levels} levels", where=where, hint="1 and more; 2 to 256"
        )
    table = exponentials(coefficients, log2)
    if min(table) < 0 or table[0] == 0 or max(table) * shape[-1] > _INT32_MAX:
        raise UnsupportedError(
            f"exponentials from {min(table)} to {max(table)} in rows of {shape[-1]}",
            where=where,
            hint="they must not be negative, and their sum must fit int32",
        )
    wide = "int64" if max(table) * (levels - 1) > _INT32_MAX else "int32"

    def body(source: te.Tensor, exponential: te.Tensor) -> te.Tensor:
        largest = _largest_of(source)
        j = te.reduce_axis((0, source.shape[-1]), "j")

        def term(*index: Any) -> Any:
            return exponential[largest(*index[:-1]) - tirx.Cast("int32", source(*index))]

        rows = source.shape[:-1]
        total = te.compute(rows, lambda *i: te.sum(term(*i, j), axis=j), name="total")

        def element(*index: Any) -> Any:
            scaled = tirx.Cast(wide, term(*index)) * tirx.const(levels - 1, wide)
            return tirx.Cast("uint8", tirx.truncdiv(scaled, tirx.Cast(wide, total(*index[:-1]))))

        return te.compute(source.shape, element, name="softmax")

    attributes: dict[str, Parameter] = {
        "coefficients": coefficients,
        "log2": log2,
        "levels": levels,
    }
    inputs = [("x", shape, dtype), ("exponential", (256,), "int32")]
    func = primitive("integer_softmax", inputs, body, attributes)
    args = [x, int_constant(table)]
    return call_primitive(bb, func, args, shape, "uint8", name, last=True)


def ita_max(bb: BlockBuilder, x: Expr, levels: int, *, name: str) -> Var:
    """Write ``((levels - 1) * 256 // sum(256 >> s)) >> s``, ``s = (max - x + 16) >> 5``; uint8."""
    shape, dtype = shape_of(x), _eight_bits(x, name)
    _check_levels(levels, name)

    def body(source: te.Tensor) -> te.Tensor:
        largest = _largest_of(source)
        j = te.reduce_axis((0, source.shape[-1]), "j")

        def steps(*index: Any) -> Any:
            return _steps(largest(*index[:-1]), source(*index))

        one = tirx.const(256, "int32")
        rows = source.shape[:-1]
        total = te.compute(
            rows, lambda *i: te.sum(_shift_down(one, steps(*i, j)), axis=j), name="total"
        )
        inverse = te.compute(
            rows,
            lambda *i: tirx.truncdiv(tirx.const((levels - 1) * 256, "int32"), total(*i)),
            name="inverse",
        )

        def element(*index: Any) -> Any:
            return tirx.Cast("uint8", _shift_down(inverse(*index[:-1]), steps(*index)))

        return te.compute(source.shape, element, name="softmax")

    func = primitive("ita_max", [("x", shape, dtype)], body, {"levels": levels})
    return call_primitive(bb, func, [x], shape, "uint8", name, last=True)


def _check_levels(levels: int, name: str) -> None:
    if not 2 <= levels <= 256:
        raise UnsupportedError(f"{levels} levels", where=f"operator '{name}'", hint="2 to 256")


def _steps(largest: Any, value: Any) -> Any:
    """Powers of two that a value lies below the maximum: 32 steps each, rounded."""
    distance = largest - tirx.Cast("int32", value)
    return (distance + tirx.const(16, "int32")) >> tirx.const(5, "int32")


def ita_partial_max(bb: BlockBuilder, x: Expr, levels: int, group_width: int, *, name: str) -> Var:
    """Write the same, with a maximum that grows as groups of a row arrive; int8.

    A row comes in groups.  When a group raises the maximum from g to m, what has been summed is
    shifted right by ``(m - g + 16) >> 5``; the sum is then divided as above, into ``levels / 2``.

    Raises:
        UnsupportedError: if rows are no whole number of groups, or of more than 64.
    """
    shape, dtype = shape_of(x), _eight_bits(x, name)
    _check_levels(levels, name)
    if group_width < 1 or shape[-1] % group_width or shape[-1] // group_width > _MOST_GROUPS:
        raise UnsupportedError(
            f"rows of {shape[-1]} in groups of {group_width}",
            where=f"operator '{name}'",
            hint=f"a whole number of groups, at most {_MOST_GROUPS}",
        )

    def body(source: te.Tensor) -> te.Tensor:
        largest, total = _grouped(source, group_width)
        numerator = tirx.const((levels // 2 - 1) * 256, "int32")
        inverse = te.compute(
            source.shape[:-1], lambda *i: tirx.truncdiv(numerator, total(*i)), name="inverse"
        )

        def element(*index: Any) -> Any:
            amount = _steps(largest(*index[:-1]), source(*index))
            return tirx.Cast("int8", _shift_down(inverse(*index[:-1]), amount))

        return te.compute(source.shape, element, name="softmax")

    attributes = {"levels": levels, "group_width": group_width}
    func = primitive("ita_partial_max", [("x", shape, dtype)], body, attributes)
    return call_primitive(bb, func, [x], shape, "int8", name, last=True)


def _grouped(source: te.Tensor, width: int) -> tuple[te.Tensor, te.Tensor]:
    """Maximum and sum of the rows after the last group."""
    rows, groups = source.shape[:-1], int(source.shape[-1]) // width
    grid = [*rows, tirx.const(groups, "int64")]

    def over_group(name: str) -> Callable[[Any], tuple[Any, Any]]:
        step = te.reduce_axis((0, tirx.const(width, "int64")), name)
        return lambda group: (group * width + step, step)

    place = over_group("k")

    def highest(*index: Any) -> Any:
        at, axis = place(index[-1])
        return te.max(tirx.Cast("int32", source(*index[:-1], at)), axis=axis)

    peaks = te.compute(grid, highest, name="peaks")
    maxima = [te.compute(rows, lambda *i: peaks(*i, 0), name="maximum0")]
    for group in range(1, groups):

        def raised(*index: Any, before: te.Tensor = maxima[-1], group: int = group) -> Any:
            return tirx.max(before(*index), peaks(*index, group))

        maxima.append(te.compute(rows, _plain(raised), name=f"maximum{group}"))
    total: te.Tensor | None = None
    for group in range(groups):
        own = _group_sum(source, maxima[group], group, width)
        if total is None:
            total = own
            continue

        def summed(
            *index: Any, before: te.Tensor = total, own: te.Tensor = own, group: int = group
        ) -> Any:
            grown = maxima[group](*index) - maxima[group - 1](*index)
            amount = (grown + tirx.const(16, "int32")) >> tirx.const(5, "int32")
            return _shift_down(before(*index), amount) + own(*index)

        total = te.compute(rows, _plain(summed), name=f"total{group}")
    assert total is not None
    return maxima[-1], total


def _group_sum(source: te.Tensor, largest: te.Tensor, group: int, width: int) -> te.Tensor:
    step = te.reduce_axis((0, tirx.const(width, "int64")), "j")

    def terms(*index: Any) -> Any:
        amount = _steps(largest(*index), source(*index, step + group * width))
        return te.sum(_shift_down(tirx.const(256, "int32"), amount), axis=step)

    rows = source.shape[:-1]
    return te.compute(rows, _plain(terms), name=f"group{group}")


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its keywords, which TE refuses."""
    return lambda *index: function(*index)
