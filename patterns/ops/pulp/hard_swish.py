"""Hard swish in integers, as in the PULP flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from patterns.op import operator
from patterns.ops.pulp.elementwise import ElementWise, check_fits

__all__ = ["PulpHardSwish"]


@operator
@dataclass(frozen=True, eq=False)
class PulpHardSwish(ElementWise):
    """``x * clip(x + three, 0, six) * sixth``, int32.

    Attributes:
        three, six, sixth: the integers that represent 3.0, 6.0 and 1 / 6.
    """

    kind = "hard_swish"
    tag = "integer_hard_swish"
    offered = True

    three: int
    six: int
    sixth: int

    def check(self, largest: int) -> None:
        """See `ElementWise.check`."""
        check_fits(largest * max(self.six, 1) * max(abs(self.sixth), 1), "a hard swish")
        check_fits(largest + abs(self.three), "a hard swish")

    def of(self, value: Any) -> Any:
        """See `ElementWise.of`."""
        zero, three, six, sixth = (
            tirx.const(n, "int32") for n in (0, self.three, self.six, self.sixth)
        )
        gate = tirx.max(tirx.min(value + three, six), zero)
        return value * gate * sixth
