"""Chosen elements along axes, at places that are known or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, Work, operator
from patterns.ops.moves.base import Move, y_axis
from patterns.primitive import Argument, Inputs, PrimitiveOp, sizes_of


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
        shape = inputs[0].shape
        if not 0 <= self.axis < len(shape) or not self.places:
            raise IntegerFormError(f"axis {self.axis} of {shape}, {len(self.places)} elements")
        if not 0 <= min(self.places) <= max(self.places) < shape[self.axis]:
            raise IntegerFormError(f"elements of axis {self.axis} outside of {shape}")
        before, after = shape[: self.axis], shape[self.axis + 1 :]
        return TensorType((*before, len(self.places), *after), inputs[0].dtype)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the places."""
        return {"places": np.asarray(self.places, "int32")}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, places = tensors
        axis = self.axis
        return source(*index[:axis], places[index[axis]], *index[axis + 1 :])

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return np.take(parts[0], self.places, axis=self.axis)


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
        source, y = inputs[0].shape, y_axis(self.layout)
        shape = (*source[:y], len(self.rows), len(self.columns), *source[y + 2 :])
        return TensorType(shape, inputs[0].dtype)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: rows and columns."""
        rows, columns = np.asarray(self.rows, "int32"), np.asarray(self.columns, "int32")
        return {"rows": rows, "columns": columns}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, row, column = tensors
        y = y_axis(self.layout)
        place = (row[index[y]], column[index[y + 1]])
        return source(*index[:y], *place, *index[y + 2 :])

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        y = y_axis(self.layout)
        return np.take(np.take(parts[0], self.rows, axis=y), self.columns, axis=y + 1)


@operator
@dataclass(frozen=True, eq=False)
class Gather(PrimitiveOp):
    """``take(x, places, axis)`` for int32 places of any shape, the second input.

    A negative place counts from the end.  What is still outside counts as the nearer end, so that
    no place reads other memory.

    Attributes:
        axis: axis of the tensor that the places are on.
        zero_point: integer of the elements that represents 0.0.
        table: the tensor if it is constant; the places are then the only input.
    """

    kind = "gather"
    work = Work.MOVE

    axis: int
    zero_point: int = 0
    table: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, places = inputs
        if not 0 <= self.axis < len(source.shape) or places.dtype != "int32":
            raise IntegerFormError(
                f"places of {places.dtype} on axis {self.axis} of {source.shape}"
            )
        before, after = source.shape[: self.axis], source.shape[self.axis + 1 :]
        return TensorType((*before, *places.shape, *after), source.dtype)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the tensor and the places."""
        if self.table is None:
            return super().arguments(inputs)
        return Argument("table", self.table, "table"), Argument("places", inputs[0])

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the elements."""
        if self.table is None:
            return inputs[0]
        if self.table.dtype.kind != "i":
            return super().range(inputs)
        return int(self.table.min()), int(self.table.max())

    def looked_up(self, places: Array) -> Array:
        """Return the elements of the table at places of any integer type, in numpy."""
        assert self.table is not None
        size = self.table.shape[self.axis]
        inside = np.where(places < 0, places + size, places)
        return np.take(self.table, np.clip(inside, 0, size - 1), self.axis)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, places = tensors
        shapes, axis = [sizes_of(part) for part in tensors], self.axis
        size, end = shapes[0][axis], axis + len(shapes[1])
        place = places(*index[axis:end])
        place = tirx.Select(place < 0, place + size, place)
        place = tirx.max(tirx.min(place, size - 1), 0)
        return source(*index[:axis], place, *index[end:])
