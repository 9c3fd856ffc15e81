"""A part of a tensor along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.moves.base import Move
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array


@operator
@dataclass(frozen=True, eq=False)
class Slice(Move, PrimitiveOp):
    """``sizes`` elements starting at ``begin``, every ``strides``-th one, along each axis.

    Attributes:
        begin, sizes, strides: one number per axis; strides may be negative, not zero.
    """

    kind = "slice"

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def every(cls, begin: Sequence[int], sizes: Sequence[int]) -> Slice:
        """Return the slice that skips nothing between its ends."""
        return cls(tuple(begin), tuple(sizes), (1,) * len(begin))

    @classmethod
    def along(cls, shape: Sequence[int], axis: int, places: range) -> Slice:
        """Return the slice of a tensor of this shape at places along an axis, not empty."""
        begin, sizes, strides = [0] * len(shape), list(shape), [1] * len(shape)
        begin[axis], sizes[axis], strides[axis] = places.start, len(places), places.step
        return cls(tuple(begin), tuple(sizes), tuple(strides))

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        parts = zip(shape, self.begin, self.sizes, self.strides, strict=True)
        for size, first, count, step in parts:
            last = first + (count - 1) * step
            if count < 1 or step == 0 or not (0 <= first < size and 0 <= last < size):
                raise IntegerFormError(
                    f"a slice of {shape} from {self.begin}, {self.sizes} elements in steps of "
                    f"{self.strides}"
                )
        return TensorType(self.sizes, inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            parts = zip(index, self.begin, self.strides, strict=True)
            return tensors[0](*(at * step + first for at, first, step in parts))

        return te.compute(self.extents(tensors), element, name="part")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        bounds = zip(self.begin, self.sizes, self.strides, strict=True)
        places = [begin + np.arange(size) * stride for begin, size, stride in bounds]
        return np.asarray(parts[0][np.ix_(*places)])
