"""Sums and maxima over axes of float32 tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tvm import te, tirx

from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.primitive import sizes_of

__all__ = ["RealReduce", "Reduction"]

Reduction: TypeAlias = Literal["add", "maximum"]


@operator
@dataclass(frozen=True, eq=False)
class RealReduce(RealOp):
    """The sum or the maximum over some axes of a float32 tensor; these axes remain with size 1.

    Attributes:
        function: name of the function.
        axes: axes to reduce; negative ones count from the end.
    """

    kind = "real_reduce"

    function: Reduction
    axes: tuple[int, ...]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs)
        shape = inputs[0].shape
        axes = self._counted(len(shape))
        kept = (1 if axis in axes else size for axis, size in enumerate(shape))
        return TensorType(tuple(kept), "float32")

    def _counted(self, rank: int) -> list[int]:
        """Return the axes as non-negative numbers, sorted, without duplicates."""
        return sorted({axis % rank for axis in self.axes})

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        (source,) = tensors
        shape = sizes_of(source)
        combine = te.sum if self.function == "add" else te.max
        spans = {
            axis: te.reduce_axis((0, tirx.const(shape[axis], "int64")), f"k{axis}")
            for axis in self._counted(len(shape))
        }

        def element(*index: Any) -> Any:
            places = [spans.get(axis, place) for axis, place in enumerate(index)]
            return combine(source(*places), axis=list(spans.values()))

        return te.compute(self.extents(tensors), element, name="reduced")
