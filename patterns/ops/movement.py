"""Operators that only move elements: concatenation, slices, transposition, nearest neighbours.

All keep scale and zero point.  Each is a PrimFunc that says what it is, for tensors of any type and
rank; sizes and indices are known when the model is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.ops.requantize import int_constant
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = [
    "PRIMITIVES",
    "concat",
    "interleave",
    "nearest",
    "pad_axes",
    "slice_axes",
    "transpose",
]

PRIMITIVES = {
    kind: kind for kind in ("concat", "interleave", "nearest", "pad_axes", "slice", "transpose")
}
"""Kind of the PrimFunc -> kind of the operator."""


def concat(bb: BlockBuilder, parts: Sequence[Expr], axis: int, *, name: str) -> Var:
    """Write the tensors one after the other along ``axis``.

    Args:
        bb: where to write, inside a dataflow block.
        parts: of one type, scale and zero point; their shapes differ along ``axis`` only.
        axis: 0 is the batch; negative counts from the end.
        name: of the operator.

    Raises:
        IntegerFormError: if shapes or types do not fit together.
    """
    shapes, dtypes = [shape_of(part) for part in parts], {dtype_of(part) for part in parts}
    axis %= len(shapes[0])
    frames = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(frames) != 1 or len(dtypes) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise IntegerFormError(
            f"a concatenation along axis {axis} of {', '.join(map(str, shapes))}",
            where=f"operator '{name}'",
        )
    sizes = [shape[axis] for shape in shapes]
    out = (*shapes[0][:axis], sum(sizes), *shapes[0][axis + 1 :])

    def body(*sources: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            at = index[axis]
            start = out[axis] - sizes[-1]
            value = sources[-1](*index[:axis], at - start, *index[axis + 1 :])
            for source, size in zip(reversed(sources[:-1]), reversed(sizes[:-1]), strict=True):
                here = at < tirx.const(start, at.ty.dtype)
                start -= size
                moved = source(*index[:axis], at - start, *index[axis + 1 :])
                value = tirx.if_then_else(here, moved, value)
            return value

        return te.compute(extents(out), element, name="joined")

    inputs = [(f"part_{at}", shape, dtype_of(parts[0])) for at, shape in enumerate(shapes)]
    func = primitive("concat", inputs, body, {"axis": axis})
    return call_primitive(bb, func, parts, out, dtype_of(parts[0]), name, last=True)


def slice_axes(
    bb: BlockBuilder,
    x: Expr,
    begin: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    name: str,
) -> Var:
    """Write a part of a tensor: ``sizes`` elements from ``begin`` on, every ``strides``-th.

    Args:
        bb: where to write, inside a dataflow block.
        x: any type and rank.
        begin, sizes, strides: one number per axis; strides may be negative, default 1.
        name: of the operator.

    Raises:
        IntegerFormError: if the part lies outside.
    """
    shape, out = shape_of(x), tuple(sizes)
    steps = tuple(strides) if strides is not None else (1,) * len(shape)
    for size, first, count, step in zip(shape, begin, out, steps, strict=True):
        last = first + (count - 1) * step
        if count < 1 or step == 0 or not (0 <= first < size and 0 <= last < size):
            raise IntegerFormError(
                f"a slice of {shape} from {tuple(begin)}, {out} elements in steps of {steps}",
                where=f"operator '{name}'",
            )

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            parts = zip(index, begin, steps, strict=True)
            return source(*(at * step + first for at, first, step in parts))

        return te.compute(extents(out), element, name="part")

    attributes: dict[str, Parameter] = {"begin": tuple(begin), "sizes": out, "strides": steps}
    func = primitive("slice", [("x", shape, dtype_of(x))], body, attributes)
    return call_primitive(bb, func, [x], out, dtype_of(x), name, last=True)


def transpose(bb: BlockBuilder, x: Expr, axes: Sequence[int], *, name: str) -> Var:
    """Write the tensor with its axes in another order: axis ``i`` of the result is ``axes[i]``."""
    shape = shape_of(x)
    out = tuple(shape[axis] for axis in axes)

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            return source(*(index[axes.index(axis)] for axis in range(len(shape))))

        return te.compute(extents(out), element, name="transposed")

    func = primitive("transpose", [("x", shape, dtype_of(x))], body, {"axes": tuple(axes)})
    return call_primitive(bb, func, [x], out, dtype_of(x), name, last=True)


def nearest(
    bb: BlockBuilder,
    x: Expr,
    rows: Sequence[int],
    columns: Sequence[int],
    *,
    layout: str = "NHWC",
    name: str,
) -> Var:
    """Write a map of another size, each element copied from one of the source.

    Args:
        bb: where to write, inside a dataflow block.
        x: any type, ``layout``.
        rows, columns: row (column) of the source for each of the result.
        layout: ``"NHWC"`` or ``"NCHW"``.
        name: of the operator.
    """
    shape = shape_of(x)
    y_axis = 1 if layout == "NHWC" else 2
    out = (*shape[:y_axis], len(rows), len(columns), *shape[y_axis + 2 :])

    def body(source: te.Tensor, row: te.Tensor, column: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            place = (row[index[y_axis]], column[index[y_axis + 1]])
            return source(*index[:y_axis], *place, *index[y_axis + 2 :])

        return te.compute(extents(out), element, name="nearest")

    inputs = [
        ("x", shape, dtype_of(x)),
        ("rows", (len(rows),), "int32"),
        ("columns", (len(columns),), "int32"),
    ]
    attributes: dict[str, Parameter] = {
        "rows": tuple(rows),
        "columns": tuple(columns),
        "layout": layout,
    }
    func = primitive("nearest", inputs, body, attributes)
    args = [x, int_constant(tuple(rows)), int_constant(tuple(columns))]
    return call_primitive(bb, func, args, out, dtype_of(x), name, last=True)


def interleave(
    bb: BlockBuilder,
    x: Expr,
    size: tuple[int, int],
    start: tuple[int, int],
    strides: tuple[int, int],
    value: int,
    *,
    layout: str = "NHWC",
    name: str,
) -> Var:
    """Write a map of ``value`` with the elements of ``x`` spread over it.

    With it a transposed convolution is a convolution: the sum over the elements that a filter tap
    is added to becomes a sum over the taps that reach an element.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, ``layout``.
        size: (y, x) of the result.
        start: place (y, x) of the first element of ``x``.
        strides: distance (y, x) of its elements; those beyond ``size`` are left out.
        value: of all others, usually the zero point.
        layout: ``"NHWC"`` or ``"NCHW"``.
        name: of the operator.
    """
    shape = shape_of(x)
    y_axis = 1 if layout == "NHWC" else 2
    out = (*shape[:y_axis], *size, *shape[y_axis + 2 :])

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            places, inside = [], []
            for axis in (0, 1):
                # Numbered from a multiple of the stride, so that nothing divided is negative.
                shift = math.ceil(start[axis] / strides[axis])
                distance = index[y_axis + axis] + (shift * strides[axis] - start[axis])
                place = tirx.floordiv(distance, strides[axis]) - shift
                places.append(place)
                if strides[axis] > 1:
                    inside.append(tirx.floormod(distance, strides[axis]) == 0)
                inside += [place >= 0, place < shape[y_axis + axis]]
            taken = source(*index[:y_axis], *places, *index[y_axis + 2 :])
            return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(value, "int8"))

        return te.compute(extents(out), element, name="spread")

    attributes: dict[str, Parameter] = {
        "size": size, "start": start, "strides": strides, "value": value, "layout": layout,
    }  # fmt: skip
    func = primitive("interleave", [("x", shape, "int8")], body, attributes)
    return call_primitive(bb, func, [x], out, "int8", name, last=True)


def pad_axes(
    bb: BlockBuilder, x: Expr, widths: Sequence[tuple[int, int]], value: int, *, name: str
) -> Var:
    """Write a border of ``value`` around any axes; `patterns.ops.shape.pad` does height and width.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, any rank.
        widths: elements before and after, one pair per axis.
        value: the border's, usually the zero point.
        name: of the operator.
    """
    shape = shape_of(x)
    out = tuple(size + before + after for size, (before, after) in zip(shape, widths, strict=True))

    def body(source: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            places = [at - before for at, (before, _) in zip(index, widths, strict=True)]
            inside = []
            for place, size, (before, after) in zip(places, shape, widths, strict=True):
                inside += [place >= 0] if before else []
                inside += [place < size] if after else []
            taken = source(*places)
            if not inside:
                return taken
            return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(value, "int8"))

        return te.compute(extents(out), element, name="padded")

    attributes: dict[str, Parameter] = {
        "widths": tuple(width for pair in widths for width in pair),
        "value": value,
    }
    func = primitive("pad_axes", [("x", shape, "int8")], body, attributes)
    return call_primitive(bb, func, [x], out, "int8", name, last=True)
