"""A permutation of a tensor's axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import te

from patterns.op import TensorType, operator
from patterns.ops.moves.base import Move
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array


@operator
@dataclass(frozen=True, eq=False)
class Transpose(Move, PrimitiveOp):
    """Axis ``i`` of the result is axis ``axes[i]`` of the input."""

    kind = "transpose"

    axes: tuple[int, ...]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(inputs[0].shape[axis] for axis in self.axes)
        return TensorType(shape, inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,), axes = tensors, self.axes

        def element(*index: Any) -> Any:
            return source(*(index[axes.index(axis)] for axis in range(len(axes))))

        return te.compute(self.extents(tensors), element, name="transposed")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return parts[0].transpose(self.axes)
