"""Resizing maps by copying each element from the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te

from patterns.op import TensorType, operator
from patterns.ops.moves.base import Move, y_axis
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array

__all__ = ["Nearest"]


@operator
@dataclass(frozen=True, eq=False)
class Nearest(Move, PrimitiveOp):
    """A map whose element (y, x) is the source's element (``rows[y]``, ``columns[x]``).

    Attributes:
        rows, columns: the source's row and column for each row and column of the result.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "nearest"

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    layout: str = "NHWC"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        source, y = inputs[0].shape, y_axis(self.layout)
        shape = (*source[:y], len(self.rows), len(self.columns), *source[y + 2 :])
        return TensorType(shape, inputs[0].dtype)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, rows and columns."""
        rows, columns = np.asarray(self.rows, "int32"), np.asarray(self.columns, "int32")
        return Argument("x", inputs[0]), Argument("rows", rows), Argument("columns", columns)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, row, column = tensors
        y = y_axis(self.layout)

        def element(*index: Any) -> Any:
            place = (row[index[y]], column[index[y + 1]])
            return source(*index[:y], *place, *index[y + 2 :])

        return te.compute(self.extents(tensors), element, name="nearest")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        """See `Move.moved`."""
        y = y_axis(self.layout)
        return np.take(np.take(parts[0], self.rows, axis=y), self.columns, axis=y + 1)
