"""Scaling and shifting by column in integers, as in the PULP flow: MobileBERT's NoNorm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers.rowwise import AffineNorm
from byoc_dory.layers.tensor import Array
from patterns.op import operator
from patterns.ops.integer.limits import magnitude
from patterns.ops.pulp.norm import Norm, exponent_of, saturated, sum_type, vector

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PulpAffineNorm"]


@operator
@dataclass(frozen=True, eq=False)
class PulpAffineNorm(Norm):
    """Each row scaled and shifted by column, without statistics."""

    kind = "affine_norm"
    tag = "integer_affine_norm"

    function: AffineNorm

    @classmethod
    def of(cls, weight: Array, bias: Array, mul: int, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight, bias: one integer per column that fits int32.
            mul: a factor for all columns.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(AffineNorm(vector(weight), vector(bias), mul, exponent_of(divisor)))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, factor, summand = tensors
        mul = self.function.mul
        w, b = (
            int(np.abs(part.astype("int64")).max())
            for part in (self.function.weight, self.function.bias)
        )
        kind = sum_type((magnitude(str(source.dtype)) * w + b) * max(abs(mul), 1))

        def element(*index: Any) -> Any:
            value = tirx.Cast(kind, source(*index)) * tirx.Cast(kind, factor[index[-1]])
            value = (value + tirx.Cast(kind, summand[index[-1]])) * tirx.const(mul, kind)
            return saturated(value >> tirx.const(self.function.shift, kind), kind)

        return te.compute(source.shape, element, name="normed")
