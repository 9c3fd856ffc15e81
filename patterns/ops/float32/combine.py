"""Functions of two float32 tensors, products of matrices, and functions of the elements on axes.

Those of two tensors are computed element by element, each rounded once as in IEEE 754.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.op import Range, TensorType, operator
from patterns.ops.broadcast import broadcast, broadcast_load
from patterns.ops.float32.base import RealOp, RealPair, check_reals
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.integer.reduction import Which
from patterns.primitive import sizes_of

Function: TypeAlias = Literal["add", "subtract", "multiply", "divide", "minimum", "maximum"]

_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    # A NaN in the first operand is kept.
    "minimum": lambda x, y: tirx.Select(y < x, y, x),
    "maximum": lambda x, y: tirx.Select(y > x, y, x),
}


@operator
@dataclass(frozen=True, eq=False)
class RealCombine(RealPair):
    """A function of two float32 tensors, broadcast like in numpy.

    Attributes:
        function: name of the function.
    """

    kind = "real"
    tag = "real_combine"

    function: Function

    @property
    def stem(self) -> str:
        return f"real_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        return TensorType(broadcast(*(part.shape for part in inputs)), "float32")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        x, y = (broadcast_load(part, index) for part in tensors)
        return _COMBINE[self.function](x, y)


@operator
@dataclass(frozen=True, eq=False)
class RealMatmul(RealPair):
    """The product of two float32 tensors of matrices, broadcast like in numpy, summed in order."""

    kind = "real_matmul"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        first, second = (part.shape for part in inputs)
        if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
            raise IntegerFormError(f"a product of shapes {first} and {second}")
        outer = (int(size) for size in np.broadcast_shapes(first[:-2], second[:-2]))
        return TensorType((*outer, first[-2], second[-1]), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        left, right = tensors
        k = te.reduce_axis((0, tirx.const(sizes_of(left)[-1], "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = broadcast_load(left, [*batch, row, k])
            return te.sum(x * broadcast_load(right, [*batch, k, column]), axis=[k])

        return te.compute(self.extents(tensors), element, name="matmul")


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
