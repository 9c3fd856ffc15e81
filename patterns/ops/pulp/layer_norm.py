"""Layer normalization in integers, as in the PULP flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers.rowwise import LayerNorm
from byoc_dory.layers.tensor import Array
from patterns.op import operator
from patterns.ops.pulp.norm import Norm, exponent_of, roots, row_sum, saturated, sum_type, vector

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PulpLayerNorm"]

_SPREAD = 255
"""The largest distance of a byte from a mean."""


@operator
@dataclass(frozen=True, eq=False)
class PulpLayerNorm(Norm):
    """Each row minus its mean, divided by its deviation, scaled and shifted by column."""

    kind = "layer_norm"
    tag = "integer_layer_norm"

    function: LayerNorm

    @classmethod
    def of(cls, weight: Array, bias: Array, divisor: int) -> Self:
        """Return the operator for the parameters in a file.

        Args:
            weight, bias: one integer per column that fits int32.
            divisor: a power of two.

        Raises:
            UnsupportedError: a number is not allowed.
        """
        return cls(LayerNorm(vector(weight), vector(bias), exponent_of(divisor)))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, factor, summand = tensors
        length = int(source.shape[-1])
        w, b = (
            int(np.abs(part.astype("int64")).max())
            for part in (self.function.weight, self.function.bias)
        )
        kind = sum_type(max(_SPREAD * w + b, _SPREAD * _SPREAD * length))
        sums = row_sum(source, source, kind, "sums")
        count = tirx.const(length, kind)
        middle = te.compute(sums.shape, lambda *i: tirx.truncdiv(sums(*i), count), name="middle")

        def centred(*index: Any) -> Any:
            return tirx.Cast(kind, source(*index)) - middle(*index[:-1])

        squares = row_sum(source, lambda *i: centred(*i) * centred(*i), kind, "squares")
        variance = te.compute(
            sums.shape,
            lambda *i: tirx.truncdiv(squares(*i), count) + tirx.const(1, kind),
            name="variance",
        )
        root = roots(variance, _SPREAD * _SPREAD + 1, kind)

        def element(*index: Any) -> Any:
            scaled = centred(*index) * tirx.Cast(kind, factor[index[-1]])
            value = tirx.truncdiv(scaled, root(*index[:-1]))
            value = value + tirx.Cast(kind, summand[index[-1]])
            return saturated(value >> tirx.const(self.function.shift, kind), kind)

        return te.compute(source.shape, element, name="normed")
