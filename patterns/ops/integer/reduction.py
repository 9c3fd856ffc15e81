"""Sums and means of integers over axes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX, magnitude, wrapping_type
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp


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
