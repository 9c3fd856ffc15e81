"""Softmax in integers, as in the PULP flow: a polynomial.

`patterns.ops.pulp.ita` has the one with powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.rowwise import TableSoftmax
from patterns.op import Operands, TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.rows import row_layer
from patterns.primitive_op import Argument, Inputs, PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Rows


def exponentials(
    coefficients: tuple[int, int, int], log2: int, distances: int = 256
) -> tuple[int, ...]:
    """Return ``(A * (p + B)**2 + C) >> z`` for each distance d from the maximum.

    ``z = min(d // log2, 31)`` and ``p = z * log2 - d``.
    """
    a, b, c = coefficients
    table = []
    for distance in range(distances):
        z = min(distance // log2, 31)
        table.append((a * (z * log2 - distance + b) ** 2 + c) >> z)
    return tuple(table)


@operator
@dataclass(frozen=True, eq=False)
class PulpSoftmax(PrimitiveOp):
    """``e * (levels - 1) // sum(e)`` of each row, with polynomial exponentials e; uint8.

    Rows are along the last axis of int8 or uint8 tensors.  Distances from the maximum are below
    256, so the exponential is a table.

    Attributes:
        coefficients: A, B and C of the polynomial ``A * (p + B)**2 + C``.
        log2: number of input steps that halve the exponential.
        levels: number of output levels, 2 to 256.

    Raises:
        UnsupportedError: the exponential is negative, zero at the maximum, or too large.
    """

    kind = "integer_softmax"
    work = Work.SOFTMAX

    coefficients: tuple[int, int, int]
    log2: int
    levels: int

    def __post_init__(self) -> None:
        if self.log2 < 1 or not 2 <= self.levels <= 256:
            raise UnsupportedError(
                f"log2 {self.log2} and {self.levels} levels", hint="1 and more; 2 to 256"
            )
        self._check(1)

    def _check(self, row: int) -> None:
        table = self.exponentials
        if min(table) < 0 or table[0] == 0 or max(table) * row > INT32_MAX:
            raise UnsupportedError(
                f"exponentials from {min(table)} to {max(table)}"
                + (f" in rows of {row}" if row > 1 else ""),
                hint="they must not be negative, and their sum must fit int32",
            )

    @property
    def exponentials(self) -> tuple[int, ...]:
        """The exponential of each distance from the maximum."""
        return exponentials(self.coefficients, self.log2)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        if dtype not in ("int8", "uint8"):
            raise UnsupportedError(f"a softmax of {dtype}", hint="int8 or uint8")
        self._check(shape[-1])
        return TensorType(shape, "uint8")

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the table of exponentials."""
        table = np.asarray(self.exponentials, "int32")
        return Argument("x", inputs[0]), Argument("exponential", table)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, exponential = tensors
        rows, highest = source.shape[:-1], self.levels - 1
        wide = "int64" if max(self.exponentials) * highest > INT32_MAX else "int32"
        largest = _largest_of(source)
        j = te.reduce_axis((0, source.shape[-1]), "j")

        def term(*index: Any) -> Any:
            return exponential[largest(*index[:-1]) - tirx.Cast("int32", source(*index))]

        total = te.compute(rows, lambda *i: te.sum(term(*i, j), axis=j), name="total")

        def element(*index: Any) -> Any:
            scaled = tirx.Cast(wide, term(*index)) * tirx.const(highest, wide)
            return tirx.Cast("uint8", tirx.truncdiv(scaled, tirx.Cast(wide, total(*index[:-1]))))

        return te.compute(source.shape, element, name="softmax")

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Rows:
        return row_layer(name, inputs[0], output, TableSoftmax(self.exponentials, self.levels))


def _largest_of(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[-1]), "k")
    rows = x.shape[:-1]
    return te.compute(rows, lambda *i: te.max(tirx.Cast("int32", x(*i, k)), axis=k), name="largest")
