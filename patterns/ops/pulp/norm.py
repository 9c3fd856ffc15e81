"""The PULP flow's normalizations of rows in integers, and its softmax, a polynomial.

``trunc`` rounds toward zero, ``//`` rounds down, ``isqrt`` is the integer square root.  Divisors
are powers of two.  Results saturate at the bounds of int8.  `patterns.ops.pulp.ita` has the softmax
with powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.layer import Array
from byoc_dory.layers.rowwise import AffineNorm, LayerNorm, RmsNorm, TableSoftmax
from patterns.op import INT8, Operands, TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX, constant_of, magnitude
from patterns.ops.layers import row_layer
from patterns.primitive import Argument, Inputs, PrimitiveOp

if TYPE_CHECKING:
    from typing_extensions import Self

    from byoc_dory.layers import Rows


@dataclass(frozen=True, eq=False)
class Norm(PrimitiveOp):
    """Base of normalizations over the last axis of int8 or uint8 tensors; the results are int8.

    Attributes:
        function: function of a row; its arrays are int32 with one entry per column.
    """

    function: LayerNorm | RmsNorm | AffineNorm

    def _vectors(self) -> dict[str, Array]:
        """Return the arrays among the function's parameters."""
        parts = {item.name: getattr(self.function, item.name) for item in fields(self.function)}
        return {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        if dtype not in ("int8", "uint8"):
            raise UnsupportedError(f"a norm of {dtype}", hint="int8 or uint8")
        for role, values in self._vectors().items():
            if values.size != shape[-1] or values.dtype != np.int32:
                raise UnsupportedError(
                    f"{values.size} values of the {role}, {values.dtype}, for rows of {shape[-1]}",
                    hint="one for each column, int32",
                )
        return TensorType(shape)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, and vectors with one entry per column."""
        vectors = self._vectors().items()
        constants = [Argument(role, values, f"function.{role}") for role, values in vectors]
        return Argument("x", inputs[0]), *constants

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Rows:
        return row_layer(name, inputs[0], output, self.function)


def vector(values: Array) -> Array:
    """Return numbers of any shape as an int32 vector.

    Raises:
        UnsupportedError: a number does not fit.
    """
    return constant_of(np.asarray(values).reshape(-1), 1)


def exponent_of(divisor: int) -> int:
    """Return the exponent of a divisor that is a power of two.

    Raises:
        UnsupportedError: the divisor is not a power of two.
    """
    if divisor < 1 or divisor & (divisor - 1):
        raise UnsupportedError(f"a division by {divisor}", hint="give a power of two")
    return divisor.bit_length() - 1


def sum_type(worst: int) -> str:
    """Return the type that holds everything up to this magnitude: int32 or int64."""
    return "int32" if worst <= INT32_MAX else "int64"


def saturated(value: Any, kind: str) -> Any:
    """Return a value of type ``kind`` as int8, saturated."""
    low, high = (tirx.const(limit, kind) for limit in INT8)
    return tirx.Cast("int8", tirx.max(tirx.min(value, high), low))


def row_sum(source: te.Tensor, term: Any, kind: str, name: str) -> te.Tensor:
    """Return the sum of ``term`` over each row, of type ``kind``."""
    k = te.reduce_axis((0, source.shape[-1]), "k")
    return te.compute(
        source.shape[:-1], lambda *i: te.sum(tirx.Cast(kind, term(*i, k)), axis=k), name=name
    )


def roots(squares: te.Tensor, worst: int, kind: str) -> te.Tensor:
    """Return ``isqrt`` of each element; no element exceeds ``worst``.

    It counts the k from 1 on whose square does not exceed the element.  Rows of bytes need at most
    255 of them, which is little compared with the row itself.
    """
    k = te.reduce_axis((0, tirx.const(math.isqrt(worst), "int64")), "r")

    def counted(*index: Any) -> Any:
        candidate = tirx.Cast(kind, k) + tirx.const(1, kind)
        return te.sum(tirx.Cast(kind, candidate * candidate <= squares(*index)), axis=k)

    return te.compute(squares.shape, counted, name="isqrt")


_SPREAD = 255
"""The largest distance of a byte from a mean."""


@operator
@dataclass(frozen=True, eq=False)
class PulpLayerNorm(Norm):
    """Each row minus its mean, divided by its deviation, scaled and shifted by column."""

    kind = "layer_norm"
    tag = "integer_layer_norm"

    function: LayerNorm

    @classmethod
    def of(cls, weight: Array, bias: Array, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight, bias: one integer per column that fits int32.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(LayerNorm(vector(weight), vector(bias), exponent_of(divisor)))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, factor, summand = tensors
        length = int(source.shape[-1])
        w, b = (
            int(np.abs(part.astype("int64")).max())
            for part in (self.function.weight, self.function.bias)
        )
        kind = sum_type(max(_SPREAD * w + b, _SPREAD * _SPREAD * length))
        sums = row_sum(source, source, kind, "sums")
        count = tirx.const(length, kind)
        middle = te.compute(sums.shape, lambda *i: tirx.truncdiv(sums(*i), count), name="middle")

        def centred(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) - middle(*index[:-1])

        squares = row_sum(source, lambda *i: centred(*i) * centred(*i), kind, "squares")
        variance = te.compute(
            sums.shape,
            lambda *i: tirx.truncdiv(squares(*i), count) + tirx.const(1, kind),
            name="variance",
        )
        root = roots(variance, _SPREAD * _SPREAD + 1, kind)

        def element(*index: Any) -> Any:
            scaled = centred(*index) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            value = value + tirx.Cast(kind, summand[index[-1]])
            return saturated(value >> tirx.const(self.function.shift, kind), kind)

        return te.compute(source.shape, element, name="normed")


@operator
@dataclass(frozen=True, eq=False)
class PulpRmsNorm(Norm):
    """Each row divided by the root of its mean square, and scaled by column."""

    kind = "rms_norm"
    tag = "integer_rms_norm"

    function: RmsNorm

    @classmethod
    def of(cls, weight: Array, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight: one integer per column that fits int32.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(RmsNorm(vector(weight), exponent_of(divisor)))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, factor = tensors
        length, most = int(source.shape[-1]), magnitude(str(source.dtype))
        w = int(np.abs(self.function.weight.astype("int64")).max())
        kind = sum_type(max(most * w, most * most * length))

        def squared(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) * tirx.Cast(kind, source(*index))

        squares = row_sum(source, squared, kind, "squares")
        count, one = tirx.const(length, kind), tirx.const(1, kind)
        mean = te.compute(
            squares.shape, lambda *i: tirx.truncdiv(squares(*i), count) + one, name="mean"
        )
        root = roots(mean, most * most + 1, kind)

        def element(*index: Any) -> Any:
            scaled = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            return saturated(value >> tirx.const(self.function.shift, kind), kind)

        return te.compute(source.shape, element, name="normed")


@operator
@dataclass(frozen=True, eq=False)
class PulpAffineNorm(Norm):
    """Each row scaled and shifted by column, without statistics."""

    kind = "affine_norm"
    tag = "integer_affine_norm"

    function: AffineNorm

    @classmethod
    def of(cls, weight: Array, bias: Array, mul: int, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight, bias: one integer per column that fits int32.
            mul: a factor for all columns.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(AffineNorm(vector(weight), vector(bias), mul, exponent_of(divisor)))

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, factor, summand = tensors
        mul = self.function.mul
        w, b = (
            int(np.abs(part.astype("int64")).max())
            for part in (self.function.weight, self.function.bias)
        )
        kind = sum_type((magnitude(str(source.dtype)) * w + b) * max(abs(mul), 1))
        value = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
        value = (value + tirx.Cast(kind, summand[index[-1]])) * tirx.const(mul, kind)
        return saturated(value >> tirx.const(self.function.shift, kind), kind)


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
        """``(A * (p + B)**2 + C) >> z`` for each distance d from the maximum.

        ``z = min(d // log2, 31)`` and ``p = z * log2 - d``.
        """
        (a, b, c), log2 = self.coefficients, self.log2
        halved = [(d, min(d // log2, 31)) for d in range(256)]
        return tuple((a * (z * log2 - d + b) ** 2 + c) >> z for d, z in halved)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        if dtype not in ("int8", "uint8"):
            raise UnsupportedError(f"a softmax of {dtype}", hint="int8 or uint8")
        self._check(shape[-1])
        return TensorType(shape, "uint8")

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the table of exponentials."""
        return {"exponential": np.asarray(self.exponentials, "int32")}

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
