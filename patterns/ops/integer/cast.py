"""Conversion of integers to another integer type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tirx

from patterns.op import TensorType, Work, operator
from patterns.primitive_op import PrimitiveOp

__all__ = ["Cast"]


@operator
@dataclass(frozen=True, eq=False)
class Cast(PrimitiveOp):
    """The same integers in another type, which must be able to hold them.

    Attributes:
        dtype: type of the result.
    """

    kind = "cast"
    work = Work.MOVE

    dtype: str

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        return TensorType(inputs[0].shape, self.dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        (source,) = tensors
        return te.compute(source.shape, lambda *i: tirx.Cast(self.dtype, source(*i)), name="cast")
