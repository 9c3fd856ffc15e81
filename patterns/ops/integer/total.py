"""Sums of integers over axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from patterns.op import TensorType, operator
from patterns.ops.integer.limits import wrapping_type
from patterns.ops.integer.reduction import IntegerReduction

__all__ = ["Total"]


@operator
@dataclass(frozen=True, eq=False)
class Total(IntegerReduction):
    """The int32 sum over some axes; sums that exceed 32 bits wrap around."""

    kind = "total"
    tag = "integer_total"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        return TensorType(self.shape(inputs[0].shape), "int32")

    def accumulator(self, worst: int) -> str:
        """See `IntegerReduction.accumulator`."""
        return wrapping_type(worst)

    def finished(self, total: Any, count: int, accumulator: str, dtype: str) -> Any:
        """See `IntegerReduction.finished`."""
        return tirx.Cast("int32", total)
