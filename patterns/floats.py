"""Between float32 tensors at the border of a network and the 8-bit tensors inside.

The arithmetic is float32 with TFLite Micro's rounding, and fits hosts without a mathematical
library: what is beyond the range saturates, what is no number becomes the upper end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

__all__ = ["PRIMITIVES", "dequantize", "quantize"]

PRIMITIVES = {"dequantize": "dequantize", "quantize": "quantize"}
"""Kind of the PrimFunc -> kind of the operator."""

_BEYOND = 512.0  # steps from zero: saturates whatever the zero point is


def quantize(
    bb: BlockBuilder, x: Expr, scale: float, zero_point: int, dtype: str = "int8", *, name: str
) -> Var:
    """Write ``round(x / scale) + zero_point``, ties away from zero, saturated.

    Args:
        bb: where to write, inside a dataflow block.
        x: float32, any shape.
        scale: of the output, taken as float32.
        zero_point: of the output.
        dtype: of the output, int8 or uint8.
        name: of the operator.
    """
    shape, limits = shape_of(x), np.iinfo(dtype)

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            ratio = source(*index) / tirx.const(np.float32(scale), "float32")
            # Asked so that a NaN, for which no comparison holds, goes to the upper end.
            ratio = tirx.Select(ratio < _f32(_BEYOND), ratio, _f32(_BEYOND))
            ratio = tirx.Select(ratio > _f32(-_BEYOND), ratio, _f32(-_BEYOND))
            whole = tirx.Cast("int32", ratio)
            rest = ratio - tirx.Cast("float32", whole)
            up, down = tirx.Cast("int32", rest >= _f32(0.5)), tirx.Cast("int32", rest <= _f32(-0.5))
            value = whole + up - down + zero_point
            return tirx.Cast(dtype, tirx.max(tirx.min(value, int(limits.max)), int(limits.min)))

        return te.compute(extents(shape), element, name="quantized")

    attributes = _attributes(scale, zero_point)
    func = primitive("quantize", [("x", shape, "float32")], body, attributes)
    return call_primitive(bb, func, [x], shape, dtype, name, last=True)


def dequantize(bb: BlockBuilder, x: Expr, scale: float, zero_point: int, *, name: str) -> Var:
    """Write ``scale * (x - zero_point)`` as float32 of an 8-bit tensor; arguments as above."""
    shape = shape_of(x)

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            centred = tirx.Cast("int32", source(*index)) - zero_point
            return tirx.Cast("float32", centred) * tirx.const(np.float32(scale), "float32")

        return te.compute(extents(shape), element, name="real")

    inputs = [("x", shape, dtype_of(x))]
    func = primitive("dequantize", inputs, body, _attributes(scale, zero_point))
    return call_primitive(bb, func, [x], shape, "float32", name, last=True)


def _f32(value: float) -> Any:
    return tirx.const(value, "float32")


def _attributes(scale: float, zero_point: int) -> dict[str, int | str | tuple[int, ...]]:
    """A float32 as its bits, because parameters are integers."""
    return {"scale_bits": int(np.float32(scale).view(np.int32)), "zero_point": zero_point}
