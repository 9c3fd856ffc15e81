"""GELU in integers, as in the PULP flow: a polynomial of second degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import operator
from patterns.ops.pulp.elementwise import ElementWise, check_fits

__all__ = ["PulpGelu"]


@operator
@dataclass(frozen=True, eq=False)
class PulpGelu(ElementWise):
    """``x * ((one + L) >> 1)``, ``L = sgn(x) * (one - (min(|x|, -b) + b)**2)``; int32.

    Attributes:
        b: negated argument where the error function becomes flat; not positive.
        one: the integer that represents 1.0.
    """

    kind = "gelu"
    tag = "integer_gelu"
    offered = True

    b: int
    one: int

    def check(self, largest: int) -> None:
        """See `ElementWise.check`."""
        if self.b > 0:
            raise UnsupportedError(f"b = {self.b}", hint="b is negative")
        check_fits(largest * (abs(self.one) + self.b * self.b), "a GELU")

    def of(self, value: Any) -> Any:
        """See `ElementWise.of`."""
        zero, bit, one, b = (tirx.const(n, "int32") for n in (0, 1, self.one, self.b))
        inner = tirx.min(tirx.max(value, -value), tirx.const(-self.b, "int32")) + b
        flat = one - inner * inner
        signed = tirx.Select(value > 0, flat, tirx.Select(value < 0, -flat, zero))
        return value * ((one + signed) >> bit)
