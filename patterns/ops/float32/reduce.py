"""Sums and maxima over axes of float32 tensors, and where along an axis extremes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.op import Range, TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.ops.integer.extreme import Which
from patterns.ops.integer.limits import INT32_MAX
from patterns.primitive import sizes_of

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
        check_reals(inputs)
        shape = inputs[0].shape
        axes = self._counted(len(shape))
        kept = (1 if axis in axes else size for axis, size in enumerate(shape))
        return TensorType(tuple(kept), "float32")

    def _counted(self, rank: int) -> list[int]:
        """Return the axes as non-negative numbers, sorted, without duplicates."""
        return sorted({axis % rank for axis in self.axes})

    def body(self, *tensors: te.Tensor) -> te.Tensor:
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


@operator
@dataclass(frozen=True, eq=False)
class RealArgExtreme(RealOp):
    """The place of the largest or smallest real along an axis, int32; the first of equals.

    Attributes:
        function: which of the two.
        axis: the axis, counted from 0; it is not in the result.
    """

    kind = "real_arg_extreme"

    function: Which
    axis: int

    @property
    def stem(self) -> str:
        return f"arg_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        shape = inputs[0].shape
        if not 0 <= self.axis < len(shape) or len(shape) < 2:
            raise IntegerFormError(f"axis {self.axis} of a tensor of shape {shape}")
        return TensorType((*shape[: self.axis], *shape[self.axis + 1 :]), "int32")

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: any place in a tensor."""
        return 0, INT32_MAX

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), axis = tensors, self.axis
        length = sizes_of(source)[axis]
        out = self.extents(tensors)
        pick = te.max if self.function == "maximum" else te.min
        i = te.reduce_axis((0, tirx.const(length, "int64")), "i")
        k = te.reduce_axis((0, tirx.const(length, "int64")), "k")
        most = te.compute(
            out, lambda *at: pick(source(*at[:axis], i, *at[axis:]), [i]), name="most"
        )

        def element(*at: Any) -> Any:
            same = source(*at[:axis], k, *at[axis:]) == most(*at)
            none = tirx.const(length, "int32")
            return te.min(tirx.Select(same, tirx.Cast("int32", k), none), [k])

        first = te.compute(out, element, name="first")
        # Nothing is equal where all are infinitely small, or there is NaN.
        return te.compute(
            out,
            lambda *at: tirx.Select(first(*at) == length, tirx.const(0, "int32"), first(*at)),
            name="place",
        )
