"""Functions of one 8-bit number: there are 256 possible arguments, so they are tables of 256 bytes.

Logistic, tanh, hard swish, leaky ReLU: every element-wise function of one int8 tensor is tabulated
when the model is imported, with the source's own arithmetic, and looked up at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import Range, Scale, TensorType, Work, operator
from patterns.primitive import Argument, Inputs, PrimitiveOp

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

    def compute(self, inputs: Sequence[Array]) -> Array:
        """See `Op.compute`; with one table."""
        assert self.rows == 1, "channels depend on the layout"
        return np.asarray(self.table.reshape(-1)[inputs[0].astype(np.int64) + 128])

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: the smallest and the largest entry."""
        return int(self.table.min()), int(self.table.max())
