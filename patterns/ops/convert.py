"""Functions of one 8-bit number: conversion from one scale to another, and tables of 256 bytes.

Logistic, tanh, hard swish, leaky ReLU: there are 256 possible arguments, so every element-wise
function of one int8 tensor is tabulated when the model is imported, with the source's own
arithmetic, and looked up at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, MulShift, Rows, Shift, TfliteRequant, matrix, rows_layer
from byoc_dory.layers.rowwise import TableMap
from patterns.names import emit
from patterns.op import INT8, Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.layers import row_layer
from patterns.ops.requantize import (
    Scaling,
    check_int32,
    check_requantization,
    fixed_point,
    int_constant,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
)
from patterns.ops.scaling import requantized, zero_point_of
from patterns.primitive import Argument, Inputs, PrimitiveOp, dtype_of
from patterns.relax_op import ComposedOp, Match
from patterns.rows import ROW_AXIS, RowWindow, matching_rows

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layer


@operator
@dataclass(frozen=True, eq=False)
class Convert(ComposedOp):
    """``clip(requant(x + offset))`` of an 8-bit tensor.

    Attributes:
        requant: change of scale.
        clip: inclusive range of the output.
        offset: added first; usually minus the input's zero point.
        dtype: type of the output.
    """

    kind = "convert"
    work = Work.MOVE
    scale = Scale.PASSES
    neutral = True

    requant: Scaling
    clip: Range = INT8
    offset: int = 0
    dtype: str = "int8"

    @classmethod
    def of_scales(
        cls, scales: tuple[float, float], zero_points: tuple[int, int], clip: Range = INT8
    ) -> Convert:
        """Return the conversion of int8 as TFLite computes it.

        Args:
            scales, zero_points: those of input and output.
            clip: inclusive range of the output.

        Raises:
            UnsupportedError: the scales are too far apart.
        """
        multiplier, exponent = fixed_point(scales[0] / scales[1])
        requant = TfliteRequant((multiplier,), (exponent,), zero_points[1])
        return cls(requant, clip, -zero_points[0])

    @property
    def zero_point(self) -> int | None:
        return zero_point_of(self.requant)

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        check_int32(self.offset)
        check_requantization(self.requant)
        return TensorType(inputs[0].shape, self.dtype)

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        largest = (128 if dtype_of(inputs[0]) == "int8" else 255) + abs(self.offset)
        wide = emit(bb, R.astype(inputs[0], "int32"), name)
        acc = emit(bb, R.add(wide, int_constant(self.offset)), name)
        return requantize(bb, acc, self.requant, self.clip, name, bound=largest, dtype=self.dtype)

    def compute(self, inputs: Sequence[Array]) -> Array:
        total = inputs[0].astype(np.int64) + self.offset
        return requantized(total, self.requant, self.clip, self.dtype)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; slots ``x``, ``offset``, ``sum`` and the requantization's."""
        x, offset = wildcard(), is_const()
        total = is_op("relax.add")(is_op("relax.astype")(x), offset)
        root, slots = requantize_pattern(total)
        return (Match(cls.kind, root, {"x": x, "offset": offset, "sum": total, **slots}),)

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Convert:
        offset = int(slots["offset"].value.numpy())
        return cls(read_requantize(slots), read_clip(slots), offset, dtype_of(slots["cast"]))

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        return matching_rows([each.shape for each in inputs], output.shape)

    def table(self) -> Array | None:
        """Return a conversion of int8 as a table: uint8 [256], indexed by the input's byte.

        ``None`` if channels differ, if it does not round like a shift, or if the output is not
        int8.
        """
        if not isinstance(self.requant, Shift | MulShift) or self.dtype != "int8":
            return None
        if isinstance(self.requant, MulShift):
            fields = self.requant.mul, self.requant.shift, self.requant.add
            if any(len(each) > 1 for each in fields):
                return None
        return self.compute([np.arange(256, dtype="uint8").view("int8")]).view("uint8")

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """See `Op.layer`: a table of bytes, row by row, if it can be one."""
        table = self.table()
        ((source, kind),) = inputs
        if table is None or kind.dtype != "int8":
            return None
        rows, columns = prod(kind.shape[:-1]), kind.shape[-1] if kind.shape else 1
        return rows_layer(name, matrix(source, rows, columns, kind.dtype), TableMap(table))


_ENTRIES = 256


def tabulate(function: Callable[[int], int]) -> Array:
    """Return the table of a function of an int8: int8 [256], for arguments from -128 to 127.

    Values outside int8 saturate.
    """
    values = [min(max(function(x), -128), 127) for x in range(-128, 128)]
    return np.asarray(values, "int8")


@operator
@dataclass(frozen=True, eq=False)
class TableLookup(PrimitiveOp):
    """``table[x + 128]`` of each element of an int8 tensor of any shape.

    Attributes:
        table: int8 [256], for arguments from -128 to 127; or one row per channel, [C, 256].
        zero_point: integer of the output that represents 0.0; retargeting uses it.
        axis: channel axis, if there are several rows.
    """

    kind = "table"
    work = Work.MOVE
    scale = Scale.OWN

    table: Array
    zero_point: int = 0
    axis: int = -1

    @property
    def rows(self) -> int:
        """Number of tables: 1, or one per channel."""
        return int(self.table.size) // _ENTRIES

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        if self.rows > 1 and self.axis % len(output.shape) == ROW_AXIS:
            return None
        return matching_rows([each.shape for each in inputs], output.shape)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, table = inputs[0].shape, self.table.shape
        if table != (_ENTRIES,) and (not shape or table != (shape[self.axis], _ENTRIES)):
            raise IntegerFormError(
                f"a table of shape {table} for a tensor of shape {shape}",
                hint="give 256 values, or 256 for each channel",
            )
        return TensorType(shape)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the table, row after row."""
        flat = np.asarray(self.table, "int8", order="C").reshape(-1)
        return Argument("x", inputs[0]), Argument("table", flat, "table")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, values = tensors
        axis = self.axis % max(len(source.shape), 1)
        place = tirx.Cast("int32", source(*index)) + 128
        if self.rows > 1:
            place = tirx.Cast("int32", index[axis]) * _ENTRIES + place
        return values[place]

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Rows | None:
        if self.rows > 1:
            return None
        table = np.roll(self.table.reshape(-1), _ENTRIES // 2).view(np.uint8)
        return row_layer(name, inputs[0], output, TableMap(table))

    def compute(self, inputs: Sequence[Array]) -> Array:
        """See `Op.compute`; with one table."""
        assert self.rows == 1, "channels depend on the layout"
        return np.asarray(self.table.reshape(-1)[inputs[0].astype(np.int64) + 128])

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: the smallest and the largest entry."""
        return int(self.table.min()), int(self.table.max())
