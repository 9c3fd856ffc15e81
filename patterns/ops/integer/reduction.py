"""Sums, means and extremes of integers over axes, extremes of two tensors, and their places."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array, Layer, MulShift
from patterns.op import Operands, Range, TensorType, Work, operator, union
from patterns.ops.broadcast import PairOp, broadcast, broadcast_load
from patterns.ops.integer.limits import INT32_MAX, magnitude, wrapping_type
from patterns.ops.layers import mean_layer
from patterns.primitive import PrimitiveOp, sizes_of


@dataclass(frozen=True, eq=False)
class IntegerReduction(PrimitiveOp):
    """Base of functions of the sums of integers over some axes.

    Attributes:
        axes: axes to sum over; negative ones count from the end.
        keepdims: whether these axes remain, with size 1.
    """

    work = Work.WINDOW

    axes: tuple[int, ...]
    keepdims: bool = True

    @abstractmethod
    def accumulator(self, worst: int) -> str:
        """Return the type for sums of at most this magnitude."""

    @abstractmethod
    def finished(self, total: Any, count: int, accumulator: str, dtype: str) -> Any:
        """Return the result, given a sum.

        Args:
            total: the sum, of type ``accumulator``.
            count: number of elements in the sum.
            accumulator: type of the sum.
            dtype: type of the elements.
        """

    def count(self, shape: tuple[int, ...]) -> int:
        """Return the number of elements in each sum, for a tensor of this shape."""
        return math.prod(shape[axis] for axis in self.axes)

    def shape(self, source: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for a tensor of this shape."""
        reduced = self._reduced(len(source))
        return tuple(1 if axis in reduced else source[axis] for axis in self._kept(len(source)))

    def _reduced(self, rank: int) -> list[int]:
        return sorted(axis % rank for axis in self.axes)

    def _kept(self, rank: int) -> list[int]:
        """Return the axes of the input that remain in the result."""
        reduced = self._reduced(rank)
        return [axis for axis in range(rank) if self.keepdims or axis not in reduced]

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,) = tensors
        shape, dtype = sizes_of(source), str(source.dtype)
        rank, count, out = len(shape), self.count(shape), self.extents(tensors)
        accumulator = self.accumulator(count * (magnitude(dtype) + 1))
        reduced = {
            axis: te.reduce_axis((0, tirx.const(shape[axis], "int64")), f"r{axis}")
            for axis in self._reduced(rank)
        }

        def summed(*index: Any) -> Any:
            place = dict(zip(self._kept(rank), index, strict=True)) | reduced
            element = source(*(place[axis] for axis in range(rank)))
            return te.sum(tirx.Cast(accumulator, element), axis=list(reduced.values()))

        sums = te.compute(out, summed, name="sums")
        return te.compute(
            out, lambda *i: self.finished(sums(*i), count, accumulator, dtype), name=self.kind
        )


