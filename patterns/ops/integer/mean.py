"""Means of integers over axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.integer.reduction import IntegerReduction

__all__ = ["IntegerMean"]


@operator
@dataclass(frozen=True, eq=False)
class IntegerMean(IntegerReduction):
    """``(sum + n / 2) // n`` over n elements, a power of two, in the type of the input."""

    kind = "mean"
    tag = "integer_mean"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        count = self.count(inputs[0].shape)
        if count & (count - 1):
            raise UnsupportedError(
                f"a mean of {count} integers",
                hint="the rounding of integer means is defined for powers of two",
            )
        return TensorType(self.shape(inputs[0].shape), inputs[0].dtype)

    def accumulator(self, worst: int) -> str:
        """See `IntegerReduction.accumulator`."""
        return "int32" if worst <= INT32_MAX else "int64"

    def finished(self, total: Any, count: int, accumulator: str, dtype: str) -> Any:
        """See `IntegerReduction.finished`."""
        value = total + tirx.const(count // 2, accumulator)
        bits = count.bit_length() - 1
        return tirx.Cast(dtype, value >> tirx.const(bits, accumulator))
