"""Division of integers by a constant, as in the PULP flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.pulp.elementwise import ElementWise, check_fits

__all__ = ["PulpDivide"]


@operator
@dataclass(frozen=True, eq=False)
class PulpDivide(ElementWise):
    """``(numerator * x) // denominator``, which floors; int32.

    Its cycles have no estimate, because they depend on the input's type: where `working` is int64,
    an element takes about ten times as long as in int32.

    Attributes:
        numerator: its product with the input is below 2**62 in magnitude.
        denominator: positive integer that fits int32.
    """

    kind = "divide"
    tag = "integer_divide"
    offered = True

    numerator: int
    denominator: int

    def check(self, largest: int) -> None:
        """See `ElementWise.check`."""
        worst = largest * abs(self.numerator)
        if not 0 < self.denominator <= INT32_MAX or worst + self.denominator >= 2**62:
            raise UnsupportedError(
                f"a division of up to {worst} by {self.denominator}",
                hint="the divisor must be positive and fit int32, the dividend 62 bits",
            )
        check_fits(-(-worst // self.denominator), "a quotient")

    def working(self, largest: int) -> str:
        """See `ElementWise.working`."""
        worst = largest * abs(self.numerator)
        return "int32" if worst + self.denominator <= INT32_MAX else "int64"

    def of(self, value: Any) -> Any:
        """See `ElementWise.of`."""
        working = str(value.ty.dtype)
        divisor, one = tirx.const(self.denominator, working), tirx.const(1, working)
        product = value * tirx.const(self.numerator, working)
        # TVM lowers this before C's division, which rounds toward zero.
        lowered = tirx.Select(product < 0, product - (divisor - one), product)
        return tirx.truncdiv(lowered, divisor)