@operator
@dataclass(frozen=True, eq=False)
class IntegerMean(IntegerReduction):
    """``(sum + n / 2) // n`` over n elements, a power of two, in the type of the input."""

    kind = "mean"
    tag = "integer_mean"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        count = self.count(inputs[0].shape)
        if count & (count - 1):
            raise UnsupportedError(
                f"a mean of {count} integers",
                hint="the rounding of integer means is defined for powers of two",
            )
        return TensorType(self.shape(inputs[0].shape), inputs[0].dtype)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """See `Op.kept_layer`: sums over axes of a map with its channels first."""
        shape = inputs[0][1].shape
        count = self.count(shape)
        requant = MulShift((1,), (count.bit_length() - 1,), (count // 2,))
        return mean_layer(name, inputs[0], self._reduced(len(shape)), requant, "NCHW")

    def accumulator(self, worst: int) -> str:
        return "int32" if worst <= INT32_MAX else "int64"

    def finished(self, total: Any, count: int, accumulator: str, dtype: str) -> Any:
        value = total + tirx.const(count // 2, accumulator)
        bits = count.bit_length() - 1
        return tirx.Cast(dtype, value >> tirx.const(bits, accumulator))


@operator
@dataclass(frozen=True, eq=False)
class Total(IntegerReduction):
    """The int32 sum over some axes; sums that exceed 32 bits wrap around."""

    kind = "total"
    tag = "integer_total"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.shape(inputs[0].shape), "int32")

    def accumulator(self, worst: int) -> str:
        return wrapping_type(worst)

    def finished(self, total: Any, count: int, accumulator: str, dtype: str) -> Any:
        return tirx.Cast("int32", total)


Which: TypeAlias = Literal["maximum", "minimum"]


@operator
@dataclass(frozen=True, eq=False)
class ReduceExtreme(PrimitiveOp):
    """The largest or smallest integer over some axes, for any type.

    Attributes:
        function: which of the two.
        axes: axes to reduce, counted from 0.
        keepdims: whether these axes remain, with size 1.
    """

    kind = "reduce_extreme"
    work = Work.WINDOW

    function: Which
    axes: tuple[int, ...]
    keepdims: bool = True

    @property
    def stem(self) -> str:
        return f"reduce_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        if not self.axes or not 0 <= min(self.axes) <= max(self.axes) < len(shape):
            raise IntegerFormError(f"axes {self.axes} of a tensor of shape {shape}")
        sizes = (1 if at in self.axes else shape[at] for at in self._kept(len(shape)))
        return TensorType(tuple(sizes), inputs[0].dtype)

    def _kept(self, rank: int) -> list[int]:
        return [axis for axis in range(rank) if self.keepdims or axis not in self.axes]

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the input."""
        return union(inputs)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), reduce = tensors, te.max if self.function == "maximum" else te.min
        shape = sizes_of(source)
        spans = {
            axis: te.reduce_axis((0, tirx.const(shape[axis], "int64")), f"r{axis}")
            for axis in sorted(set(self.axes))
        }

        def element(*index: Any) -> Any:
            place = dict(zip(self._kept(len(shape)), index, strict=True)) | spans
            return reduce(source(*(place[axis] for axis in range(len(shape)))), [*spans.values()])

        return te.compute(self.extents(tensors), element, name="extreme")


@operator
@dataclass(frozen=True, eq=False)
class Extreme(PairOp):
    """The larger or the smaller of two integers of one type, broadcast like in numpy.

    Attributes:
        function: which of the two.
        b: the second operand if it is constant.
    """

    kind = "extreme"

    function: Which
    b: Array | None = None

    @property
    def stem(self) -> str:
        return self.function

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        first, second = inputs[0], inputs[1]
        if first.dtype != second.dtype:
            raise IntegerFormError(f"operands of types {first.dtype} and {second.dtype}")
        return TensorType(broadcast(first.shape, second.shape), first.dtype)

    def range(self, inputs: Sequence[Range]) -> Range:
        own = [] if self.b is None else [(int(self.b.min()), int(self.b.max()))]
        ranges = [*inputs, *own]
        pick = max if self.function == "maximum" else min
        return pick(low for low, _ in ranges), pick(high for _, high in ranges)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        pick = tirx.max if self.function == "maximum" else tirx.min
        return pick(*(broadcast_load(part, index) for part in tensors))


@operator
@dataclass(frozen=True, eq=False)
class ArgExtreme(PrimitiveOp):
    """The place of the largest or smallest int8 or uint8 along an axis, int32; the first of equals.

    Attributes:
        function: which of the two.
        axis: the axis, counted from 0; it is not in the result.
    """

    kind = "arg_extreme"
    work = Work.WINDOW

    function: Which
    axis: int

    @property
    def stem(self) -> str:
        return f"arg_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        if not 0 <= self.axis < len(shape) or len(shape) < 2:
            raise IntegerFormError(f"axis {self.axis} of a tensor of shape {shape}")
        if shape[self.axis] > INT32_MAX >> 9 or inputs[0].dtype not in ("int8", "uint8"):
            raise UnsupportedError(f"the place among {shape[self.axis]} of type {inputs[0].dtype}")
        return TensorType((*shape[: self.axis], *shape[self.axis + 1 :]), "int32")

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: any place in a tensor."""
        return 0, INT32_MAX >> 9

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), axis = tensors, self.axis
        shape = sizes_of(source)
        length, most = shape[axis], self.function == "maximum"
        k = te.reduce_axis((0, tirx.const(length, "int64")), "k")
        out = self.extents(tensors)

        def key(*index: Any) -> Any:
            # Number and place in one integer, so that one comparison decides, the first of equals.
            value = tirx.Cast("int32", source(*index[:axis], k, *index[axis:])) + 128
            place = tirx.Cast("int32", k)
            place = (length - 1 - place) if most else place
            return (te.max if most else te.min)(value * length + place, [k])

        keys = te.compute(out, key, name="keys")

        def element(*index: Any) -> Any:
            place = tirx.floormod(keys(*index), tirx.const(length, "int32"))
            return (length - 1 - place) if most else place

        return te.compute(out, element, name="place")
