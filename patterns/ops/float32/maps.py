"""Convolutions and averages of float32 maps, for networks that are not quantized.

Sums run over channels, then rows, then columns of a filter, in float32; they are as good as any
other order, and another order gives other last bits.  All of it runs on the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array
    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "average_real", "conv2d_real"]

PRIMITIVES = {"real_average": "real_average", "real_conv2d": "real_conv2d"}
"""Kind of the PrimFunc -> kind of the operator."""


def conv2d_real(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    bias: Array,
    *,
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    name: str,
) -> Var:
    """Write a convolution of float32 maps.

    Args:
        bb: where to write, inside a dataflow block.
        x: float32 (N, C, y, x).
        weight: float32 ``[K, C / groups, fy, fx]``.
        bias: float32 ``[K]``.
        strides, dilation: (y, x).
        padding: (top, left, bottom, right), with zeros.
        groups: of channels.
        name: of the operator.

    Raises:
        IntegerFormError: if the shapes do not fit together.
    """
    form = _Convolution(shape_of(x), weight.shape, strides, padding, dilation, groups)
    if not form.fits:
        raise IntegerFormError(
            f"weights of shape {weight.shape} on {shape_of(x)} in {groups} groups",
            where=f"operator '{name}'",
        )
    shape = form.output

    def body(source: te.Tensor, kernel: te.Tensor, summand: te.Tensor) -> te.Tensor:
        total = form.sums(source, kernel)
        return te.compute(
            extents(shape), lambda n, o, y, z: total(n, o, y, z) + summand[o], name="biased"
        )

    attributes: dict[str, Parameter] = {
        "strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
    }  # fmt: skip
    inputs = [
        ("x", shape_of(x), "float32"),
        ("weight", weight.shape, "float32"),
        ("bias", (shape[1],), "float32"),
    ]
    func = primitive("real_conv2d", inputs, body, attributes)
    constants = [
        relax.const(np.ascontiguousarray(item, "float32"), "float32") for item in (weight, bias)
    ]
    return call_primitive(bb, func, [x, *constants], shape, "float32", name, last=True)


@dataclass(frozen=True)
class _Convolution:
    """A convolution's sizes: input (N, C, y, x), weight ``[K, C / groups, fy, fx]``."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int

    @property
    def spans(self) -> tuple[int, ...]:
        """How far a filter can move, (y, x)."""
        pad, sizes, filters = self.padding, self.input[2:], self.weight[2:]
        return tuple(
            sizes[axis] + pad[axis] + pad[axis + 2] - self.dilation[axis] * (filters[axis] - 1) - 1
            for axis in (0, 1)
        )

    @property
    def fits(self) -> bool:
        """Whether the sizes fit together."""
        k, each = self.weight[:2]
        return self.input[1] == each * self.groups and not k % self.groups and min(self.spans) >= 0

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of the result, (N, K, y, x)."""
        sizes = (span // stride + 1 for span, stride in zip(self.spans, self.strides, strict=True))
        return (self.input[0], self.weight[0], *sizes)

    def sums(self, source: te.Tensor, kernel: te.Tensor) -> te.Tensor:
        """The products of every window with the filters, summed."""
        (k, each, fy, fx), sizes, padding = self.weight, self.input[2:], self.padding
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

        return te.compute(extents(self.output), tap, name="total")


def average_real(
    bb: BlockBuilder,
    x: Expr,
    *,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    name: str,
) -> Var:
    """Write averages over windows of float32 maps (N, C, y, x).

    Raises:
        IntegerFormError: if the windows are larger than the maps.
    """
    batch, channels, *sizes = shape_of(x)
    spans = [size - window for size, window in zip(sizes, kernel, strict=True)]
    if min(spans) < 0:
        raise IntegerFormError(f"windows of {kernel} on {sizes}", where=f"operator '{name}'")
    shape = (batch, channels, *(span // strides[axis] + 1 for axis, span in enumerate(spans)))

    def body(source: te.Tensor, count: te.Tensor) -> te.Tensor:
        i, j = te.reduce_axis((0, kernel[0]), "i"), te.reduce_axis((0, kernel[1]), "j")
        total = te.compute(
            extents(shape),
            lambda n, c, y, z: te.sum(
                source(n, c, y * strides[0] + i, z * strides[1] + j), axis=[i, j]
            ),
            name="total",
        )
        return te.compute(extents(shape), lambda *at: total(*at) / count[0], name="average")

    inputs = [("x", shape_of(x), "float32"), ("count", (1,), "float32")]
    attributes: dict[str, Parameter] = {"kernel": kernel, "strides": strides}
    func = primitive("real_average", inputs, body, attributes)
    count = relax.const(np.asarray([math.prod(kernel)], "float32"), "float32")
    return call_primitive(bb, func, [x, count], shape, "float32", name, last=True)
