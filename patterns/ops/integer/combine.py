"""Sums, differences and products of integer tensors, element by element, without scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tvm import te, tirx

from byoc_dory.layers.tensor import Array
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast, broadcast_load, pair
from patterns.ops.integer.limits import constant_of, magnitude, wrapping_type
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Combine", "Function"]

Function: TypeAlias = Literal["add", "subtract", "multiply"]


@operator
@dataclass(frozen=True, eq=False)
class Combine(PrimitiveOp):
    """The sum, difference or product of two integer tensors, int32, broadcast like in numpy.

    Results that exceed 32 bits wrap around.

    Attributes:
        function: name of the function.
        b: the second operand if it is constant, with integers that fit int32.
    """

    kind = "combine"
    tag = "integer_combine"

    function: Function
    b: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        return TensorType(broadcast(*(part.shape for part in inputs)), "int32")

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: both operands."""
        return pair(inputs, b=None if self.b is None else constant_of(self.b, 1))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        one, two = (magnitude(str(part.dtype)) for part in tensors)
        kind = wrapping_type(one * two if self.function == "multiply" else one + two)

        def element(*index: Any) -> Any:
            x, y = (tirx.Cast(kind, broadcast_load(part, index)) for part in tensors)
            result = {"add": x + y, "subtract": x - y, "multiply": x * y}[self.function]
            return tirx.Cast("int32", result)

        return te.compute(self.extents(tensors), element, name="combined")
