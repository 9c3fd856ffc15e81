"""Averages over windows of float32 maps, for networks that are not quantized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealAverage"]


@operator
@dataclass(frozen=True, eq=False)
class RealAverage(RealOp):
    """Averages over windows of float32 maps (N, C, y, x).

    Attributes:
        kernel, strides: sizes (y, x).
        dilation: distance (y, x) of the elements of a window.
    """

    kind = "real_average"

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs)
        source = inputs[0].shape
        spans = [
            size - step * (window - 1) - 1
            for size, window, step in zip(source[2:], self.kernel, self.dilation, strict=True)
        ]
        if min(spans) < 0:
            raise IntegerFormError(f"windows of {self.kernel} on {list(source[2:])}")
        sizes = (span // stride + 1 for span, stride in zip(spans, self.strides, strict=True))
        return TensorType((*source[:2], *sizes), "float32")

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the number of elements in a window."""
        count = np.asarray([math.prod(self.kernel)], "float32")
        return Argument("x", inputs[0]), Argument("count", count)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, count = tensors
        i = te.reduce_axis((0, self.kernel[0]), "i")
        j = te.reduce_axis((0, self.kernel[1]), "j")

        def window(n: Any, c: Any, y: Any, z: Any) -> Any:
            (sy, sx), (dy, dx) = self.strides, self.dilation
            taken = source(n, c, y * sy + i * dy, z * sx + j * dx)
            return te.sum(taken, axis=[i, j])

        total = te.compute(self.extents(tensors), window, name="total")
        return te.compute(total.shape, lambda *at: total(*at) / count[0], name="average")
