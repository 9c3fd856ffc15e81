"""Conversion of float32 to 8 bits, ties to even, and of int32 sums to float32, as in onnxruntime's
kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers import Array
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast_load
from patterns.ops.float32.quantize import BEYOND, Quantize
from patterns.primitive import PrimitiveOp

_COARSE = 1.2e7  # near this number float32 values are 1 apart; it is even and printed exactly


@operator
@dataclass(frozen=True, eq=False)
class OnnxQuantize(Quantize):
    """``rint(x / step) + zero_point``, ties to even, saturated; a NaN gives the upper end.

    Attributes:
        step, zero_point, dtype: as in `patterns.ops.float32.quantize.Quantize`.
    """

    tag = "onnx_quantize"

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, step = tensors
        limits = np.iinfo(self.dtype)
        # Variables, because TVM would repeat the division wherever its result is used, and
        # would cancel the addition and subtraction.
        ratio, below, value, moved = (
            tirx.Var(part, "float32") for part in ("ratio", "below", "value", "moved")
        )
        # Where float32 values are 1 apart, every sum is rounded to an integer, ties to even.
        coarse = tirx.const(_COARSE, "float32")
        result = tirx.Cast("int32", moved - coarse) + self.zero_point
        result = tirx.max(tirx.min(result, int(limits.max)), int(limits.min))
        result = tirx.Let(moved, value + coarse, tirx.Cast(self.dtype, result))
        end = tirx.const(BEYOND, "float32")
        # Written so that a NaN, for which all comparisons are false, goes to the upper end.
        result = tirx.Let(value, tirx.Select(below > -end, below, -end), result)
        result = tirx.Let(below, tirx.Select(ratio < end, ratio, end), result)
        return tirx.Let(ratio, source(*index) / step[0], result)


@operator
@dataclass(frozen=True, eq=False)
class OnnxReal(PrimitiveOp):
    """``float32(x) * factors`` of int32 sums of any shape.

    Attributes:
        factors: float32 factors with the rank of ``x``; axes of size 1 are broadcast.
    """

    kind = "onnx_real"

    factors: Array

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, "float32")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, factor = tensors
        return tirx.Cast("float32", source(*index)) * broadcast_load(factor, index)
