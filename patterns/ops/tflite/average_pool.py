"""The average of windows in TFLite's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from patterns.op import INT8, Range, Scale, TensorType, Work, operator, union
from patterns.ops.moves.base import y_axis
from patterns.ops.windows import windows
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Layout

__all__ = ["AveragePool"]


@operator
@dataclass(frozen=True, eq=False)
class AveragePool(PrimitiveOp):
    """Averages of windows of int8 or int16, rounded half away from zero, in the input's scale.

    Attributes:
        kernel, strides: sizes (y, x).
        padding: sizes (top, left, bottom, right); positions outside are not counted.
        clip: inclusive range of the output.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "average_pool"
    tag = "average_pool2d"
    work = Work.WINDOW
    scale = Scale.PASSES

    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clip: Range = INT8
    layout: str = "NHWC"

    @property
    def prescribed(self) -> Layout:
        """See `Op.prescribed`."""
        return "NHWC" if self.layout == "NHWC" else "NCHW"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`; no window may lie completely outside the input."""
        shape, y, sizes = inputs[0].shape, y_axis(self.layout), []
        for axis in (0, 1):
            before = self.padding[axis]
            span = shape[y + axis] + before + self.padding[axis + 2] - self.kernel[axis]
            count = span // self.strides[axis] + 1
            sizes.append(count)
            last_start = (count - 1) * self.strides[axis] - before
            if count < 1 or before >= self.kernel[axis] or last_start >= shape[y + axis]:
                raise UnsupportedError(
                    f"an average over no elements: input {shape}, kernel {self.kernel}, "
                    f"pads {self.padding}"
                )
        return TensorType((*shape[:y], *sizes, *shape[y + 2 :]), inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        (source,), y_at = tensors, y_axis(self.layout)
        kernel, padding = self.kernel, self.padding
        sizes, out = sizes_of(source)[y_at : y_at + 2], self.extents(tensors)
        ry, rx = te.reduce_axis((0, kernel[0]), "ry"), te.reduce_axis((0, kernel[1]), "rx")

        def start(index: Any, axis: int) -> Any:
            return index[y_at + axis] * self.strides[axis] - padding[axis]

        def window(*index: Any) -> Any:
            y, x = start(index, 0) + ry, start(index, 1) + rx
            place = [*index[:y_at], y, x, *index[y_at + 2 :]]
            value = tirx.Cast("int32", source(*place))
            if any(padding):
                inside = tirx.all(y >= 0, y < sizes[0], x >= 0, x < sizes[1])
                value = tirx.if_then_else(inside, value, tirx.const(0, "int32"))
            return te.sum(value, axis=[ry, rx])

        def covered(index: Any, axis: int) -> Any:
            if not padding[axis] and not padding[axis + 2]:
                return tirx.const(kernel[axis], "int32")
            first = start(index, axis)
            last = tirx.min(first + kernel[axis], tirx.const(sizes[axis], first.ty.dtype))
            return tirx.Cast("int32", last - tirx.max(first, tirx.const(0, first.ty.dtype)))

        total = te.compute(out, window, name="total")

        def average(*index: Any) -> Any:
            count, value = covered(index, 0) * covered(index, 1), total(*index)
            half = tirx.truncdiv(count, tirx.const(2, "int32"))
            nudged = value + tirx.Select(value >= 0, half, -half)
            result = tirx.truncdiv(nudged, count)
            return tirx.Cast(source.dtype, tirx.max(tirx.min(result, self.clip[1]), self.clip[0]))

        return te.compute(out, average, name="average")

    def compute(self, inputs: Sequence[Array]) -> Array:
        """See `Op.compute`."""
        x, shape = inputs[0], (self.kernel, self.strides, self.padding, 0)
        total = windows(x.astype(np.int64), *shape).sum(axis=(-2, -1))
        count = windows(np.ones_like(x[:1], np.int64), *shape).sum(axis=(-2, -1))
        away = (np.abs(total) + count // 2) // count
        return np.clip(np.where(total < 0, -away, away), *self.clip).astype(x.dtype)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: a mean lies within the range of its inputs."""
        low, high = np.clip(union(inputs), *self.clip)
        return int(low), int(high)

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: all elements of each window."""
        return prod(self.kernel) * prod(output.shape)
