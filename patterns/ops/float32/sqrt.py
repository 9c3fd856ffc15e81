"""Square roots of reals, for hosts without a mathematical library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import operator
from patterns.ops.float32.base import RealOp
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealSqrt"]

_EXPONENTS = range(-148, 128, 4)  # number of powers of 16 that a number is compared with
_NEWTON_STEPS = 5  # the start is off by a factor of at most two: 25 %, 2.5 %, 3e-4, 5e-8, 1e-15


@operator
@dataclass(frozen=True, eq=False)
class RealSqrt(RealOp):
    """The square root of every element of a float32 tensor; negative elements give 0.

    Newton's method, starting from the nearest power of four below.
    """

    kind = "real_sqrt"
    opaque = True

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, powers of 16, and starting values of roots."""
        squares = np.asarray([2.0**k for k in _EXPONENTS], "float32")
        starts = np.asarray([2.0 ** (k // 2 + 1) for k in _EXPONENTS], "float32")
        return (
            Argument("x", inputs[0]), Argument("squares", squares), Argument("starts", starts),
        )  # fmt: skip

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, limits, roots = tensors
        shape = source.shape
        zero, half = tirx.const(0.0, "float32"), tirx.const(0.5, "float32")
        k = te.reduce_axis((0, tirx.const(len(_EXPONENTS), "int64")), "k")
        near = te.compute(
            shape,
            lambda *i: te.max(tirx.Select(source(*i) >= limits[k], roots[k], roots[0]), axis=[k]),
            name="start",
        )

        def closer(root: te.Tensor) -> Any:
            return lambda *i: (root(*i) + source(*i) / root(*i)) * half

        for step in range(_NEWTON_STEPS):
            near = te.compute(shape, closer(near), name=f"near{step}")
        return te.compute(
            shape, lambda *i: tirx.Select(source(*i) > zero, near(*i), zero), name="result"
        )
