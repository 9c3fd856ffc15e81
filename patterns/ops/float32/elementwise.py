"""Element-wise functions and products of float32 tensors, for what a network computes in reals.

Each rounds once, as IEEE 754 has it.  They run on the host, whose floating point is software.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.ops.requantize import array_constant
from patterns.ops.rescale import broadcast_load
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

__all__ = ["PRIMITIVES", "Function", "combine_real", "matmul_real", "round_even"]

Function: TypeAlias = Literal["add", "subtract", "multiply", "divide", "minimum", "maximum"]

PRIMITIVES = {"real_combine": "real", "real_matmul": "real_matmul", "real_round": "real_round"}
"""Kind of the PrimFunc -> kind of the operator."""

_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    # A NaN in the first operand stays one.
    "minimum": lambda x, y: tirx.Select(y < x, y, x),
    "maximum": lambda x, y: tirx.Select(y > x, y, x),
}

# From here on float32 has no fractions, and adding it rounds to integers, ties to even.
_FRACTIONS_END = float(2**23)
_OPAQUE = 8  # TVM's OpPatternKind: must not be fused


def combine_real(bb: BlockBuilder, function: Function, a: Expr, b: Expr, *, name: str) -> Var:
    """Write a function of two float32 tensors, broadcast as numpy does.

    Raises:
        IntegerFormError: if the shapes do not fit together, or a type is another.
    """
    first, second = shape_of(a), shape_of(b)
    _check_types(name, a, b)
    try:
        shape = np.broadcast_shapes(first, second)
    except ValueError as error:
        raise IntegerFormError(
            f"operands of shapes {first} and {second}", where=f"operator '{name}'"
        ) from error

    def body(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            x, y = (broadcast_load(part, index) for part in (left, right))
            return _COMBINE[function](x, y)

        return te.compute(extents(shape), element, name="combined")

    inputs = [("a", first, "float32"), ("b", second, "float32")]
    func = primitive("real_combine", inputs, body, {"function": function})
    return call_primitive(bb, func, [a, b], shape, "float32", name, last=True)


def _check_types(name: str, *operands: Expr) -> None:
    for operand in operands:
        if dtype_of(operand) != "float32":
            raise IntegerFormError(
                f"an operand of type {dtype_of(operand)}", where=f"operator '{name}'"
            )


def round_even(bb: BlockBuilder, x: Expr, *, name: str) -> Var:
    """Write the nearest integers of a float32 tensor, ties to even."""
    shape = shape_of(x)
    _check_types(name, x)

    def body(source: te.Tensor, ends: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            value, plus, minus = source(*index), ends[0], ends[1]
            up, down = (value + plus) - minus, (value - plus) + minus
            near = tirx.Select(value >= tirx.const(0.0, "float32"), up, down)
            inside = tirx.all(value < plus, value > -plus)
            return tirx.Select(inside, near, value)

        return te.compute(extents(shape), element, name="rounded")

    # Two equal arguments: from one, a compiler concludes that subtracting undoes adding.
    ends = np.full(2, _FRACTIONS_END, "float32")
    func = primitive("real_round", [("x", shape, "float32"), ("ends", (2,), "float32")], body, {})
    # Not fused into its neighbours: it reads its operand several times.
    func = func.with_attr("op_pattern", _OPAQUE)
    return call_primitive(bb, func, [x, array_constant(ends)], shape, "float32", name, last=True)


def matmul_real(bb: BlockBuilder, a: Expr, b: Expr, *, name: str) -> Var:
    """Write the product of two float32 tensors of matrices, summed in order.

    Raises:
        IntegerFormError: if the shapes do not fit together, or a type is another.
    """
    first, second = shape_of(a), shape_of(b)
    _check_types(name, a, b)
    if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
        raise IntegerFormError(
            f"a product of shapes {first} and {second}", where=f"operator '{name}'"
        )
    shape = (*np.broadcast_shapes(first[:-2], second[:-2]), first[-2], second[-1])

    def body(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, tirx.const(first[-1], "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = broadcast_load(left, [*batch, row, k])
            return te.sum(x * broadcast_load(right, [*batch, k, column]), axis=[k])

        return te.compute(extents(shape), element, name="matmul")

    inputs = [("a", first, "float32"), ("b", second, "float32")]
    func = primitive("real_matmul", inputs, body, {})
    return call_primitive(bb, func, [a, b], shape, "float32", name, last=True)
