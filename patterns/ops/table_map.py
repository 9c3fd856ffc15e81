"""Functions of one eight-bit number: 256 possible arguments, so a table of 256 bytes.

Logistic, tanh, hard swish, leaky ReLU: whatever a source computes element by element from one int8
tensor is tabulated when the model is imported, with the source's own arithmetic, and looked up at
run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers.layer import Array

__all__ = ["PRIMITIVES", "read_table_map", "table_map", "tabulate"]

PRIMITIVES = {"table": "table"}
"""Kind of the PrimFunc -> kind of the operator."""

_ENTRIES = 256


def tabulate(function: Callable[[int], int]) -> Array:
    """The table of a function of an int8: int8 [256], its arguments from -128 to 127.

    Values outside int8 saturate.
    """
    values = [min(max(function(x), -128), 127) for x in range(-128, 128)]
    return np.asarray(values, "int8")


def table_map(
    bb: BlockBuilder, x: Expr, table: Array, *, zero_point: int = 0, axis: int = -1, name: str
) -> Var:
    """Write ``table[x + 128]`` of each element.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, any shape.
        table: int8 [256], by the argument from -128 to 127; or one row per channel, [C, 256].
        zero_point: integer of the output that stands for 0.0; retargeting asks for it.
        axis: of the channels, if there are several rows.
        name: of the operator.

    Raises:
        IntegerFormError: if the table has another shape.
    """
    shape = shape_of(x)
    axis %= max(len(shape), 1)
    rows = table.size // _ENTRIES
    if table.shape != (_ENTRIES,) and table.shape != (shape[axis], _ENTRIES):
        raise IntegerFormError(
            f"a table of shape {table.shape} for a tensor of shape {shape}",
            where=f"operator '{name}'",
            hint="give 256 values, or 256 for each channel",
        )

    def body(source: te.Tensor, values: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            place = tirx.Cast("int32", source(*index)) + 128
            if rows > 1:
                place = tirx.Cast("int32", index[axis]) * _ENTRIES + place
            return values[place]

        return te.compute(extents(shape), element, name="looked_up")

    inputs = [("x", shape, "int8"), ("table", (table.size,), "int8")]
    func = primitive("table", inputs, body, {"zero_point": zero_point, "axis": axis})
    args = [x, relax.const(np.ascontiguousarray(table, "int8").reshape(-1), "int8")]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


def read_table_map(call: Any) -> dict[str, tuple[int, ...]]:
    """The table of a call that `table_map` wrote: ``table``, 256 integers or 256 per channel."""
    values = call.args[1][1].value.numpy()
    return {"table": tuple(int(value) for value in values)}
