"""Convolutions of float32 maps, for networks that are not quantized.

Sums run over channels, then rows, then columns of a filter, in float32.  This order is as good as
any other, but another order would give different last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.primitive import extents, sizes_of
from patterns.primitive_op import Argument

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["RealConv2d"]


@operator
@dataclass(frozen=True, eq=False)
class RealConv2d(RealOp):
    """A convolution of float32 maps (N, C, y, x), to (N, K, y, x).

    Attributes:
        weight: float32 ``[K, C / groups, fy, fx]``.
        bias: float32 ``[K]``.
        strides, dilation: strides and dilation (y, x).
        padding: zeros at (top, left, bottom, right).
        groups: number of groups of channels.
    """

    kind = "real_conv2d"

    weight: Array
    bias: Array
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs)
        source = inputs[0].shape
        k, each = self.weight.shape[:2]
        fits = source[1] == each * self.groups and not k % self.groups
        if not fits or min(self._spans(source)) < 0:
            raise IntegerFormError(
                f"weights of shape {self.weight.shape} on {source} in {self.groups} groups"
            )
        return TensorType(self._shape(source), "float32")

    def _spans(self, source: tuple[int, ...]) -> tuple[int, ...]:
        """Return how far a filter can move, (y, x)."""
        pad, sizes, filters = self.padding, source[2:], self.weight.shape[2:]
        return tuple(
            sizes[axis] + pad[axis] + pad[axis + 2] - self.dilation[axis] * (filters[axis] - 1) - 1
            for axis in (0, 1)
        )

    def _shape(self, source: tuple[int, ...]) -> tuple[int, ...]:
        spans = zip(self._spans(source), self.strides, strict=True)
        return (source[0], self.weight.shape[0], *(span // stride + 1 for span, stride in spans))

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, weights and bias."""
        weight, bias = (np.asarray(part, "float32", order="C") for part in (self.weight, self.bias))
        return (
            Argument("x", inputs[0]), Argument("weight", weight, "weight"),
            Argument("bias", bias, "bias"),
        )  # fmt: skip

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, kernel, summand = tensors
        total = self._sums(source, kernel)
        return te.compute(
            total.shape, lambda n, o, y, z: total(n, o, y, z) + summand[o], name="biased"
        )

    def _sums(self, source: te.Tensor, kernel: te.Tensor) -> te.Tensor:
        """Return the sums of the products of every window with the filters."""
        shape, (k, each, fy, fx) = sizes_of(source), self.weight.shape
        sizes, padding = shape[2:], self.padding
        c, i, j = (
            te.reduce_axis((0, size), part)
            for size, part in zip((each, fy, fx), "cij", strict=True)
        )

        def tap(n: Any, channel: Any, oy: Any, ox: Any) -> Any:
            y = oy * self.strides[0] + i * self.dilation[0] - padding[0]
            z = ox * self.strides[1] + j * self.dilation[1] - padding[1]
            group = tirx.floordiv(channel, k // self.groups) * each
            value = source(n, group + c, y, z)
            if any(padding):
                inside = tirx.all(y >= 0, y < sizes[0], z >= 0, z < sizes[1])
                value = tirx.if_then_else(inside, value, tirx.const(0.0, "float32"))
            return te.sum(value * kernel(channel, c, i, j), axis=[c, i, j])

        return te.compute(extents(self._shape(shape)), tap, name="total")
