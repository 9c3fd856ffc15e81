"""Between float32 tensors at the border of a network and the 8-bit tensors inside.

The arithmetic is float32 with TFLite Micro's rounding, and fits hosts without a mathematical
library: what is beyond the range saturates, what is no number becomes the upper end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

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

    def body(source: te.Tensor, step: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            return _rounded(source(*index) / step[0], zero_point, limits, dtype)

        return te.compute(extents(shape), element, name="quantized")

    attributes = {**_attributes(scale, zero_point), "dtype": dtype}
    inputs = [("x", shape, "float32"), ("scale", (1,), "float32")]
    func = primitive("quantize", inputs, body, attributes)
    return call_primitive(bb, func, [x, _constant(scale)], shape, dtype, name, last=True)


def _rounded(ratio: Any, zero_point: int, limits: Any, dtype: str) -> Any:
    """A float32 rounded, moved and saturated."""
    # Variables, because TVM would write the division anew wherever its result is used.
    low, value = tirx.Var("low", "float32"), tirx.Var("value", "float32")
    whole = tirx.Var("whole", "int32")
    rest = value - tirx.Cast("float32", whole)
    up, down = tirx.Cast("int32", rest >= _f32(0.5)), tirx.Cast("int32", rest <= _f32(-0.5))
    result = whole + up - down + zero_point
    result = tirx.Cast(dtype, tirx.max(tirx.min(result, int(limits.max)), int(limits.min)))
    result = tirx.Let(whole, tirx.Cast("int32", value), result)
    result = tirx.Let(value, tirx.Select(low > _f32(-_BEYOND), low, _f32(-_BEYOND)), result)
    # Asked so that a NaN, for which no comparison holds, goes to the upper end.
    below = tirx.Var("ratio", "float32")
    result = tirx.Let(low, tirx.Select(below < _f32(_BEYOND), below, _f32(_BEYOND)), result)
    return tirx.Let(below, ratio, result)


def dequantize(bb: BlockBuilder, x: Expr, scale: float, zero_point: int, *, name: str) -> Var:
    """Write ``scale * (x - zero_point)`` as float32 of an 8-bit tensor; arguments as above."""
    shape = shape_of(x)

    def body(source: te.Tensor, step: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            centred = tirx.Cast("int32", source(*index)) - zero_point
            return tirx.Cast("float32", centred) * step[0]

        return te.compute(extents(shape), element, name="real")

    inputs = [("x", shape, dtype_of(x)), ("scale", (1,), "float32")]
    func = primitive("dequantize", inputs, body, _attributes(scale, zero_point))
    return call_primitive(bb, func, [x, _constant(scale)], shape, "float32", name, last=True)


def _constant(scale: float) -> Expr:
    """An argument, because TVM prints constants inside a function with seven digits only."""
    return relax.const(np.asarray([scale], "float32"), "float32")


def _f32(value: float) -> Any:
    return tirx.const(value, "float32")


def _attributes(scale: float, zero_point: int) -> dict[str, int | str | tuple[int, ...]]:
    """A float32 as its bits, because parameters are integers."""
    return {"scale_bits": int(np.float32(scale).view(np.int32)), "zero_point": zero_point}
