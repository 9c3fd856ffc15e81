"""float32 tensors rounded to integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import operator
from patterns.ops.float32.base import RealOp
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealRound"]

# From this number on, float32 has no fractions, so adding it rounds to integers, ties to even.
_FRACTIONS_END = float(2**23)


@operator
@dataclass(frozen=True, eq=False)
class RealRound(RealOp):
    """The elements of a float32 tensor of any shape, rounded to integers, ties to even."""

    kind = "real_round"
    opaque = True

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and two equal numbers.

        There are two, because with one number a compiler would cancel the addition and subtraction.
        """
        ends = np.full(2, _FRACTIONS_END, "float32")
        return Argument("x", inputs[0]), Argument("ends", ends)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, ends = tensors

        def element(*index: Any) -> Any:
            value, plus, minus = source(*index), ends[0], ends[1]
            up, down = (value + plus) - minus, (value - plus) + minus
            near = tirx.Select(value >= tirx.const(0.0, "float32"), up, down)
            inside = tirx.all(value < plus, value > -plus)
            return tirx.Select(inside, near, value)

        return te.compute(source.shape, element, name="rounded")
