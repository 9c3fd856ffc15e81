"""Conversion of int32 sums to float32 as in onnxruntime's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.layers import Array
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast_load
from patterns.primitive_op import PrimitiveOp

__all__ = ["OnnxReal"]


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
        """See `PrimitiveOp.result`."""
        return TensorType(inputs[0].shape, "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, factor = tensors

        def element(*index: Any) -> Any:
            return tirx.Cast("float32", source(*index)) * broadcast_load(factor, index)

        return te.compute(source.shape, element, name="real")
