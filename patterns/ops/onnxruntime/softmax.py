"""Softmax of int8 rows with a table of exponentials, as onnxruntime's quantized kernel has it.

``y = round(e[max - x] / (s_y * sum(e[max - x]))) + zero_point``; the kernel keeps the exponentials
of all 256 distances from the maximum as float32, here they are integers of as many bits as the sum
of a row leaves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

__all__ = ["PRIMITIVES", "exponentials", "onnx_softmax"]

PRIMITIVES = {"onnx_softmax": "onnx_softmax"}
"""Kind of the PrimFunc -> kind of the operator."""

_BITS = 30  # of a sum, and of an exponential in output steps


def exponentials(scale: float, row: int) -> Array:
    """``exp(-d * scale)`` for d from 0 to 255, int32 [256]; rows of that length sum to 2**30."""
    bits = _BITS - math.ceil(math.log2(max(row, 1)))
    distances = np.arange(256, dtype="float64") * float(np.float32(scale))
    return np.rint(np.exp(-distances) * 2.0**bits).astype("int32")


def onnx_softmax(
    bb: BlockBuilder,
    x: Expr,
    scale: float,
    output_scale: float,
    zero_point: int,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
) -> Var:
    """Write a softmax over the last axis of int8 ``x``.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, any rank.
        scale: of ``x``.
        output_scale, zero_point: of the result; the scale is at least 2**-15.
        clip: inclusive range of the result.
        name: of the operator.

    Raises:
        UnsupportedError: if the scale of the result is too small, or a row too long.
    """
    shape = shape_of(x)
    row = shape[-1]
    # In steps of 2**-16, so that scales which are no power of two are met, too.
    steps = round(2.0**16 / float(np.float32(output_scale)))
    if steps >= 1 << 31 or row > 1 << 20:
        raise UnsupportedError(
            f"a softmax of rows of {row} to a scale of {output_scale:g}",
            where=f"operator '{name}'",
            hint="quantize its result with scale 1/256",
        )

    def body(source: te.Tensor, table: te.Tensor) -> te.Tensor:
        return _softmax(source, table, shape, steps, zero_point, clip)

    attributes: dict[str, int | str | tuple[int, ...]] = {
        "steps": steps,
        "zero_point": zero_point,
        "clip": clip,
    }
    inputs = [("x", shape, "int8"), ("exponential", (256,), "int32")]
    func = primitive("onnx_softmax", inputs, body, attributes)
    args = [x, relax.const(exponentials(scale, row), "int32")]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


def _softmax(
    source: te.Tensor,
    table: te.Tensor,
    shape: tuple[int, ...],
    steps: int,
    zero_point: int,
    clip: tuple[int, int],
) -> te.Tensor:
    """The rows of ``source`` with the exponentials of ``table``, 2**16 / ``steps`` a step."""
    row = tirx.const(shape[-1], "int64")
    kmax, ksum = te.reduce_axis((0, row), "kmax"), te.reduce_axis((0, row), "ksum")
    largest = te.compute(
        extents(shape[:-1]), lambda *i: te.max(source(*i, kmax), axis=[kmax]), "largest"
    )

    def exponential(index: Any, k: Any) -> Any:
        top = tirx.Cast("int32", largest(*index))
        return table[top - tirx.Cast("int32", source(*index, k))]

    total = te.compute(
        extents(shape[:-1]), lambda *i: te.sum(exponential(i, ksum), axis=[ksum]), "total"
    )

    def element(*index: Any) -> Any:
        *batch, k = index
        numerator = tirx.Cast("int64", exponential(batch, k)) * tirx.const(steps, "int64")
        whole = tirx.Cast("int64", total(*batch)) << tirx.const(16, "int64")
        half = whole >> tirx.const(1, "int64")
        value = tirx.Cast("int32", tirx.truncdiv(numerator + half, whole)) + zero_point
        return tirx.Cast("int8", tirx.max(tirx.min(value, clip[1]), clip[0]))

    return te.compute(extents(shape), element, "softmax")
