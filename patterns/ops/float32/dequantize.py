"""Conversion of 8-bit tensors to float32, at the border of a network or of its parts in reals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import TensorType, Work, operator
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Dequantize"]


@operator
@dataclass(frozen=True, eq=False)
class Dequantize(PrimitiveOp):
    """``step * (x - input_zero_point)`` as float32, for an 8-bit tensor of any shape.

    Attributes:
        step: scale of the input, rounded to float32.
        input_zero_point: integer of the input that represents 0.0.
    """

    kind = "dequantize"
    work = Work.REAL

    step: float
    input_zero_point: int = 0

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        return TensorType(inputs[0].shape, "float32")

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the scale.

        The scale is an argument, because TVM prints constants inside a function with only seven
        digits.
        """
        scale = np.asarray([self.step], "float32")
        return Argument("x", inputs[0]), Argument("scale", scale)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, step = tensors

        def element(*index: Any) -> Any:
            centred = tirx.Cast("int32", source(*index)) - self.input_zero_point
            return tirx.Cast("float32", centred) * step[0]

        return te.compute(source.shape, element, name="real")
