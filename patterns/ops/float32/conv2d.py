"""Convolutions of float32 maps, for networks that are not quantized.

Sums run over channels, then rows, then columns of a filter, in float32.  This order is as good as
any other, but another order would give different last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals
from patterns.primitive import sizes_of

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
        pad, filters = self.padding, self.weight.shape[2:]
        # How far a filter can move, (y, x).
        spans = [
            source[2 + axis] + pad[axis] + pad[axis + 2] - self.dilation[axis] * (taps - 1) - 1
            for axis, taps in enumerate(filters)
        ]
        if not fits or min(spans) < 0:
            raise IntegerFormError(
                f"weights of shape {self.weight.shape} on {source} in {self.groups} groups"
            )
        sizes = (span // stride + 1 for span, stride in zip(spans, self.strides, strict=True))
        return TensorType((source[0], k, *sizes), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, kernel, summand = tensors
        k, each, fy, fx = self.weight.shape
        sizes, padding = sizes_of(source)[2:], self.padding
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

        total = te.compute(self.extents(tensors), tap, name="total")
        return te.compute(
            total.shape, lambda n, o, y, z: total(n, o, y, z) + summand[o], name="biased"
        )
