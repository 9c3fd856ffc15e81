"""Sums, differences and products of integer tensors into int32, and sums and means over axes.

Unlike TFLite's (`patterns.ops.tflite.arithmetic`), these know no scales: what is added are the
integers. Operands that may leave 32 bits are computed unsigned, and wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from patterns.ops.rescale import broadcast_load
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = ["PRIMITIVES", "Function", "combine", "matmul", "mean", "total"]

Function: TypeAlias = Literal["add", "subtract", "multiply"]

PRIMITIVES = {
    "integer_combine": "combine",
    "integer_matmul": "matmul",
    "integer_mean": "mean",
    "integer_total": "total",
}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32_MAX = 2**31 - 1


def _largest(expr: Expr) -> int:
    limits = np.iinfo(dtype_of(expr))
    return max(-int(limits.min), int(limits.max))


def _working_type(worst: int) -> str:
    """Signed where nothing can overflow, otherwise unsigned, which wraps."""
    return "int32" if worst <= _INT32_MAX else "uint32"


def combine(bb: BlockBuilder, function: Function, a: Expr, b: Expr, *, name: str) -> Var:
    """Write the sum, difference or product of two tensors, int32, broadcast as numpy does.

    Raises:
        IntegerFormError: if the shapes do not fit together.
    """
    first, second = shape_of(a), shape_of(b)
    try:
        shape = np.broadcast_shapes(first, second)
    except ValueError as error:
        raise IntegerFormError(
            f"operands of shapes {first} and {second}", where=f"operator '{name}'"
        ) from error
    one, two = _largest(a), _largest(b)
    kind = _working_type(one * two if function == "multiply" else one + two)

    def body(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            x, y = (tirx.Cast(kind, broadcast_load(part, index)) for part in (left, right))
            result = {"add": x + y, "subtract": x - y, "multiply": x * y}[function]
            return tirx.Cast("int32", result)

        return te.compute(extents(shape), element, name="combined")

    inputs = [("a", first, dtype_of(a)), ("b", second, dtype_of(b))]
    func = primitive("integer_combine", inputs, body, {"function": function})
    return call_primitive(bb, func, [a, b], shape, "int32", name, last=True)


def matmul(bb: BlockBuilder, a: Expr, b: Expr, *, transpose_b: bool = False, name: str) -> Var:
    """Write the product of two tensors of matrices, int32; leading axes broadcast.

    Args:
        bb: where to write, inside a dataflow block.
        a: (..., M, C), of any integer type.
        b: (..., C, K), or (..., K, C) if it is transposed.
        transpose_b: whether the rows of ``b`` are what the rows of ``a`` are multiplied with.
        name: of the operator.

    Raises:
        IntegerFormError: if the shapes do not fit together.
    """
    first, second = shape_of(a), shape_of(b)
    inner, columns = (-1, -2) if transpose_b else (-2, -1)
    if min(len(first), len(second)) < 2 or first[-1] != second[inner]:
        transposed = " transposed" if transpose_b else ""
        raise IntegerFormError(
            f"a product of shapes {first} and {second}{transposed}", where=f"operator '{name}'"
        )
    outer = np.broadcast_shapes(first[:-2], second[:-2])
    shape = (*outer, first[-2], second[columns])
    kind = _working_type(_largest(a) * _largest(b) * first[-1])

    def body(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, tirx.const(first[-1], "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = tirx.Cast(kind, broadcast_load(left, [*batch, row, k]))
            place = [column, k] if transpose_b else [k, column]
            y = tirx.Cast(kind, broadcast_load(right, [*batch, *place]))
            return te.sum(x * y, axis=[k])

        sums = te.compute(extents(shape), element, name="matmul")
        if kind == "int32":
            return sums
        return te.compute(extents(shape), lambda *i: tirx.Cast("int32", sums(*i)), name="product")

    inputs = [("a", first, dtype_of(a)), ("b", second, dtype_of(b))]
    func = primitive("integer_matmul", inputs, body, {"transpose_b": int(transpose_b)})
    return call_primitive(bb, func, [a, b], shape, "int32", name, last=True)


def total(
    bb: BlockBuilder, x: Expr, axes: Sequence[int], *, keepdims: bool = True, name: str
) -> Var:
    """Write the sum over some axes, int32."""
    return _reduce(bb, x, tuple(axes), keepdims, "integer_total", "int32", name)


def mean(
    bb: BlockBuilder, x: Expr, axes: Sequence[int], *, keepdims: bool = True, name: str
) -> Var:
    """Write ``(sum + n / 2) // n`` over some axes, in the type of ``x``.

    Raises:
        UnsupportedError: if n is no power of two.
    """
    shape = shape_of(x)
    count = int(np.prod([shape[axis] for axis in axes]))
    if count & (count - 1):
        raise UnsupportedError(
            f"a mean of {count} integers",
            where=f"operator '{name}'",
            hint="the rounding of integer means is defined for powers of two",
        )
    return _reduce(bb, x, tuple(axes), keepdims, "integer_mean", dtype_of(x), name)


def _reduce(
    bb: BlockBuilder,
    x: Expr,
    axes: tuple[int, ...],
    keepdims: bool,
    kind: str,
    dtype: str,
    name: str,
) -> Var:
    shape = shape_of(x)
    axes = tuple(sorted(axis % len(shape) for axis in axes))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    out = tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis in kept
    )
    count = int(np.prod([shape[axis] for axis in axes]))
    working = _working_type(count * (_largest(x) + 1))
    if working == "uint32" and kind == "integer_mean":
        working = "int64"

    def body(source: te.Tensor) -> te.Tensor:
        reduced = {
            axis: te.reduce_axis((0, tirx.const(shape[axis], "int64")), f"r{axis}") for axis in axes
        }

        def summed(*index: Any) -> Any:
            outer = dict(zip(range(len(shape)) if keepdims else kept, index, strict=True))
            place = [reduced.get(axis, outer.get(axis)) for axis in range(len(shape))]
            return te.sum(tirx.Cast(working, source(*place)), axis=list(reduced.values()))

        sums = te.compute(extents(out), summed, name="sums")
        if kind == "integer_total":
            return te.compute(extents(out), lambda *i: tirx.Cast("int32", sums(*i)), name="total")
        bits = count.bit_length() - 1

        def rounded(*index: Any) -> Any:
            value = sums(*index) + tirx.const(count // 2, working)
            return tirx.Cast(dtype, value >> tirx.const(bits, working))

        return te.compute(extents(out), rounded, name="mean")

    attributes: dict[str, Parameter] = {"axes": axes, "keepdims": int(keepdims)}
    func = primitive(kind, [("x", shape, dtype_of(x))], body, attributes)
    return call_primitive(bb, func, [x], out, dtype, name, last=True)
