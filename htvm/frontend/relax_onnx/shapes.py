"""Operators that move elements, shapes of tensors, and loop nests in place of operators.

TVM's ONNX importer writes loop nests for bounds, paddings and tiles.  They carry no mark.  Each
form that fits the shapes is written again with TVM's own operators, and must be the same loop nest.
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

from byoc_dory.layers import Array
from htvm.frontend.relax_onnx.writer import Handler, Writer
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Call
    from tvm.tirx import PrimFunc


def _reshape(writer: Writer, call: Call) -> str:
    """Write any operator that changes the shape only."""
    shape = writer.constant(shape_of(call), "int64")
    return writer.node("Reshape", [writer.name(call.args[0]), shape])


def _transpose(writer: Writer, call: Call) -> str:
    rank, axes = len(shape_of(call)), call.attrs.axes
    order = range(rank)[::-1] if axes is None else [int(axis) % rank for axis in axes]
    return writer.node("Transpose", [writer.name(call.args[0])], perm=list(order))


def _stack(writer: Writer, call: Call) -> str:
    axis = int(call.attrs.axis or 0) % len(shape_of(call))
    along = writer.constant([axis], "int64")
    rows = [writer.node("Unsqueeze", [name, along]) for name in writer.names(call.args[0])]
    return writer.node("Concat", rows, axis=axis)


def _split(writer: Writer, call: Call) -> tuple[str, ...]:
    shapes = [tuple(int(size) for size in field.shape) for field in call.ty.fields]
    axis = int(call.attrs.axis) % len(shapes[0])
    sizes = writer.constant([shape[axis] for shape in shapes], "int64")
    return writer.nodes("Split", [writer.name(call.args[0]), sizes], len(shapes), axis=axis)


def _strided_slice(writer: Writer, call: Call) -> str:
    source = call.args[0]
    lists = [[writer.integer(value) for value in arg.fields] for arg in call.args[1:]]
    axes, begins, ends = lists[:3]
    strides = lists[3] if len(lists) > 3 else [1] * len(axes)
    return _sliced(writer, writer.name(source), begins, ends, axes, strides)


def _sliced(writer: Writer, source: str, *lists: Sequence[int]) -> str:
    """Write a slice by its begins, ends, axes and strides."""
    return writer.node("Slice", [source, *(writer.constant(part, "int64") for part in lists)])


def flipped(writer: Writer, source: str, axis: int) -> str:
    """Write a reversal along an axis."""
    return _sliced(writer, source, [-1], [-(2**31)], [axis], [-1])


def _take(writer: Writer, call: Call) -> str:
    source, axis = writer.name(call.args[0]), call.attrs.axis
    if axis is None:
        source = writer.node("Reshape", [source, writer.constant([-1], "int64")])
    return writer.node("Gather", [source, writer.name(call.args[1])], axis=int(axis or 0))


def _broadcast(writer: Writer, call: Call) -> str:
    if shape_of(call.args[0]) == shape_of(call):
        return writer.name(call.args[0])
    shape = writer.constant(shape_of(call), "int64")
    return writer.node("Expand", [writer.name(call.args[0]), shape])


def _tile(writer: Writer, call: Call) -> str:
    repeats, rank = [int(item) for item in call.attrs.repeats], len(shape_of(call))
    shape = shape_of(call.args[0])
    source = writer.name(call.args[0])
    if rank > len(shape):
        longer = (1,) * (rank - len(shape)) + shape
        source = writer.node("Reshape", [source, writer.constant(longer, "int64")])
    repeats = [1] * (rank - len(repeats)) + repeats
    return writer.node("Tile", [source, writer.constant(repeats, "int64")])


def _pad(writer: Writer, call: Call) -> str:
    widths = [int(width) for width in call.attrs.pad_width]
    mode, fill = str(call.attrs.pad_mode), float(call.attrs.pad_value)
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise writer.unsupported(f"a padding in mode '{mode}'")
    value = np.asarray(fill, dtype_of(call)) if mode == "constant" else None
    source = writer.name(call.args[0])
    return padded(writer, source, (widths[::2], widths[1::2]), modes[mode], value)


def padded(
    writer: Writer,
    source: str,
    widths: tuple[Sequence[int], Sequence[int]],
    mode: str,
    value: Array | None,
) -> str:
    """Write a padding; ``widths`` are those before and behind each axis."""
    inputs = [source, writer.constant([*widths[0], *widths[1]], "int64")]
    if value is not None:
        inputs.append(writer.constant(value))
    return writer.node("Pad", inputs, mode=mode)


_MOST_TRIES = 2000  # largest number of paddings that are written again
_PADS = {
    "edge": topi.nn.replicate_pad,
    "reflect": lambda x, before, after: topi.nn.mirror_pad(x, before, after, "REFLECT"),
    "wrap": topi.nn.circular_pad,
}


def _call_tir(writer: Writer, call: Call) -> str:
    function, args = writer.function(call), list(call.args[1].fields)
    for make in (_bound, _loop_pad, _loop_tile, _loop_flip):
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
        lower = writer.sole_maker(args[0], "Clip")
        if lower is not None and place == 2 and len(lower.input) == 2:
            return writer.replace(lower, "Clip", [*lower.input, bound])
        return writer.node("Clip", [writer.name(args[0]), *[""] * (place - 1), bound])
    return ""


def _loop_pad(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
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


def _loop_tile(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
    shape, tiled = shape_of(args[0]), shape_of(call)
    if len(args) != 1 or len(shape) != len(tiled):
        return ""
    repeats = [new // old for old, new in zip(shape, tiled, strict=True)]
    if not _same(function, args, lambda x: topi.tile(x, repeats)):
        return ""
    return writer.node("Tile", [writer.name(args[0]), writer.constant(repeats, "int64")])


def _loop_flip(writer: Writer, function: PrimFunc, args: Sequence[Any], call: Call) -> str:
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


HANDLERS: Mapping[str, Handler] = {
    "relax.arange": lambda writer, call: writer.constant(
        np.arange(*(writer.number(arg) for arg in call.args)), dtype_of(call)
    ),
    "relax.broadcast_to": _broadcast,
    "relax.call_tir": _call_tir,
    "relax.concat": lambda writer, call: writer.node(
        "Concat", list(writer.names(call.args[0])), axis=int(call.attrs.axis or 0)
    ),
    "relax.expand_dims": _reshape,
    "relax.flatten": _reshape,
    "relax.flip": lambda writer, call: flipped(
        writer, writer.name(call.args[0]), int(call.attrs.axis)
    ),
    "relax.nn.pad": _pad,
    "relax.permute_dims": _transpose,
    "relax.reshape": _reshape,
    "relax.shape_of": lambda writer, call: writer.constant(shape_of(call.args[0]), "int64"),
    "relax.shape_to_tensor": lambda writer, call: writer.name(call.args[0]),
    "relax.split": _split,
    "relax.squeeze": _reshape,
    "relax.stack": _stack,
    "relax.strided_slice": _strided_slice,
    "relax.take": _take,
    "relax.tensor_to_shape": lambda writer, call: writer.name(call.args[0]),
    "relax.tile": _tile,
}
