"""Normalizations, softmax, and reductions along axes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call

    from htvm.frontend.relax_onnx.writer import Handler, Writer


def _softmax(op: str, writer: Writer, call: Call) -> str:
    return writer.same(op, call, axis=int)


def _layer_norm(writer: Writer, call: Call) -> str:
    rank = len(shape_of(call))
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if axes != list(range(axes[0], rank)):
        raise writer.unsupported(f"a layer norm over axes {axes}", "use the last ones")
    return writer.same("LayerNormalization", call, axis=axes[0] - rank, epsilon=float)


def _group_norm(writer: Writer, call: Call) -> str:
    _check_channels(writer, call)
    return writer.same("GroupNormalization", call, num_groups=int, epsilon=float)


def _instance_norm(writer: Writer, call: Call) -> str:
    _check_channels(writer, call)
    return writer.same("InstanceNormalization", call, epsilon=float)


def _check_channels(writer: Writer, call: Call) -> None:
    shape = shape_of(call)
    rank = len(shape)
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if axes and axes[0] == 0 and shape[0] == 1:
        axes = axes[1:]  # a batch of one
    if int(call.attrs.channel_axis) % rank != 1 or axes != list(range(2, rank)):
        raise writer.unsupported(f"a norm over axes {axes}", "channels must be the second axis")


def _batch_norm(writer: Writer, call: Call) -> tuple[str, ...]:
    """Write a batch norm of inference; the statistics that it returns stay as they are."""
    if int(call.attrs.axis) % len(shape_of(call.args[0])) != 1:
        raise writer.unsupported(f"a batch norm over axis {call.attrs.axis}", "use the second")
    result = writer.same("BatchNormalization", call, epsilon=float)
    return (result, *(writer.name(arg) for arg in call.args[3:]))


def _reduce(op: str, writer: Writer, call: Call) -> str:
    rank, attrs = len(shape_of(call.args[0])), call.attrs
    axes = range(rank) if attrs.axis is None else sorted(int(axis) % rank for axis in attrs.axis)
    source, keep = writer.name(call.args[0]), int(attrs.keepdims)
    parts = _stacked(writer, source) if list(axes) == [0] and not keep else []
    if parts and op in ("ReduceMax", "ReduceMin"):
        return writer.node(op.removeprefix("Reduce"), parts)
    if op == "ReduceMean" and keep and list(axes) == list(range(2, rank)) and rank > 2:
        return writer.node("GlobalAveragePool", [source])
    return writer.node(op, [source, writer.constant(list(axes), "int64")], keepdims=keep)


def _stacked(writer: Writer, source: str) -> list[str]:
    """Return the tensors that were stacked along a new first axis, if a tensor is of these.

    TVM's ONNX importer writes extremes of several tensors in this way.
    """
    rows = writer.made(source, "Concat")
    parts = [] if rows is None else [writer.made(name, "Unsqueeze") for name in rows.input]
    return [str(part.input[0]) for part in parts if part is not None]


def _variance(writer: Writer, call: Call) -> str:
    rank, attrs = len(shape_of(call.args[0])), call.attrs
    axes = range(rank) if attrs.axis is None else [int(axis) % rank for axis in attrs.axis]
    source, along = writer.name(call.args[0]), writer.constant(list(axes), "int64")
    mean = writer.node("ReduceMean", [source, along], keepdims=1)
    away = writer.node("Sub", [source, mean])
    squares = writer.node("Mul", [away, away])
    return writer.node("ReduceMean", [squares, along], keepdims=int(attrs.keepdims))


def _extreme(op: str, writer: Writer, call: Call) -> str:
    if call.attrs.axis is None:
        raise writer.unsupported("an index into all of a tensor", "give an axis")
    return writer.same(op, call, axis=int, keepdims=int)


HANDLERS: Mapping[str, Handler] = {
    "relax.argmax": partial(_extreme, "ArgMax"),
    "relax.argmin": partial(_extreme, "ArgMin"),
    "relax.max": partial(_reduce, "ReduceMax"),
    "relax.mean": partial(_reduce, "ReduceMean"),
    "relax.min": partial(_reduce, "ReduceMin"),
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.group_norm": _group_norm,
    "relax.nn.instance_norm": _instance_norm,
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.log_softmax": partial(_softmax, "LogSoftmax"),
    "relax.nn.softmax": partial(_softmax, "Softmax"),
    "relax.prod": partial(_reduce, "ReduceProd"),
    "relax.sum": partial(_reduce, "ReduceSum"),
    "relax.variance": _variance,
}
