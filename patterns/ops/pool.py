"""Pooling: the average as TFLite defines it, and the maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import te, tirx
from tvm.relax import op as R

from byoc_dory.errors import UnsupportedError
from patterns.names import emit
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "average_pool2d", "max_pool2d"]

PRIMITIVES = {"average_pool2d": "average_pool"}
"""Kind of the PrimFunc -> kind of the operator."""


def average_pool2d(
    bb: BlockBuilder,
    x: Expr,
    *,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    clip: tuple[int, int] = (-128, 127),
    layout: str = "NHWC",
    name: str,
) -> Var:
    """Write an average of int8 windows: sum / count, rounded half away from zero.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, ``layout``; the output has the same scale and zero point.
        kernel: (y, x).
        strides: (y, x).
        padding: (top, left, bottom, right); positions outside are not counted.
        clip: inclusive range of the output.
        layout: ``"NHWC"`` or ``"NCHW"``.
        name: of the operator.

    Raises:
        UnsupportedError: if some window lies outside the input altogether.
    """
    shape = shape_of(x)
    y_axis = 1 if layout == "NHWC" else 2
    sizes = []
    for axis in (0, 1):
        size, before, after = shape[y_axis + axis], padding[axis], padding[axis + 2]
        sizes.append((size + before + after - kernel[axis]) // strides[axis] + 1)
        last_start = (sizes[axis] - 1) * strides[axis] - before
        if sizes[axis] < 1 or before >= kernel[axis] or last_start >= size:
            raise UnsupportedError(
                f"an average over no elements: input {shape}, kernel {kernel}, pads {padding}",
                where=f"operator '{name}'",
            )
    out_shape = list(shape)
    out_shape[y_axis : y_axis + 2] = sizes

    def body(source: te.Tensor) -> te.Tensor:
        return _average(source, tuple(out_shape), kernel, strides, padding, clip, y_axis)

    attributes: dict[str, Parameter] = {
        "kernel": kernel,
        "strides": strides,
        "padding": padding,
        "clip": clip,
        "layout": layout,
    }
    func = primitive("average_pool2d", [("x", shape, "int8")], body, attributes)
    return call_primitive(bb, func, [x], tuple(out_shape), "int8", name, last=True)


def _average(
    source: te.Tensor,
    out_shape: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    clip: tuple[int, int],
    y_axis: int,
) -> te.Tensor:
    sizes = tuple(int(size) for size in source.shape[y_axis : y_axis + 2])
    ry, rx = te.reduce_axis((0, kernel[0]), "ry"), te.reduce_axis((0, kernel[1]), "rx")

    def start(index: Any, axis: int) -> Any:
        return index[y_axis + axis] * strides[axis] - padding[axis]

    def window(*index: Any) -> Any:
        y, x = start(index, 0) + ry, start(index, 1) + rx
        place = [*index[:y_axis], y, x, *index[y_axis + 2 :]]
        value = tirx.Cast("int32", source(*place))
        if any(padding):
            inside = tirx.all(y >= 0, y < sizes[0], x >= 0, x < sizes[1])
            value = tirx.if_then_else(inside, value, tirx.const(0, "int32"))
        return te.sum(value, axis=[ry, rx])

    def covered(index: Any, axis: int) -> Any:
        if not padding[axis] and not padding[axis + 2]:
            return tirx.const(kernel[axis], "int32")
        first = start(index, axis)
        last = tirx.min(first + kernel[axis], tirx.const(sizes[axis], first.ty.dtype))
        return tirx.Cast("int32", last - tirx.max(first, tirx.const(0, first.ty.dtype)))

    total = te.compute(extents(out_shape), window, name="total")

    def average(*index: Any) -> Any:
        count, value = covered(index, 0) * covered(index, 1), total(*index)
        half = tirx.truncdiv(count, tirx.const(2, "int32"))
        nudged = value + tirx.Select(value >= 0, half, -half)
        result = tirx.truncdiv(nudged, count)
        return tirx.Cast("int8", tirx.max(tirx.min(result, clip[1]), clip[0]))

    return te.compute(extents(out_shape), average, name="average")


def max_pool2d(
    bb: BlockBuilder,
    x: Expr,
    *,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    layout: str = "NHWC",
    name: str,
) -> Var:
    """Write the maximum of windows of any type; scale and zero point stay.  Arguments as above."""
    call = R.nn.max_pool2d(
        x, pool_size=kernel, strides=strides, padding=padding, layout=layout, out_layout=layout
    )
    return emit(bb, call, name, last=True)
