"""What the Integer Transformer Accelerator does besides products, and the sum of its heads.

`byoc_dory.layers.rowwise` has the formulas.  The softmax runs over the last axis and adds powers of
two in groups of a row, the GELU has the requantization behind it, and the heads' results are added
and requantized once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Call, Expr, Var

    from patterns.primitive import Parameter

__all__ = [
    "PRIMITIVES",
    "accumulate",
    "ita_gelu",
    "ita_softmax",
    "read_ita_gelu",
    "read_ita_softmax",
]

PRIMITIVES = {
    "accumulate": "accumulate",
    "ita_gelu": "ita_gelu",
    "ita_softmax": "ita_softmax",
}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1
_INT8 = (-128, 127)
_ONE = 256  # what the maximum of a row adds to its sum
_STEP_BITS = 7
_AMOUNT_BITS = 5  # of a shift of 32 bits


# ------------------------------------------------------------------------------ softmax


def ita_softmax(
    bb: BlockBuilder, x: Expr, parameters: ItaSoftmax, *, name: str, dtype: str = "uint8"
) -> Var:
    """Write the softmax of powers of two of each row.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 or uint8; the last axis is the row.
        parameters: as `ItaSoftmax` says; where a row is no whole number of groups, its last one is
            shorter.
        name: of the operator.
        dtype: of the output, uint8 or int8.

    Raises:
        UnsupportedError: if a parameter is out of range, or the result does not fit ``dtype``.
    """
    shape, where = shape_of(x), f"operator '{name}'"
    if dtype_of(x) not in ("int8", "uint8"):
        raise UnsupportedError(f"a softmax of {dtype_of(x)}", where=where, hint="int8 or uint8")
    if parameters.group < 0 or not 0 <= parameters.step_bits <= _STEP_BITS:
        raise UnsupportedError(
            f"groups of {parameters.group} and steps of {parameters.step_bits} bits",
            where=where,
            hint=f"groups of at least 1, or 0 for whole rows; 0 to {_STEP_BITS} bits",
        )
    largest = np.iinfo(dtype).max
    if not 0 <= parameters.numerator < (int(largest) + 1) * _ONE:
        raise UnsupportedError(
            f"the numerator {parameters.numerator}",
            where=where,
            hint=f"0 to {(int(largest) + 1) * _ONE - 1}, so that results fit {dtype}",
        )
    length = shape[-1]
    width = min(parameters.group or length, length)
    if width * _ONE << _AMOUNT_BITS > _INT32_MAX or length * _ONE > _INT32_MAX:
        raise UnsupportedError(f"a softmax of rows of {length}", where=where)

    def body(source: te.Tensor) -> te.Tensor:
        return _softmax(source, parameters, width, dtype)

    attributes: dict[str, Parameter] = {
        "group": parameters.group,
        "step_bits": parameters.step_bits,
        "numerator": parameters.numerator,
    }
    func = primitive("ita_softmax", [("x", shape, dtype_of(x))], body, attributes)
    return call_primitive(bb, func, [x], shape, dtype, name, last=True)


def read_ita_softmax(call: Call, attrs: Mapping[str, Any]) -> ItaSoftmax:
    """The function of a call that `ita_softmax` wrote, and its parameters."""
    del call
    return ItaSoftmax(attrs["group"], attrs["step_bits"], attrs["numerator"])


def _softmax(source: te.Tensor, parameters: ItaSoftmax, width: int, dtype: str) -> te.Tensor:
    rows = source.shape[:-1]
    maxima = _maxima(source, width)
    last = int(maxima.shape[-1]) - 1
    sums = _sums(source, maxima, width, parameters.step_bits)
    numerator = tirx.const(parameters.numerator, "int32")
    inverse = te.compute(rows, lambda *i: tirx.truncdiv(numerator, sums(*i)), name="inverse")

    def element(*index: Any) -> Any:
        *row, column = index
        distance = maxima(*row, last) - tirx.Cast("int32", source(*row, column))
        return tirx.Cast(dtype, inverse(*row) >> _steps(distance, parameters.step_bits))

    return te.compute(source.shape, element, name="softmax")


def _steps(distance: Any, bits: int) -> Any:
    """How many times this distance from the maximum halves a probability: at most 31."""
    half = (1 << bits) >> 1
    steps = (
        (distance + tirx.const(half, "int32")) >> tirx.const(bits, "int32") if bits else distance
    )
    # Both bounds are written out: TVM takes variable amounts for possibly negative.
    return tirx.max(tirx.min(steps, tirx.const(31, "int32")), tirx.const(0, "int32"))


def _in_group(source: te.Tensor, width: int, name: str) -> tuple[Any, Callable[..., Any]]:
    """An axis over a group, and the column it means; a last group that is shorter is guarded."""
    length = int(source.shape[-1])
    axis = te.reduce_axis((0, tirx.const(width, "int64")), name)

    def guarded(group: Any, value: Callable[[Any], Any], otherwise: int) -> Any:
        column = group * width + axis
        if length % width == 0:
            return value(column)
        inside = column < tirx.const(length, "int64")
        return tirx.if_then_else(inside, value(column), tirx.const(otherwise, "int32"))

    return axis, guarded


def _maxima(source: te.Tensor, width: int) -> te.Tensor:
    """The maximum of a row up to and including each group, int32."""
    rows, length = source.shape[:-1], int(source.shape[-1])
    grid = [*rows, tirx.const(-(-length // width), "int64")]
    lowest = int(np.iinfo(str(source.dtype)).min)
    axis, guarded = _in_group(source, width, "k")

    def highest(*index: Any) -> Any:
        *row, group = index
        value = guarded(group, lambda at: tirx.Cast("int32", source(*row, at)), lowest)
        return te.max(value, axis=axis)

    peaks = te.compute(grid, highest, name="peaks")
    if int(grid[-1]) == 1:
        return peaks
    before = te.reduce_axis((0, grid[-1]), "g")

    def grown(*index: Any) -> Any:
        *row, group = index
        known = tirx.Select(before <= group, peaks(*row, before), tirx.const(lowest, "int32"))
        return te.max(known, axis=before)

    return te.compute(grid, grown, name="maxima")


def _sums(source: te.Tensor, maxima: te.Tensor, width: int, bits: int) -> te.Tensor:
    """The sum of a row after its last group, int32; the maximum itself adds 256."""
    axis, guarded = _in_group(source, width, "j")
    rows, one = source.shape[:-1], tirx.const(_ONE, "int32")

    def own(*index: Any) -> Any:
        *row, group = index

        def term(column: Any) -> Any:
            distance = maxima(*row, group) - tirx.Cast("int32", source(*row, column))
            return one >> _steps(distance, bits)

        return te.sum(guarded(group, term, 0), axis=axis)

    terms = te.compute(maxima.shape, own, name="terms")
    if int(maxima.shape[-1]) == 1:
        return te.compute(rows, lambda *i: terms(*i, 0), name="total")

    # A reduction has one operand: a group's own sum, and how far it shifts what came before.
    def updated(total: Any, update: Any) -> Any:
        amount = update & tirx.const((1 << _AMOUNT_BITS) - 1, "int32")
        return (total >> amount) + (update >> tirx.const(_AMOUNT_BITS, "int32"))

    in_order = te.comm_reducer(updated, lambda dtype: tirx.const(0, dtype), name="in_order")
    g = te.reduce_axis((0, maxima.shape[-1]), "g")

    def summed(*row: Any) -> Any:
        earlier = maxima(*row, tirx.max(g - 1, tirx.const(0, "int64")))
        amount = _steps(maxima(*row, g) - earlier, bits)
        return in_order(terms(*row, g) * tirx.const(1 << _AMOUNT_BITS, "int32") + amount, axis=g)

    return te.compute(rows, summed, name="total")


# ------------------------------------------------------------------------------ GELU


def ita_gelu(bb: BlockBuilder, x: Expr, parameters: ItaGelu, *, name: str) -> Var:
    """Write the accelerator's GELU with its requantization, as a table of all int8.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, of any shape.
        parameters: as `ItaGelu` says.  Its ``c`` is negative, and so are the results where ``x``
            is positive: the step of the output has the other sign.
        name: of the operator.

    Raises:
        UnsupportedError: if ``x`` is not int8, or a parameter is out of range.
    """
    shape, where = shape_of(x), f"operator '{name}'"
    if dtype_of(x) != "int8":
        raise UnsupportedError(f"a GELU of {dtype_of(x)}", where=where, hint="int8")
    ranges = {
        "b": (-(2**15), 0),
        "c": (-(2**15), 2**15 - 1),
        "mul": (0, 255),
        "shift": (0, 31),
        "add": _INT8,
    }
    attributes: dict[str, Parameter] = {}
    for role, (low, high) in ranges.items():
        value = int(getattr(parameters, role))
        if not low <= value <= high:
            raise UnsupportedError(f"{role} = {value}", where=where, hint=f"{low} to {high}")
        attributes[role] = value

    def body(source: te.Tensor, table: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            return table[tirx.Cast("int32", source(*index)) + 128]

        return te.compute(extents(shape), element, name="gelu")

    func = primitive(
        "ita_gelu", [("x", shape, "int8"), ("table", (256,), "int8")], body, attributes
    )
    # The table of a `TableMap` is indexed by bytes, from 0 to 127 and then from -128 to -1.
    table = np.roll(parameters.table().table.view("int8"), 128)
    return call_primitive(bb, func, [x, relax.const(table, "int8")], shape, "int8", name, last=True)


def read_ita_gelu(call: Call, attrs: Mapping[str, Any]) -> ItaGelu:
    """The function of a call that `ita_gelu` wrote, and its parameters."""
    del call
    return ItaGelu(attrs["b"], attrs["c"], attrs["mul"], attrs["shift"], attrs["add"])


# ------------------------------------------------------------------------------ sum of heads


def accumulate(
    bb: BlockBuilder,
    parts: Sequence[Expr],
    mul: int,
    add: int,
    shift: int,
    clip: tuple[int, int] = _INT8,
    *,
    name: str,
) -> Var:
    """Write ``clip((sum of all parts * mul + add) >> shift)`` to int8; the shift floors.

    Args:
        bb: where to write, inside a dataflow block.
        parts: int8, two and more different tensors of one shape.
        mul, add: fit int32.
        shift: from 0 to 31.
        clip: inclusive range of the output.
        name: of the operator.

    Raises:
        IntegerFormError: if the tensors do not fit together.
        UnsupportedError: if a number is out of range.
    """
    where = f"operator '{name}'"
    shapes, dtypes = {shape_of(part) for part in parts}, {dtype_of(part) for part in parts}
    if len(set(parts)) != len(parts) or len(parts) < 2 or len(shapes) != 1 or dtypes != {"int8"}:
        raise IntegerFormError(
            f"a sum of {len(parts)} tensors of shapes {sorted(shapes)} and types {sorted(dtypes)}",
            where=where,
            hint="two and more different int8 tensors of one shape",
        )
    if max(abs(mul), abs(add)) > _INT32_MAX or not 0 <= shift <= 31:
        raise UnsupportedError(
            f"mul {mul}, add {add} and shift {shift}",
            where=where,
            hint="the former fit int32, the latter is 0 to 31",
        )
    (shape,) = shapes
    worst = len(parts) * 128 * abs(mul) + abs(add)
    wide = "int32" if worst <= _INT32_MAX else "int64"

    def body(*sources: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            total = tirx.Cast(wide, sources[0](*index))
            for source in sources[1:]:
                total = total + tirx.Cast(wide, source(*index))
            scaled = (total * tirx.const(mul, wide) + tirx.const(add, wide)) >> tirx.const(
                shift, wide
            )
            low, high = (tirx.const(limit, wide) for limit in clip)
            return tirx.Cast("int8", tirx.max(tirx.min(scaled, high), low))

        return te.compute(extents(shape), element, name="accumulated")

    inputs = [(f"part_{at}", shape, "int8") for at in range(len(parts))]
    attributes: dict[str, Parameter] = {"mul": mul, "add": add, "shift": shift, "clip": clip}
    func = primitive("accumulate", inputs, body, attributes)
    return call_primitive(bb, func, list(parts), shape, "int8", name, last=True)
