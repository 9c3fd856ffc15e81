"""Exponentials of reals, for hosts without a mathematical library.

It is computed with sums and products of float32, so that every host gives the same bits; results
are within a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import operator
from patterns.ops.float32.base import RealOp
from patterns.ops.float32.let import Definitions, polynomial, within
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealExp"]

# exp(x) = 2**n * exp(r), |r| <= ln(2) / 2.  Coefficients: Cephes, expf.c; ln(2) is split in two
# parts, the first of which has so few bits that its product with n is exact.
_POLYNOMIAL = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1, 1.0, 1.0,
)  # fmt: skip
_EXP = (-104.0, 89.0, 1.44269504088896341, 0.693359375, -2.12194440e-4)
_LEAST_POWER, _MOST_POWER = -77, 66  # halves of the results' possible exponents


@operator
@dataclass(frozen=True, eq=False)
class RealExp(RealOp):
    """The exponential of every element of a float32 tensor; infinite above float32's range."""

    kind = "real_exp"
    opaque = True

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, the polynomial and the powers of two."""
        figures = np.asarray([*_EXP, *_POLYNOMIAL], "float32")
        powers = np.asarray([2.0**k for k in range(_LEAST_POWER, _MOST_POWER + 1)], "float32")
        return (
            Argument("x", inputs[0]), Argument("figures", figures), Argument("powers", powers),
        )  # fmt: skip

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, figures, scales = tensors
        shape = source.shape

        def inside(*index: Any) -> Any:
            block = Definitions()
            return block.around(within(block, source(*index), figures[0], figures[1]))

        clipped = te.compute(shape, inside, name="clipped")
        # Make it positive before the cast, so that the cast floors.
        shift = tirx.const(160.5, "float32")
        exponent = te.compute(
            shape,
            lambda *i: tirx.Cast("int32", clipped(*i) * figures[2] + shift) - 160,
            name="exponent",
        )

        def element(*index: Any) -> Any:
            block, n = Definitions(), exponent(*index)
            real = block.bind("n", tirx.Cast("float32", n))
            rest = block.bind("rest", clipped(*index) - real * figures[3])
            rest = block.bind("rest", rest - real * figures[4])
            series = polynomial(rest, figures, len(_EXP), len(_POLYNOMIAL))
            # Scale in two factors, because results reach beyond the normal powers of two.
            low, high = scales[(n >> 1) - _LEAST_POWER], scales[n - (n >> 1) - _LEAST_POWER]
            return block.around(series * low * high)

        return te.compute(shape, element, name="exponential")
