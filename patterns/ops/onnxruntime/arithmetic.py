"""Averages and quantization as onnxruntime's CPU kernels mean them, which is in float32.

An average has one term, and is exact (see `patterns.ops.onnxruntime.rounding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, OnnxRequant
from patterns.ops.onnxruntime.rounding import EXACT_BELOW, float_product
from patterns.ops.rescale import broadcast_load
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = [
    "PRIMITIVES",
    "onnx_average",
    "onnx_quantize",
    "onnx_real",
]

PRIMITIVES = {
    "onnx_average": "onnx_average",
    "onnx_quantize": "quantize",
    "onnx_real": "onnx_real",
}
"""Kind of the PrimFunc -> kind of the operator."""

_COARSE = 1.2e7  # float32 numbers around it lie 1 apart; it is even, and printed exactly
_BEYOND = 512.0  # steps from zero: saturates whatever the zero point is


# ------------------------------------------------------------------------------ average


def onnx_average(
    bb: BlockBuilder,
    x: Expr,
    requant: OnnxRequant,
    clip: tuple[int, int] = (-128, 127),
    *,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    layout: str = "NCHW",
    name: str,
) -> Var:
    """Write averages of int8 windows: the centred sum times s_in / (s_out * count).

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, ``layout``.
        requant: its scale has the number of elements of a window in it.
        clip: inclusive range of the output.
        kernel, strides: (y, x).
        padding: (top, left, bottom, right); positions outside count as 0.0.
        layout: ``"NHWC"`` or ``"NCHW"``.
        name: of the operator.
    """
    shape = shape_of(x)
    windows = _Windows(shape, kernel, strides, padding, 1 if layout == "NHWC" else 2)
    out = windows.output(name)
    (zero,) = requant.input_zero_points
    ((mantissa,), (shift,)) = requant.multiplier, requant.shift
    bound = math.prod(kernel) * 255
    large, saturate = bound >= EXACT_BELOW, (bound * mantissa) >> shift >= 1 << 30

    def body(source: te.Tensor, factor: te.Tensor) -> te.Tensor:
        total = windows.sums(source, zero, out)

        def element(*index: Any) -> Any:
            scaled = float_product(
                total(*index), factor[0], factor[1], large=large, saturate=saturate
            )
            value = scaled + requant.output_zero_point
            return tirx.Cast("int8", tirx.max(tirx.min(value, clip[1]), clip[0]))

        return te.compute(extents(out), element, name="average")

    attributes: dict[str, Parameter] = {
        "kernel": kernel,
        "strides": strides,
        "padding": padding,
        "layout": layout,
        "clip": clip,
        "multipliers": requant.multiplier,
        "shifts": requant.shift,
        "zero_points": (zero, requant.output_zero_point),
    }
    inputs = [("x", shape, "int8"), ("factors", (2,), "int32")]
    func = primitive("onnx_average", inputs, body, attributes)
    args = [x, relax.const(np.array([mantissa, shift], "int32"), "int32")]
    return call_primitive(bb, func, args, out, "int8", name, last=True)


@dataclass(frozen=True)
class _Windows:
    """Windows that move over maps; ``y_axis`` is the axis of their height in ``shape``."""

    shape: tuple[int, ...]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    y_axis: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Height and width of the maps."""
        return self.shape[self.y_axis : self.y_axis + 2]

    def output(self, name: str) -> tuple[int, ...]:
        """The shape of a result with one element for each window, of the operator ``name``."""
        sizes = []
        for axis in (0, 1):
            size, before, after = self.sizes[axis], self.padding[axis], self.padding[axis + 2]
            span = size + before + after - self.kernel[axis]
            if span < 0:
                raise IntegerFormError(
                    f"windows of {self.kernel} on maps of {self.sizes}", where=f"operator '{name}'"
                )
            sizes.append(span // self.strides[axis] + 1)
        return (*self.shape[: self.y_axis], *sizes, *self.shape[self.y_axis + 2 :])

    def sums(self, source: te.Tensor, zero: int, out: tuple[int, ...]) -> te.Tensor:
        """The sum of each window, centred by ``zero``; positions outside count as nothing."""
        kernel, at, sizes = self.kernel, self.y_axis, self.sizes
        ry, rx = te.reduce_axis((0, kernel[0]), "ry"), te.reduce_axis((0, kernel[1]), "rx")

        def window(*index: Any) -> Any:
            y = index[at] * self.strides[0] - self.padding[0] + ry
            z = index[at + 1] * self.strides[1] - self.padding[1] + rx
            taken = tirx.Cast("int32", source(*index[:at], y, z, *index[at + 2 :])) - zero
            if any(self.padding):
                inside = tirx.all(y >= 0, y < sizes[0], z >= 0, z < sizes[1])
                taken = tirx.if_then_else(inside, taken, tirx.const(0, "int32"))
            return te.sum(taken, axis=[ry, rx])

        return te.compute(extents(out), window, name="total")


# ------------------------------------------------------------------------------ quantize


def onnx_quantize(
    bb: BlockBuilder, x: Expr, scale: float, zero_point: int, dtype: str = "int8", *, name: str
) -> Var:
    """Write ``rint(x / scale) + zero_point``, ties to even, saturated; a NaN becomes the upper end.

    Args:
        bb: where to write, inside a dataflow block.
        x: float32, any shape.
        scale: of the output, taken as float32.
        zero_point: of the output.
        dtype: of the output, int8 or uint8.
        name: of the operator.
    """
    shape, limits = shape_of(x), np.iinfo(dtype)

    def body(source: te.Tensor, step: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            # Variables, because TVM would write the division anew wherever its result is used, and
            # would take what is added and subtracted for nothing.
            ratio, below, value, moved = (
                tirx.Var(part, "float32") for part in ("ratio", "below", "value", "moved")
            )
            # Where float32 numbers lie 1 apart, every sum is rounded to an integer, ties to even.
            coarse = tirx.const(_COARSE, "float32")
            result = tirx.Cast("int32", moved - coarse) + zero_point
            result = tirx.max(tirx.min(result, int(limits.max)), int(limits.min))
            result = tirx.Let(moved, value + coarse, tirx.Cast(dtype, result))
            end = tirx.const(_BEYOND, "float32")
            # Asked so that a NaN, for which no comparison holds, goes to the upper end.
            result = tirx.Let(value, tirx.Select(below > -end, below, -end), result)
            result = tirx.Let(below, tirx.Select(ratio < end, ratio, end), result)
            return tirx.Let(ratio, source(*index) / step[0], result)

        return te.compute(extents(shape), element, name="quantized")

    attributes: dict[str, Parameter] = {
        "scale_bits": int(np.float32(scale).view(np.int32)),
        "zero_point": zero_point,
        "dtype": dtype,
    }
    # An argument, because TVM prints constants inside a function with seven digits only.
    step = relax.const(np.asarray([scale], "float32"), "float32")
    inputs = [("x", shape, "float32"), ("scale", (1,), "float32")]
    func = primitive("onnx_quantize", inputs, body, attributes)
    return call_primitive(bb, func, [x, step], shape, dtype, name, last=True)


def onnx_real(bb: BlockBuilder, x: Expr, factors: Array, *, name: str) -> Var:
    """Write ``float32(x) * factors`` of int32 sums.

    Args:
        bb: where to write, inside a dataflow block.
        x: int32, any shape.
        factors: float32, of the rank of ``x``; sizes of 1 are broadcast.
        name: of the operator.
    """
    shape = shape_of(x)

    def body(source: te.Tensor, factor: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            return tirx.Cast("float32", source(*index)) * broadcast_load(factor, index)

        return te.compute(extents(shape), element, name="real")

    inputs = [("x", shape, "int32"), ("factors", factors.shape, "float32")]
    func = primitive("onnx_real", inputs, body, {})
    args = [x, relax.const(np.ascontiguousarray(factors, "float32"), "float32")]
    return call_primitive(bb, func, args, shape, "float32", name, last=True)
