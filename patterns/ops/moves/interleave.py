"""Spreading maps over larger ones, which turns a transposed convolution into a convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import TensorType, operator
from patterns.ops.moves.base import Filling, y_axis
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array


@operator
@dataclass(frozen=True, eq=False)
class Interleave(Filling, PrimitiveOp):
    """A map filled with ``value``, with the elements of a map spread over it.

    It turns a transposed convolution into a convolution: instead of adding every element times the
    filter to the output, one sums over the filter taps that reach an output element.

    Attributes:
        value: value of all places in between, usually the zero point.
        size: size (y, x) of the result.
        start: position (y, x) of the first element.
        strides: distance (y, x) between elements; those beyond ``size`` are left out.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "interleave"

    size: tuple[int, int]
    start: tuple[int, int]
    strides: tuple[int, int]
    layout: str = "NHWC"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, y = inputs[0].shape, y_axis(self.layout)
        return TensorType((*source[:y], *self.size, *source[y + 2 :]), inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,) = tensors
        shape, y, start, strides = sizes_of(source), y_axis(self.layout), self.start, self.strides

        def element(*index: Any) -> Any:
            places, inside = [], []
            for axis in (0, 1):
                # Counted from a multiple of the stride, so that no dividend is negative.
                shift = math.ceil(start[axis] / strides[axis])
                distance = index[y + axis] + (shift * strides[axis] - start[axis])
                place = tirx.floordiv(distance, strides[axis]) - shift
                places.append(place)
                if strides[axis] > 1:
                    inside.append(tirx.floormod(distance, strides[axis]) == 0)
                inside += [place >= 0, place < shape[y + axis]]
            taken = source(*index[:y], *places, *index[y + 2 :])
            return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(self.value, source.dtype))

        return te.compute(self.extents(tensors), element, name="spread")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        y, x = y_axis(self.layout), parts[0]
        out = np.full((*x.shape[:y], *self.size, *x.shape[y + 2 :]), fill, x.dtype)
        places: list[Array] = [np.arange(size) for size in x.shape]
        for at in (0, 1):
            target = self.start[at] + self.strides[at] * places[y + at]
            inside = (target >= 0) & (target < self.size[at])
            x = np.compress(inside, x, axis=y + at)
            places[y + at] = target[inside]
        out[np.ix_(*places)] = x
        return out
