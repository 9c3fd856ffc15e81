"""Conversion of float32 to integers, with TFLite Micro's rounding, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers import Array
from patterns.op import TensorType, Work, operator
from patterns.primitive import PrimitiveOp

BEYOND = 512.0
"""Number of steps from zero at which any byte saturates, whatever the zero point is."""

_WIDE_BEYOND = 131072.0  # the same of int16


@operator
@dataclass(frozen=True, eq=False)
class Quantize(PrimitiveOp):
    """``round(x / step) + zero_point`` for float32 of any shape, ties away from zero, saturated.

    It works on hosts without a mathematical library; a NaN gives the upper end.

    Attributes:
        step: scale of the output, rounded to float32.
        zero_point: integer of the output that represents 0.0.
        dtype: type of the output: int8, uint8 or int16.
    """

    kind = "quantize"
    work = Work.REAL

    step: float
    zero_point: int = 0
    dtype: str = "int8"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the scale.

        The scale is an argument, because TVM prints constants inside a function with only seven
        digits.
        """
        scale = np.asarray([self.step], "float32")
        return {"scale": scale}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, step = tensors
        return self._rounded(source(*index) / step[0])

    @property
    def beyond(self) -> Any:
        """Number of steps from zero at which any integer saturates, float32."""
        return _f32(BEYOND if np.iinfo(self.dtype).bits == 8 else _WIDE_BEYOND)

    def _rounded(self, ratio: Any) -> Any:
        """Return a float32 value rounded, shifted by the zero point and saturated."""
        limits, beyond = np.iinfo(self.dtype), self.beyond
        # Variables, because TVM would repeat the division wherever its result is used.
        low, value = tirx.Var("low", "float32"), tirx.Var("value", "float32")
        whole = tirx.Var("whole", "int32")
        rest = value - tirx.Cast("float32", whole)
        up, down = tirx.Cast("int32", rest >= _f32(0.5)), tirx.Cast("int32", rest <= _f32(-0.5))
        result = whole + up - down + self.zero_point
        result = tirx.Cast(self.dtype, tirx.max(tirx.min(result, int(limits.max)), int(limits.min)))
        result = tirx.Let(whole, tirx.Cast("int32", value), result)
        result = tirx.Let(value, tirx.Select(low > -beyond, low, -beyond), result)
        # Written so that a NaN, for which all comparisons are false, goes to the upper end.
        below = tirx.Var("ratio", "float32")
        result = tirx.Let(low, tirx.Select(below < beyond, below, beyond), result)
        return tirx.Let(below, ratio, result)


def _f32(value: float) -> Any:
    return tirx.const(value, "float32")


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
        return TensorType(inputs[0].shape, "float32")

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the scale.

        The scale is an argument, because TVM prints constants inside a function with only seven
        digits.
        """
        scale = np.asarray([self.step], "float32")
        return {"scale": scale}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, step = tensors
        centred = tirx.Cast("int32", source(*index)) - self.input_zero_point
        return tirx.Cast("float32", centred) * step[0]
