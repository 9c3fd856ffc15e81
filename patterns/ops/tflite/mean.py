"""The mean of a tensor over some axes in TFLite's arithmetic, or its sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType, Work, operator
from patterns.ops.requantize import fixed_point, left_shift, rounding_high_multiply
from patterns.ops.tflite.binary import divided
from patterns.primitive import sizes_of
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["TfliteMean", "mean_factor"]

_MOST = {"int8": 1 << 22, "int16": 1 << 15}
"""Number of elements, centred and 9 or 16 bits each, whose sums are below 2**30."""


@operator
@dataclass(frozen=True, eq=False)
class TfliteMean(PrimitiveOp):
    """TFLite's MEAN of tensors of int8 or int16; the count is part of the multiplier.

    Without the count in the multiplier it is TFLite's SUM.

    Attributes:
        axes: axes to sum over, counted from 0.
        multiplier, shift: factor as returned by `mean_factor`, or that of both scales for a sum.
        zero_points: those of input and output.
        keep_dims: whether the axes remain, with size 1.
    """

    kind = "tflite_mean"
    stem = "mean"
    work = Work.WINDOW

    axes: tuple[int, ...]
    multiplier: int
    shift: int
    zero_points: tuple[int, int]
    keep_dims: bool = False

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.zero_points[1]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        shape = inputs[0].shape
        count = math.prod(shape[axis] for axis in self.axes)
        if count >= _MOST[inputs[0].dtype]:
            raise UnsupportedError(f"a mean or a sum of {count} elements of {inputs[0].dtype}")
        sizes = (1 if axis in self.axes else shape[axis] for axis in self._kept(len(shape)))
        return TensorType(tuple(sizes), inputs[0].dtype)

    def _kept(self, rank: int) -> list[int]:
        """Return the axes of the input that remain in the result."""
        return [axis for axis in range(rank) if self.keep_dims or axis not in self.axes]

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the multiplier."""
        multiplier = np.asarray([self.multiplier], "int32")
        return Argument("x", inputs[0]), Argument("multiplier", multiplier)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, factors = tensors
        shape = sizes_of(source)
        count = math.prod(shape[axis] for axis in self.axes)
        sums = self._sums(source)
        limits = np.iinfo(str(source.dtype))
        low, high = int(limits.min), int(limits.max)

        def element(*index: Any) -> Any:
            centred = sums(*index) - self.zero_points[0] * count
            if self.shift > 0:
                centred = left_shift(centred, tirx.const(self.shift, "int32"))
            rounded = rounding_high_multiply(centred, factors[0])
            value = divided(rounded, self.shift) + self.zero_points[1]
            return tirx.Cast(source.dtype, tirx.max(tirx.min(value, high), low))

        return te.compute(sums.shape, element, name="mean")

    def _sums(self, source: te.Tensor) -> te.Tensor:
        """Return int32 sums over the axes."""
        shape = sizes_of(source)
        reduced = {axis: te.reduce_axis((0, shape[axis]), f"r{axis}") for axis in self.axes}

        def total(*index: Any) -> Any:
            place = dict(zip(self._kept(len(shape)), index, strict=True)) | reduced
            element = source(*(place[axis] for axis in range(len(shape))))
            return te.sum(tirx.Cast("int32", element), axis=list(reduced.values()))

        return te.compute(self.extents([source]), total, name="total")


def mean_factor(scales: tuple[float, float], count: int) -> tuple[int, int]:
    """Return multiplier and exponent of a mean over ``count`` elements, computed like TFLite.

    Args:
        scales: those of input and output.
        count: number of elements.
    """
    multiplier, shift = fixed_point(scales[0] / scales[1])
    bits = max(min(count.bit_length() - 1, 32, 31 + shift), 0)
    return (multiplier << bits) // count, shift - bits
