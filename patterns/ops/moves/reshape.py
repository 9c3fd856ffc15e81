"""A change of shape that keeps the order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm.relax import op as R

from patterns.call_op import CallOp
from patterns.op import Range, Scale, Work, operator, union
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call, Expr


@operator
@dataclass(frozen=True, eq=False)
class Reshape(CallOp):
    """The same elements in the same order, in another shape (including the batch)."""

    kind = "reshape"
    operation = "relax.reshape"
    work = Work.NOTHING
    scale = Scale.PASSES

    shape: tuple[int, ...]

    def call(self, x: Expr) -> Call:
        return R.reshape(x, self.shape)

    @classmethod
    def read(cls, call: Any) -> Reshape:
        return cls(shape_of(call))

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the input."""
        return union(inputs)
