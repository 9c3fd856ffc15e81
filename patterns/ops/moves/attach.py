"""A constant beside a tensor, along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, Work, operator
from patterns.primitive import extents, sizes_of
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

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
        same = len(other) == len(source.shape) and 0 <= axis < len(other)
        if not same or source.dtype != self.constant.dtype.name:
            raise IntegerFormError(f"a constant of shape {other} beside {source.shape}")
        if any(
            a != b for at, (a, b) in enumerate(zip(other, source.shape, strict=True)) if at != axis
        ):
            raise IntegerFormError(f"a constant of shape {other} beside {source.shape}")
        return TensorType(self._shape(source.shape), source.dtype)

    def _shape(self, source: tuple[int, ...]) -> tuple[int, ...]:
        size = source[self.axis] + self.constant.shape[self.axis]
        return (*source[: self.axis], size, *source[self.axis + 1 :])

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the constant."""
        return Argument("x", inputs[0]), Argument("constant", self.constant, "constant")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        parts = tensors[::-1] if self.first else tensors
        axis, start = self.axis, sizes_of(parts[0])[self.axis]

        def element(*index: Any) -> Any:
            at = index[axis]
            early = parts[0](*index)
            late = parts[1](*index[:axis], at - start, *index[axis + 1 :])
            return tirx.if_then_else(at < start, early, late)

        return te.compute(extents(self._shape(sizes_of(tensors[0]))), element, name="attached")
