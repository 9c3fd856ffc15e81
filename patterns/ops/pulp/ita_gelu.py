"""GELU with a requantization, as the Integer Transformer Accelerator computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.rowwise import ItaGelu
from patterns.op import INT8, TensorType, Work, operator
from patterns.ops.rows import row_layer
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Rows

__all__ = ["ItaActivation"]

_LIMITS = {
    "b": (-(2**15), 0),
    "c": (-(2**15), 2**15 - 1),
    "mul": (0, 255),
    "shift": (0, 31),
    "add": INT8,
}
"""The range of each parameter."""


@operator
@dataclass(frozen=True, eq=False)
class ItaActivation(PrimitiveOp):
    """The accelerator's GELU and the requantization after it, as a table for all int8 values.

    Attributes:
        function: function of one element.  Its ``c`` is negative, so the results for positive
            inputs are negative, too: the step of the output has the opposite sign.

    Raises:
        UnsupportedError: a parameter is out of range.
    """

    kind = "ita_gelu"
    work = Work.MOVE

    function: ItaGelu

    def __post_init__(self) -> None:
        for role, (low, high) in _LIMITS.items():
            value = getattr(self.function, role)
            if not low <= value <= high:
                raise UnsupportedError(f"{role} = {value}", hint=f"{low} to {high}")

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        if inputs[0].dtype != "int8":
            raise UnsupportedError(f"a GELU of {inputs[0].dtype}", hint="int8")
        return TensorType(inputs[0].shape)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the table."""
        # The table of a `TableMap` is indexed by bytes: 0 to 127, then -128 to -1.
        table = np.roll(self.function.table().table.view("int8"), 128)
        return Argument("x", inputs[0]), Argument("table", table)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, table = tensors

        def element(*index: Any) -> Any:
            return table[tirx.Cast("int32", source(*index)) + 128]

        return te.compute(source.shape, element, name="gelu")

    def layer(
        self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType
    ) -> Rows:
        """See `Op.layer`."""
        return row_layer(name, inputs[0], output, self.function)
