"""Normalization by the root of the mean square in integers, as in the PULP flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers.rowwise import RmsNorm
from byoc_dory.layers.tensor import Array
from patterns.op import operator
from patterns.ops.integer.limits import magnitude
from patterns.ops.pulp.norm import Norm, exponent_of, roots, row_sum, saturated, sum_type, vector

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PulpRmsNorm"]


@operator
@dataclass(frozen=True, eq=False)
class PulpRmsNorm(Norm):
    """Each row divided by the root of its mean square, and scaled by column."""

    kind = "rms_norm"
    tag = "integer_rms_norm"

    function: RmsNorm

    @classmethod
    def of(cls, weight: Array, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight: one integer per column that fits int32.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(RmsNorm(vector(weight), exponent_of(divisor)))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, factor = tensors
        length, most = int(source.shape[-1]), magnitude(str(source.dtype))
        w = int(np.abs(self.function.weight.astype("int64")).max())
        kind = sum_type(max(most * w, most * most * length))

        def squared(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) * tirx.Cast(kind, source(*index))

        squares = row_sum(source, squared, kind, "squares")
        count, one = tirx.const(length, kind), tirx.const(1, kind)
        mean = te.compute(
            squares.shape, lambda *i: tirx.truncdiv(squares(*i), count) + one, name="mean"
        )
        root = roots(mean, most * most + 1, kind)

        def element(*index: Any) -> Any:
            scaled = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            return saturated(value >> tirx.const(self.function.shift, kind), kind)

        return te.compute(source.shape, element, name="normed")
