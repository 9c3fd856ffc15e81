"""Natural logarithms of reals, for hosts without a mathematical library.

It is computed with sums, products and quotients of float32, so that every host gives the same bits;
results are within a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import operator
from patterns.ops.float32.base import RealOp
from patterns.ops.float32.let import Definitions, polynomial
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealLog"]

# log(x) = n log(2) + 2 artanh(s), s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)).
_ARTANH = (2 / 9, 2 / 7, 2 / 5, 2 / 3, 2.0)
# log(2) in two parts, the first of which has so few bits that its product with n is exact.
_LOG2 = (0.693359375, -2.12194440e-4)
_POWERS = (64, 32, 16, 8, 4, 2, 1)


@operator
@dataclass(frozen=True, eq=False)
class RealLog(RealOp):
    """The natural logarithm of every element; minus infinity for 0, NaN for negative ones."""

    kind = "real_log"
    opaque = True

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, the figures, powers of two and their inverses."""
        figures = np.asarray([*_LOG2, math.sqrt(2), 0.5, 1.0, 0.0, -np.inf, np.inf], "float32")
        powers = np.asarray([[2.0**k, 2.0**-k, 2.0 ** (1 - k), k] for k in _POWERS], "float32")
        return (
            Argument("x", inputs[0]),
            Argument("figures", np.concatenate([figures, np.asarray(_ARTANH, "float32")])),
            Argument("powers", powers.reshape(-1)),
        )

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, figures, powers = tensors
        low, high, root, half, one, zero, least, most = (figures[at] for at in range(8))

        def element(*index: Any) -> Any:
            block = Definitions()
            x = block.bind("x", source(*index))
            m, n = x, zero
            for at in range(len(_POWERS)):
                power, inverse, below, k = (powers[4 * at + part] for part in range(4))
                # From both ends: m ends in [1, 2).
                m, n = (
                    block.bind("m", tirx.Select(m >= power, m * inverse, m)),
                    block.bind("n", tirx.Select(m >= power, n + k, n)),
                )
                m, n = (
                    block.bind("m", tirx.Select(m < below, m * power, m)),
                    block.bind("n", tirx.Select(m < below, n - k, n)),
                )
            m, n = (
                block.bind("m", tirx.Select(m > root, m * half, m)),
                block.bind("n", tirx.Select(m > root, n + one, n)),
            )
            s = block.bind("s", (m - one) / (m + one))
            square = block.bind("square", s * s)
            series = polynomial(square, figures, 8, len(_ARTANH))
            result = block.bind("result", s * series + n * high + n * low)
            result = tirx.Select(x < zero, x - x + (zero / zero), result)
            result = tirx.Select(x == zero, least, result)
            return block.around(tirx.Select(x < most, result, x))

        return te.compute(source.shape, element, name="logarithm")
