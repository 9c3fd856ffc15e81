"""Odd functions of reals as quotients of polynomials, for hosts without a mathematical library.

They are computed with sums, products and quotients of float32, so that every host gives the same
bits; results are within a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te

from patterns.op import operator
from patterns.ops.float32.base import RealOp
from patterns.ops.float32.let import Definitions, polynomial, within
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Map", "RealMap"]

Map: TypeAlias = Literal["erf", "tanh"]

# Odd rational functions x * P(x**2) / Q(x**2), highest power first, and the arguments at which they
# reach their limits.  Coefficients: Eigen, ptanh_float and perf_float (MathFunctionsImpl.h).
_RATIONAL: Mapping[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "tanh": (
        7.90531110763549805,
        (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
         1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
        (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
    ),
    "erf": (
        4.0,
        (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
         -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
        (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
         -7.37332916720468e-03, -1.42647390514189e-02),
    ),
}  # fmt: skip


@operator
@dataclass(frozen=True, eq=False)
class RealMap(RealOp):
    """A function of every element of a float32 tensor; a NaN gives its upper limit.

    Attributes:
        function: name of the function.
    """

    kind = "real_map"
    opaque = True

    function: Map

    @property
    def stem(self) -> str:
        """See `Op.stem`."""
        return f"real_{self.function}"

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, then the limits and both polynomials."""
        limit, above, below = _RATIONAL[self.function]
        figures = np.asarray((-limit, limit, *above, *below), "float32")
        return Argument("x", inputs[0]), Argument("figures", figures)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, figures = tensors
        _, above, below = _RATIONAL[self.function]

        def element(*index: Any) -> Any:
            block = Definitions()
            x = within(block, source(*index), figures[0], figures[1])
            square = block.bind("square", x * x)
            numerator = polynomial(square, figures, 2, len(above))
            denominator = polynomial(square, figures, 2 + len(above), len(below))
            return block.around(x * numerator / denominator)

        return te.compute(source.shape, element, name=self.function)
