"""The sum of two int8 tensors of the same shape in TFLite's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers import Add, Array, TfliteRequant
from patterns.op import INT8, Range, Scale, TensorType, Work, operator
from patterns.ops.broadcast import pair
from patterns.ops.scaling import tflite_scale
from patterns.ops.sums import sum_layer
from patterns.ops.tflite.binary import summed
from patterns.ops.tflite.factors import AddFactors
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["TfliteAdd"]


@operator
@dataclass(frozen=True, eq=False)
class TfliteAdd(PrimitiveOp):
    """The sum of two int8 tensors of the same shape, which can be a layer.

    Attributes:
        factors: scales and zero points.
        clip: inclusive range of the output.
    """

    kind = "add"
    tag = "tflite_add"
    work = Work.SUM
    scale = Scale.FREE
    neutral = True

    factors: AddFactors
    clip: Range = INT8

    @property
    def zero_point(self) -> int:
        """See `Op.zero_point`."""
        return self.factors.zero_points[2]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        return TensorType(inputs[0].shape)

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: both operands and the multipliers.

        The multipliers are an argument, because TVM would multiply out known ones, into three wide
        products instead of one.
        """
        multipliers = np.asarray(self.factors.multipliers, "int32")
        return *pair(inputs), Argument("multiplier", multipliers)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        first, second, multiplier = tensors
        low, high = self.clip

        def element(*index: Any) -> Any:
            values = [tirx.Cast("int32", part(*index)) for part in (first, second)]
            result = summed(values, "add", self.factors, multiplier)
            return tirx.Cast("int8", tirx.max(tirx.min(result, high), low))

        return te.compute(first.shape, element, name="sum")

    def compute(self, inputs: Sequence[Array]) -> Array:
        """See `Op.compute`."""
        factors, total = self.factors, np.zeros((), np.int64)
        *scales, last = zip(factors.multipliers, factors.shifts, strict=True)
        for x, zero, scale in zip(inputs, factors.zero_points[:2], scales, strict=True):
            total = total + tflite_scale((x.astype(np.int64) - zero) << factors.bits, *scale)
        out = tflite_scale(total, *last) + self.zero_point
        return np.clip(out, *self.clip).astype(np.int8)

    def layer(self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType) -> Add:
        """See `Op.layer`; the requantization has the three multipliers of `AddFactors`."""
        a, b, zero_point = self.factors.zero_points
        requant = TfliteRequant(
            multiplier=self.factors.multipliers,
            shift=self.factors.shifts,
            output_zero_point=zero_point,
            input_zero_points=(a, b),
        )
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        return sum_layer(name, operands, output, requant, self.clip)
