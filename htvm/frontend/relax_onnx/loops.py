"""Loop nests that TVM's ONNX importer writes in place of operators: bounds, paddings, tiles.

They carry no mark.  Each form that fits the shapes is written again with TVM's own operators, and
must be the same loop nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
import tvm_ffi
from tvm import te, tirx, topi

from htvm.frontend.relax_onnx.shapes import flipped, padded
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Call
    from tvm.tirx import PrimFunc

    from htvm.frontend.relax_onnx.writer import Handler, Writer

_MOST_TRIES = 2000  # largest number of paddings that are written again
_PADS = {
    "edge": topi.nn.replicate_pad,
    "reflect": lambda x, before, after: topi.nn.mirror_pad(x, before, after, "REFLECT"),
    "wrap": topi.nn.circular_pad,
}


def _call_tir(writer: Writer, call: Call) -> str:
    function, args = writer.function(call), list(call.args[1].fields)
    for make in (_bound, _pad, _tile, _flip):
        result = make(writer, function, args, call)
        if result:
            return result
    raise writer.unsupported(
        f"the loop nest '{call.args[0].name_hint}' is no known operator",
        "write it with Relax operators",
    )


def _bound(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
    """Write a clip, which the importer writes as a maximum and a minimum with scalars."""
    dtype = dtype_of(call)
    for place, compute in ((1, topi.maximum), (2, topi.minimum)):
        bound = ""
        if len(args) == 2 and shape_of(args[1]) == () and _same(function, args, compute):
            bound = writer.name(args[1])
        elif len(args) == 1:
            for number in _numbers(function, dtype):
                if _same(function, args, lambda x, c=compute, n=number: c(x, n)):
                    bound = writer.constant(number, dtype)
        if not bound:
            continue
        lower = writer.once(args[0], ("Clip",))
        if lower is not None and place == 2 and len(lower.input) == 2:
            return writer.replace(lower, "Clip", [*lower.input, bound])
        return writer.node("Clip", [writer.name(args[0]), *[""] * (place - 1), bound])
    return ""


def _pad(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
    """Write a padding with a constant, or with the tensor's own elements."""
    shape, padded_shape = shape_of(args[0]), shape_of(call)
    if len(args) != 1 or len(shape) != len(padded_shape) or shape == padded_shape:
        return ""
    for before, after in _widths(shape, padded_shape):
        for mode, compute in _PADS.items():
            if _same(function, args, lambda x, c=compute, w=(before, after): c(x, *w)):
                return padded(writer, writer.name(args[0]), (before, after), mode, None)
        for fill in _numbers(function, dtype_of(call)):
            if _same(function, args, lambda x, w=(before, after), v=fill: topi.nn.pad(x, *w, v)):
                value = np.asarray(fill, dtype_of(call))
                source = writer.name(args[0])
                return padded(writer, source, (before, after), "constant", value)
    return ""


def _widths(shape: Sequence[int], larger: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield all widths before and behind each axis, those that are nearly equal first."""
    sums = [new - old for old, new in zip(shape, larger, strict=True)]
    if min(sums) < 0 or math.prod(total + 1 for total in sums) > _MOST_TRIES:
        return
    # By their distance from the half.
    nearest = [
        [first for _, first in sorted((abs(2 * n - total), n) for n in range(total + 1))]
        for total in sums
    ]
    for before in product(*nearest):
        yield list(before), [total - first for total, first in zip(sums, before, strict=True)]


def _tile(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
    shape, tiled = shape_of(args[0]), shape_of(call)
    if len(args) != 1 or len(shape) != len(tiled):
        return ""
    repeats = [new // old for old, new in zip(shape, tiled, strict=True)]
    if not _same(function, args, lambda x: topi.tile(x, repeats)):
        return ""
    return writer.node("Tile", [writer.name(args[0]), writer.constant(repeats, "int64")])


def _flip(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
    for axis in range(len(shape_of(call))):
        if len(args) == 1 and _same(function, args, lambda x, a=axis: topi.flip(x, axis=a)):
            return flipped(writer, writer.name(args[0]), axis)
    return ""


def _same(function: PrimFunc, args: Sequence[Any], compute: Any) -> bool:
    """Whether an operator of TVM, on arguments of these types, is this loop nest."""
    tensors = [
        te.placeholder(
            tuple(tirx.IntImm("int64", size) for size in shape_of(arg)), dtype_of(arg), "x"
        )
        for arg in args
    ]
    try:
        made = te.create_prim_func([*tensors, compute(*tensors)], index_dtype_override="int64")
    except (ValueError, TypeError, IndexError, tvm.error.TVMError):
        return False  # not possible for these shapes
    return bool(tvm_ffi.structural_equal(made.body, function.body, map_free_vars=True))


def _numbers(function: PrimFunc, dtype: str) -> list[float]:
    """Return the numbers of a type in a loop nest, which may fill or bound its elements."""
    found: dict[float, None] = {}

    def visit(item: Any) -> None:
        if str(item.ty) == dtype:
            found[item.value] = None

    tvm_ffi.structural_walk(function.body, ((tirx.FloatImm, tirx.IntImm), visit))
    return list(found)


HANDLERS: Mapping[str, Handler] = {"relax.call_tir": _call_tir}
