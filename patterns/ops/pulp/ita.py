"""Functions of rows as the Integer Transformer Accelerator computes them.

ITAMax is a softmax with powers of two along the last axis, added in groups of a row;
`byoc_dory.layers.rowwise.ItaSoftmax` has the formula.  Its GELU includes a requantization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.op import INT8, Operands, TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.layers import row_layer
from patterns.primitive import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Rows


_ONE = 256  # contribution of a row's maximum to its sum
_STEP_BITS = 7
_AMOUNT_BITS = 5  # largest shift of 32 bits


@operator
@dataclass(frozen=True, eq=False)
class ItaMax(PrimitiveOp):
    """The softmax with powers of two of each row of an int8 or uint8 tensor.

    Attributes:
        function: function of a row; if a row is not a whole number of groups, its last group is
            shorter.
        dtype: type of the output, uint8 or int8.

    Raises:
        UnsupportedError: a parameter is out of range, or the result does not fit ``dtype``.
    """

    kind = "ita_softmax"
    work = Work.SOFTMAX

    function: ItaSoftmax
    dtype: str = "uint8"

    def __post_init__(self) -> None:
        parameters = self.function
        if parameters.group < 0 or not 0 <= parameters.step_bits <= _STEP_BITS:
            raise UnsupportedError(
                f"groups of {parameters.group} and steps of {parameters.step_bits} bits",
                hint=f"groups of at least 1, or 0 for whole rows; 0 to {_STEP_BITS} bits",
            )
        most = (int(np.iinfo(self.dtype).max) + 1) * _ONE
        if not 0 <= parameters.numerator < most:
            raise UnsupportedError(
                f"the numerator {parameters.numerator}",
                hint=f"0 to {most - 1}, so that results fit {self.dtype}",
            )

    def _width(self, length: int) -> int:
        """Return the number of elements per group in rows of this length."""
        return min(self.function.group or length, length)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        if dtype not in ("int8", "uint8"):
            raise UnsupportedError(f"a softmax of {dtype}", hint="int8 or uint8")
        length = shape[-1]
        if self._width(length) * _ONE << _AMOUNT_BITS > INT32_MAX or length * _ONE > INT32_MAX:
            raise UnsupportedError(f"a softmax of rows of {length}")
        return TensorType(shape, self.dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), parameters = tensors, self.function
        width = self._width(int(source.shape[-1]))
        rows = source.shape[:-1]
        maxima = _maxima(source, width)
        last = int(maxima.shape[-1]) - 1
        sums = _sums(source, maxima, width, parameters.step_bits)
        numerator = tirx.const(parameters.numerator, "int32")
        inverse = te.compute(rows, lambda *i: tirx.truncdiv(numerator, sums(*i)), name="inverse")

        def element(*index: Any) -> Any:
            *row, column = index
            distance = maxima(*row, last) - tirx.Cast("int32", source(*row, column))
            return tirx.Cast(self.dtype, inverse(*row) >> _steps(distance, parameters.step_bits))

        return te.compute(source.shape, element, name="softmax")

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Rows:
        return row_layer(name, inputs[0], output, self.function)


def _steps(distance: Any, bits: int) -> Any:
    """Return how often this distance from the maximum halves a probability: at most 31 times."""
    half = (1 << bits) >> 1
    steps = (
        (distance + tirx.const(half, "int32")) >> tirx.const(bits, "int32") if bits else distance
    )
    # Both bounds are written out: TVM assumes that variable shift amounts may be negative.
    return tirx.max(tirx.min(steps, tirx.const(31, "int32")), tirx.const(0, "int32"))


def _in_group(source: te.Tensor, width: int, name: str) -> tuple[Any, Callable[..., Any]]:
    """Return an axis over a group, and the column it refers to; a shorter last group is guarded."""
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
    """Return the maximum of a row up to and including each group, int32."""
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
    """Return the sum of a row after its last group, int32; the maximum itself adds 256."""
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

    # The reduction has a pair as its operand: a group's own sum, and the shift of the previous
    # groups.
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


_LIMITS = {
    "b": (-(2**15), 0),
    "c": (-(2**15), 2**15 - 1),
    "mul": (0, 255),
    "shift": (0, 31),
    "add": INT8,
}
"""The range of each parameter."""


@operator
@dataclass(frozen=True, eq=False)
class ItaActivation(PrimitiveOp):
    """The accelerator's GELU and the requantization after it, as a table for all int8 values.

    Attributes:
        function: function of one element.  Its ``c`` is negative, so the results for positive
            inputs are negative, too: the step of the output has the opposite sign.

    Raises:
        UnsupportedError: a parameter is out of range.
    """

    kind = "ita_gelu"
    work = Work.MOVE

    function: ItaGelu

    def __post_init__(self) -> None:
        for role, (low, high) in _LIMITS.items():
            value = getattr(self.function, role)
            if not low <= value <= high:
                raise UnsupportedError(f"{role} = {value}", hint=f"{low} to {high}")

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].dtype != "int8":
            raise UnsupportedError(f"a GELU of {inputs[0].dtype}", hint="int8")
        return TensorType(inputs[0].shape)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the table."""
        # The table of a `TableMap` is indexed by bytes: 0 to 127, then -128 to -1.
        table = np.roll(self.function.table().table.view("int8"), 128)
        return {"table": table}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, table = tensors
        return table[tirx.Cast("int32", source(*index)) + 128]

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Rows:
        return row_layer(name, inputs[0], output, self.function)
