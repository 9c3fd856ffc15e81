"""A choice between the elements of two tensors by a constant mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, Work, operator, union
from patterns.ops.broadcast import broadcast, broadcast_load, pair
from patterns.primitive_op import Argument, Inputs, PrimitiveOp


@operator
@dataclass(frozen=True, eq=False)
class Select(PrimitiveOp):
    """Elements of ``a`` where a constant mask is not 0, else of ``b``, broadcast like in numpy.

    Both have one type, and the same scale, which is the source's.

    Attributes:
        mask: int8, 0 or 1.
        a, b: the first or second operand if it is constant; at most one of them is.
    """

    kind = "select"
    work = Work.MOVE

    mask: Array
    a: Array | None = None
    b: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        _, first, second = inputs
        if first.dtype != second.dtype:
            raise IntegerFormError(f"a choice between {first.dtype} and {second.dtype}")
        return TensorType(broadcast(*(part.shape for part in inputs)), first.dtype)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the mask and both operands."""
        return Argument("mask", self.mask, "mask"), *pair(inputs, self.a, self.b)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of both operands."""
        known = [part for part in (self.a, self.b) if part is not None and part.dtype.kind == "i"]
        return union([*inputs, *((int(part.min()), int(part.max())) for part in known)])

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        mask, *operands = tensors

        def element(*index: Any) -> Any:
            first, second = (broadcast_load(part, index) for part in operands)
            return tirx.Select(broadcast_load(mask, index) != 0, first, second)

        return te.compute(self.extents(tensors), element, name="selected")
