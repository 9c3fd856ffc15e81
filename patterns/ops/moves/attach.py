"""A constant beside a tensor, along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, Work, operator
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp

__all__ = ["Attach"]


@operator
@dataclass(frozen=True, eq=False)
class Attach(PrimitiveOp):
    """A tensor and a constant concatenated along an axis; both have the same type and scale.

    Its scale is the source's, because the constant's integers are in it.

    Attributes:
        constant: the constant.
        axis: axis of both.
        first: whether the constant comes first.
    """

    kind = "attach"
    work = Work.MOVE

    constant: Array
    axis: int
    first: bool

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        source, axis = inputs[0], self.axis
        other = self.constant.shape
        frames = {(*shape[:axis], *shape[axis + 1 :]) for shape in (other, source.shape)}
        same = len(other) == len(source.shape) and 0 <= axis < len(other) and len(frames) == 1
        if not same or source.dtype != self.constant.dtype.name:
            raise IntegerFormError(f"a constant of shape {other} beside {source.shape}")
        size = source.shape[axis] + other[axis]
        return TensorType((*other[:axis], size, *other[axis + 1 :]), source.dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        parts = tensors[::-1] if self.first else tensors
        axis, start = self.axis, sizes_of(parts[0])[self.axis]

        def element(*index: Any) -> Any:
            at = index[axis]
            early = parts[0](*index)
            late = parts[1](*index[:axis], at - start, *index[axis + 1 :])
            return tirx.if_then_else(at < start, early, late)

        return te.compute(self.extents(tensors), element, name="attached")
