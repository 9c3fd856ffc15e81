"""Tensors made of the elements of others: concatenated, or chosen by a mask or by their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, Concatenation, Repetition
from patterns.op import Operands, Range, TensorType, Work, operator, union
from patterns.ops.broadcast import broadcast, broadcast_load, pair
from patterns.ops.layers import map_of, of_stored, stored
from patterns.ops.moves.base import Move, y_axis
from patterns.primitive import Argument, Inputs, PrimitiveOp, sizes_of
from patterns.rows import ROW_AXIS, RowWindow, matching_rows

_IN_A_ROW = 16
"""Parts that are told apart one after the other."""


@operator
@dataclass(frozen=True, eq=False)
class Concat(Move, PrimitiveOp):
    """The inputs concatenated along ``axis``; all have the same type, scale and zero point.

    Attributes:
        axis: axis of the tensors; 0 is the batch; negative ones count from the end.
    """

    kind = "concat"

    axis: int

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shapes, dtypes = [part.shape for part in inputs], {part.dtype for part in inputs}
        axis = self.axis % len(shapes[0])
        frames = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if len(frames) != 1 or len(dtypes) != 1 or len({len(shape) for shape in shapes}) != 1:
            raise IntegerFormError(
                f"a concatenation along axis {axis} of {', '.join(map(str, shapes))}"
            )
        size = sum(shape[axis] for shape in shapes)
        return TensorType((*shapes[0][:axis], size, *shapes[0][axis + 1 :]), inputs[0].dtype)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Concatenation | None:
        parts = [stored(*each) for each in inputs]
        result, axis = stored(name, output), self.axis % len(output.shape)
        known = tuple(part for part in parts if part is not None)
        if result is None or len(known) < len(parts) or axis == 0:
            return None
        place = of_stored(range(len(output.shape))).index(axis)
        return Concatenation(name=name, inputs=known, output=result, axis=place)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        if self.axis % len(output.shape) <= ROW_AXIS:
            return None
        return matching_rows([each.shape for each in inputs], output.shape)

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        return tuple(Argument(f"part_{at}", part) for at, part in enumerate(inputs))

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        shapes = [sizes_of(tensor) for tensor in tensors]
        axis = self.axis % len(shapes[0])
        sizes = [shape[axis] for shape in shapes]
        starts = [sum(sizes[:part]) for part in range(len(sizes))]
        at = index[axis]

        def taken(part: int) -> Any:
            return tensors[part](*index[:axis], at - starts[part], *index[axis + 1 :])

        def chosen(first: int, last: int) -> Any:
            if last - first > _IN_A_ROW:  # halves: else the last of many is far down
                middle = (first + last) // 2
                here = at < tirx.const(starts[middle], at.ty.dtype)
                return tirx.if_then_else(here, chosen(first, middle), chosen(middle, last))
            value = taken(last - 1)
            for part in reversed(range(first, last - 1)):
                here = at < tirx.const(starts[part + 1], at.ty.dtype)
                value = tirx.if_then_else(here, taken(part), value)
            return value

        return chosen(0, len(tensors))

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return np.concatenate(parts, axis=self.axis)


@operator
@dataclass(frozen=True, eq=False)
class Attach(PrimitiveOp):
    """A tensor and a constant concatenated along an axis; both have the same type and scale.

    Its scale is the source's, because the constant's integers are in it.

    Attributes:
        constant: the constant.
        axis: axis of both.
        first: whether the constant comes first.
    """

    kind = "attach"
    work = Work.MOVE

    constant: Array
    axis: int
    first: bool

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, axis = inputs[0], self.axis
        other = self.constant.shape
        frames = {(*shape[:axis], *shape[axis + 1 :]) for shape in (other, source.shape)}
        same = len(other) == len(source.shape) and 0 <= axis < len(other) and len(frames) == 1
        if not same or source.dtype != self.constant.dtype.name:
            raise IntegerFormError(f"a constant of shape {other} beside {source.shape}")
        size = source.shape[axis] + other[axis]
        return TensorType((*other[:axis], size, *other[axis + 1 :]), source.dtype)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        parts = tensors[::-1] if self.first else tensors
        axis, start = self.axis, sizes_of(parts[0])[self.axis]
        at = index[axis]
        early = parts[0](*index)
        late = parts[1](*index[:axis], at - start, *index[axis + 1 :])
        return tirx.if_then_else(at < start, early, late)


@operator
@dataclass(frozen=True, eq=False)
class Select(PrimitiveOp):
    """Elements of ``a`` where a constant mask is not 0, else of ``b``, broadcast like in numpy.

    Both have one type, and the same scale, which is the source's.

    Attributes:
        mask: int8, 0 or 1.
        a, b: the first or second operand if it is constant; at most one of them is.
    """

    kind = "select"
    work = Work.MOVE

    mask: Array
    a: Array | None = None
    b: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        _, first, second = inputs
        if first.dtype != second.dtype:
            raise IntegerFormError(f"a choice between {first.dtype} and {second.dtype}")
        return TensorType(broadcast(*(part.shape for part in inputs)), first.dtype)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the mask and both operands."""
        return Argument("mask", self.mask, "mask"), *pair(inputs, self.a, self.b)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of both operands."""
        known = [part for part in (self.a, self.b) if part is not None and part.dtype.kind == "i"]
        return union([*inputs, *((int(part.min()), int(part.max())) for part in known)])

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        mask, *operands = tensors
        first, second = (broadcast_load(part, index) for part in operands)
        return tirx.Select(broadcast_load(mask, index) != 0, first, second)


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

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Repetition | None:
        """See `Op.kept_layer`: rows and columns that are each repeated as often."""
        source, result = map_of(*inputs[0], self.layout), map_of(name, output, self.layout)
        if source is None or result is None:
            return None
        factor, (_, *sizes) = len(self.rows) // source.shape[1], source.shape
        for size, places in zip(sizes, (self.rows, self.columns), strict=True):
            if places != tuple(at // factor for at in range(size * factor)):
                return None
        return Repetition(name=name, inputs=(source,), output=result, factor=factor)

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
