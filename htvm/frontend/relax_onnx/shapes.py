"""Operators that move elements, and the shapes of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Call

    from htvm.frontend.relax_onnx.writer import Handler, Writer


def _reshape(writer: Writer, call: Call) -> str:
    """Write any operator that changes the shape only."""
    shape = writer.constant(shape_of(call), "int64")
    return writer.node("Reshape", [writer.name(call.args[0]), shape])


def _transpose(writer: Writer, call: Call) -> str:
    rank, axes = len(shape_of(call)), call.attrs.axes
    order = range(rank)[::-1] if axes is None else [int(axis) % rank for axis in axes]
    return writer.node("Transpose", [writer.name(call.args[0])], perm=list(order))


def _concat(writer: Writer, call: Call) -> str:
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis)
    return writer.node("Concat", list(writer.names(call.args[0])), axis=axis)


def _stack(writer: Writer, call: Call) -> str:
    rank = len(shape_of(call))
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis) % rank
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


def _flip(writer: Writer, call: Call) -> str:
    return flipped(writer, writer.name(call.args[0]), int(call.attrs.axis))


def _take(writer: Writer, call: Call) -> str:
    source, axis = writer.name(call.args[0]), call.attrs.axis
    if axis is None:
        source = writer.node("Reshape", [source, writer.constant([-1], "int64")])
    indices = writer.name(call.args[1])
    return writer.node("Gather", [source, indices], axis=0 if axis is None else int(axis))


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


def _shape(writer: Writer, call: Call) -> str:
    """Write the shape of a tensor, which is a constant."""
    return writer.constant(shape_of(call.args[0]), "int64")


def _as_is(writer: Writer, call: Call) -> str:
    """Pass a shape on as a tensor, or a tensor as a shape."""
    return writer.name(call.args[0])


def _arange(writer: Writer, call: Call) -> str:
    first, last, step = (writer.number(arg) for arg in call.args)
    return writer.constant(np.arange(first, last, step), dtype_of(call))


HANDLERS: Mapping[str, Handler] = {
    "relax.arange": _arange,
    "relax.broadcast_to": _broadcast,
    "relax.concat": _concat,
    "relax.expand_dims": _reshape,
    "relax.flatten": _reshape,
    "relax.flip": _flip,
    "relax.nn.pad": _pad,
    "relax.permute_dims": _transpose,
    "relax.reshape": _reshape,
    "relax.shape_of": _shape,
    "relax.shape_to_tensor": _as_is,
    "relax.split": _split,
    "relax.squeeze": _reshape,
    "relax.stack": _stack,
    "relax.strided_slice": _strided_slice,
    "relax.take": _take,
    "relax.tensor_to_shape": _as_is,
    "relax.tile": _tile,
}
