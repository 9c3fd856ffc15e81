"""Chosen elements along one axis, in any order, any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.moves.base import Move
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array

__all__ = ["Take"]


@operator
@dataclass(frozen=True, eq=False)
class Take(Move, PrimitiveOp):
    """A tensor whose element ``i`` along an axis is the source's element ``places[i]``.

    Attributes:
        axis: the axis.
        places: the source's element for each element of the result.
    """

    kind = "take"

    axis: int
    places: tuple[int, ...]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        shape = inputs[0].shape
        if not 0 <= self.axis < len(shape) or not self.places:
            raise IntegerFormError(f"axis {self.axis} of {shape}, {len(self.places)} elements")
        if not 0 <= min(self.places) <= max(self.places) < shape[self.axis]:
            raise IntegerFormError(f"elements of axis {self.axis} outside of {shape}")
        before, after = shape[: self.axis], shape[self.axis + 1 :]
        return TensorType((*before, len(self.places), *after), inputs[0].dtype)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the places."""
        return Argument("x", inputs[0]), Argument("places", np.asarray(self.places, "int32"))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, places = tensors
        axis = self.axis

        def element(*index: Any) -> Any:
            return source(*index[:axis], places[index[axis]], *index[axis + 1 :])

        return te.compute(self.extents(tensors), element, name="taken")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        """See `Move.moved`."""
        return np.take(parts[0], self.places, axis=self.axis)
