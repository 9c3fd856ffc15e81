"""Requantization of a tensor by itself: ``clip((x * mul + add) >> shift)``, with any broadcasting.

A requantization that follows a layer belongs to it (`patterns.ops.requantize`), and one of int8 to
int8 is a conversion (`patterns.ops.convert`); this is for everything else: wide
tensors, factors per row, other types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

__all__ = ["PRIMITIVES", "broadcast_load", "cast", "constant_of", "read_rescale", "rescale"]

PRIMITIVES = {"rescale": "rescale", "cast": "cast"}
"""Kind of the PrimFunc -> kind of the operator."""

_INT32 = np.iinfo("int32")


def rescale(
    bb: BlockBuilder,
    x: Expr,
    mul: Array,
    add: Array,
    shift: int,
    clip: tuple[int, int],
    *,
    name: str,
    dtype: str = "int8",
    bound: int | None = None,
) -> Var:
    """Write ``clip((x * mul + add) >> shift)`` with an arithmetic shift, which floors.

    Args:
        bb: where to write, inside a dataflow block.
        x: of any integer type.
        mul, add: integers that broadcast to the shape of ``x``; they fit int32.
        shift: from 0 to 31.
        clip: inclusive range of the output.
        name: of the operator.
        dtype: of the output.
        bound: largest magnitude of ``x``, if it is smaller than its type allows.

    Raises:
        UnsupportedError: if a factor or summand does not fit int32, or the shift is out of range.
    """
    shape = shape_of(x)
    if not 0 <= shift <= 31:
        raise UnsupportedError(f"a shift by {shift}", where=f"operator '{name}'", hint="0 to 31")
    largest = -int(np.iinfo(dtype_of(x)).min) or int(np.iinfo(dtype_of(x)).max)
    largest = largest if bound is None else bound
    factors, summands = (constant_of(part, len(shape), name) for part in (mul, add))
    worst = largest * int(np.abs(factors.astype("int64")).max())
    worst += int(np.abs(summands.astype("int64")).max())
    wide = "int64" if worst > _INT32.max else "int32"

    def body(source: te.Tensor, factor: te.Tensor, summand: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            value = tirx.Cast(wide, source(*index))
            value = value * tirx.Cast(wide, broadcast_load(factor, index))
            value = value + tirx.Cast(wide, broadcast_load(summand, index))
            value = value >> tirx.const(shift, wide)
            low, high = (tirx.const(limit, wide) for limit in clip)
            return tirx.Cast(dtype, tirx.max(tirx.min(value, high), low))

        return te.compute(extents(shape), element, name="rescaled")

    inputs = [
        ("x", shape, dtype_of(x)),
        ("mul", factors.shape, "int32"),
        ("add", summands.shape, "int32"),
    ]
    func = primitive("rescale", inputs, body, {"shift": shift, "clip": clip})
    args = [x, relax.const(factors, "int32"), relax.const(summands, "int32")]
    return call_primitive(bb, func, args, shape, dtype, name, last=True)


def read_rescale(call: Any) -> dict[str, int]:
    """``mul`` and ``add`` of a call that `rescale` wrote; nothing where they vary."""
    mul, add = (argument.value.numpy() for argument in list(call.args[1])[1:])
    return {"mul": mul.item(), "add": add.item()} if mul.size == add.size == 1 else {}


def constant_of(values: Array, rank: int, name: str) -> Array:
    """Integers as an int32 array of the given rank.

    Raises:
        UnsupportedError: if one does not fit.
    """
    array = np.asarray(values)
    wide = array.astype("int64")
    if array.size and (wide.min() < _INT32.min or wide.max() > _INT32.max):
        raise UnsupportedError(
            f"constants from {wide.min()} to {wide.max()}",
            where=f"operator '{name}'",
            hint="they must fit int32",
        )
    missing = (1,) * (rank - array.ndim)
    return np.ascontiguousarray(wide.astype("int32").reshape(missing + array.shape))


def broadcast_load(source: te.Tensor, index: Sequence[Any]) -> Any:
    """The element of an operand that numpy's broadcasting assigns to ``index`` of the result."""
    rank = len(source.shape)
    own = index[len(index) - rank :]
    return source(
        *(
            tirx.const(0, "int64") if int(size) == 1 else place
            for size, place in zip(source.shape, own, strict=True)
        )
    )


def cast(bb: BlockBuilder, x: Expr, dtype: str, *, name: str) -> Var:
    """Write the same integers in another type that holds them."""
    shape = shape_of(x)

    def body(source: te.Tensor) -> te.Tensor:
        return te.compute(extents(shape), lambda *i: tirx.Cast(dtype, source(*i)), name="cast")

    func = primitive("cast", [("x", shape, dtype_of(x))], body, {"dtype": dtype})
    return call_primitive(bb, func, [x], shape, dtype, name, last=True)
