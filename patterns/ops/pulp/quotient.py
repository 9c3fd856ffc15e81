"""Quotients of two integer tensors, as in the PULP flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import Range, TensorType, operator
from patterns.ops.broadcast import broadcast, broadcast_load, pair
from patterns.ops.integer.limits import INT32_MAX, magnitude
from patterns.primitive_op import Argument, Inputs, PrimitiveOp


@operator
@dataclass(frozen=True, eq=False)
class PulpQuotient(PrimitiveOp):
    """``(factor * a) / (eta * b + eps)`` as int32, rounded to the nearest integer.

    The operands are tensors of any integers, broadcast as in numpy.  Half the divisor, which
    rounds, is ``divisor >> 1`` with the dividend's sign; the division then truncates.  Where the
    divisor is zero, so is the result; results that do not fit 32 bits wrap.

    Attributes:
        factor: of the dividend.
        eta, eps: factor and summand of the divisor.
    """

    kind = "quotient"
    tag = "integer_quotient"

    factor: int
    eta: int
    eps: int

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        dividend = abs(self.factor) * magnitude(a.dtype)
        divisor = abs(self.eta) * magnitude(b.dtype) + abs(self.eps)
        if dividend + divisor >= 2**62:
            raise UnsupportedError(
                f"a division of up to {dividend} by up to {divisor}",
                hint="both together must fit 62 bits; requantize before, or use smaller factors",
            )
        return TensorType(broadcast(a.shape, b.shape), "int32")

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: all of int32."""
        return -INT32_MAX - 1, INT32_MAX

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: dividend and divisor."""
        return pair(inputs)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        zero, one, factor, eta, eps = (
            tirx.const(number, "int64") for number in (0, 1, self.factor, self.eta, self.eps)
        )

        def element(*index: Any) -> Any:
            a, b = (tirx.Cast("int64", broadcast_load(part, index)) for part in tensors)
            dividend, divisor = a * factor, b * eta + eps
            half = divisor >> one
            nearest = tirx.Select(dividend >= zero, dividend + half, dividend - half)
            # Both sides of a Select may be computed.
            safe = tirx.Select(divisor == zero, one, divisor)
            found = tirx.Select(divisor == zero, zero, tirx.truncdiv(nearest, safe))
            return tirx.Cast("int32", found)

        return te.compute(self.extents(tensors), element, name="quotient")
