"""Elements along one axis at places that are computed, as of a table of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, Work, operator
from patterns.primitive import sizes_of
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Gather"]


@operator
@dataclass(frozen=True, eq=False)
class Gather(PrimitiveOp):
    """``take(x, places, axis)`` for int32 places of any shape, the second input.

    A negative place counts from the end.  What is still outside counts as the nearer end, so that
    no place reads other memory.

    Attributes:
        axis: axis of the tensor that the places are on.
        zero_point: integer of the elements that represents 0.0.
        table: the tensor if it is constant; the places are then the only input.
    """

    kind = "gather"
    work = Work.MOVE

    axis: int
    zero_point: int = 0
    table: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        source, places = inputs
        if not 0 <= self.axis < len(source.shape) or places.dtype != "int32":
            raise IntegerFormError(
                f"places of {places.dtype} on axis {self.axis} of {source.shape}"
            )
        before, after = source.shape[: self.axis], source.shape[self.axis + 1 :]
        return TensorType((*before, *places.shape, *after), source.dtype)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the tensor and the places."""
        if self.table is None:
            return super().arguments(inputs)
        return Argument("table", self.table, "table"), Argument("places", inputs[0])

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the elements."""
        if self.table is None:
            return inputs[0]
        if self.table.dtype.kind != "i":
            return super().range(inputs)
        return int(self.table.min()), int(self.table.max())

    def looked_up(self, places: Array) -> Array:
        """Return the elements of the table at places of any integer type, in numpy."""
        assert self.table is not None
        size = self.table.shape[self.axis]
        inside = np.where(places < 0, places + size, places)
        return np.take(self.table, np.clip(inside, 0, size - 1), self.axis)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, places = tensors
        shapes, axis = [sizes_of(part) for part in tensors], self.axis
        size, end = shapes[0][axis], axis + len(shapes[1])

        def element(*index: Any) -> Any:
            place = places(*index[axis:end])
            place = tirx.Select(place < 0, place + size, place)
            place = tirx.max(tirx.min(place, size - 1), 0)
            return source(*index[:axis], place, *index[end:])

        return te.compute(self.extents(tensors), element, name="gathered")
