"""Operators that only move elements: as an index for retargeting, and written again.

Retargeting lets scales pass through them.  What they do is asked of numpy once, with the numbers of
the elements instead of the elements; the index that results serves for every layout and every
operator alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.quantization.graph import Array, Operator

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Var

__all__ = ["MOVES", "from_source", "index_of", "moved", "to_source", "write_move"]


def to_source(x: Array, channel_first: bool) -> Array:
    """``[N, y, x, C]`` (or fewer axes) in the module's own layout."""
    return np.moveaxis(x, -1, 1) if channel_first and x.ndim == 4 else x


def from_source(x: Array, channel_first: bool) -> Array:
    """The other way round."""
    return np.moveaxis(x, 1, -1) if channel_first and x.ndim == 4 else x


def index_of(
    kind: str, attrs: Mapping[str, Any], shapes: Sequence[tuple[int, ...]], channel_first: bool
) -> Array:
    """Which element each of the result's is; -1 for the filling.

    Args:
        kind, attrs: of the operator's node; a key of `MOVES`.
        shapes: of its inputs, channel-last, without batch.
        channel_first: whether the module's own layout is NCHW.

    Returns:
        int64, flat, in the order of a channel-last result.
    """
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        numbers = np.arange(start, start + size).reshape(1, *shape)
        parts.append(to_source(numbers, channel_first))
        start += size
    return from_source(moved(kind, attrs, parts, -1), channel_first).reshape(-1)


def moved(kind: str, attrs: Mapping[str, Any], parts: Sequence[Array], fill: int) -> Array:
    """The operator on arrays in the module's own layout, the first axis the batch."""
    return MOVES[kind](attrs, parts, fill)


def _concat(attrs: Mapping[str, Any], parts: Sequence[Array], _: int) -> Array:
    return np.concatenate(parts, axis=attrs["axis"])


def _slice(attrs: Mapping[str, Any], parts: Sequence[Array], _: int) -> Array:
    bounds = zip(attrs["begin"], attrs["sizes"], attrs["strides"], strict=True)
    places = [begin + np.arange(size) * stride for begin, size, stride in bounds]
    if parts[0].shape[0] != 1:  # a batch of samples instead of the one of the module
        places[0] = np.arange(parts[0].shape[0])
    return np.asarray(parts[0][np.ix_(*places)])


def _transpose(attrs: Mapping[str, Any], parts: Sequence[Array], _: int) -> Array:
    return parts[0].transpose(attrs["axes"])


def _nearest(attrs: Mapping[str, Any], parts: Sequence[Array], _: int) -> Array:
    axis = str(attrs["layout"]).index("H")
    rows = np.take(parts[0], attrs["rows"], axis=axis)
    return np.take(rows, attrs["columns"], axis=axis + 1)


def _interleave(attrs: Mapping[str, Any], parts: Sequence[Array], fill: int) -> Array:
    axis, x = str(attrs["layout"]).index("H"), parts[0]
    out = np.full((*x.shape[:axis], *attrs["size"], *x.shape[axis + 2 :]), fill, x.dtype)
    target: list[Any] = [slice(None)] * x.ndim
    source: list[Any] = [slice(None)] * x.ndim
    for at in (0, 1):
        places = attrs["start"][at] + attrs["strides"][at] * np.arange(x.shape[axis + at])
        inside = (places >= 0) & (places < attrs["size"][at])
        first = int(places[inside][0]) if inside.any() else 0
        count = int(inside.sum())
        end = first + (count - 1) * attrs["strides"][at] + 1 if count else first
        target[axis + at] = slice(first, end, attrs["strides"][at])
        source[axis + at] = inside
    rows = x[tuple(source[: axis + 1])]
    out[tuple(target)] = np.compress(source[axis + 1], rows, axis=axis + 1)
    return out


def _pad_axes(attrs: Mapping[str, Any], parts: Sequence[Array], fill: int) -> Array:
    widths = np.asarray(attrs["widths"]).reshape(-1, 2)
    return np.pad(parts[0], widths, constant_values=fill)


def _pad(attrs: Mapping[str, Any], parts: Sequence[Array], fill: int) -> Array:
    top, left, bottom, right = attrs["padding"]
    axis = str(attrs["layout"]).index("H")
    widths = [(0, 0)] * 4
    widths[axis : axis + 2] = [(top, bottom), (left, right)]
    return np.pad(parts[0], widths, constant_values=fill)


MOVES: Mapping[str, Callable[[Mapping[str, Any], Sequence[Array], int], Array]] = {
    "concat": _concat,
    "interleave": _interleave,
    "nearest": _nearest,
    "pad": _pad,
    "pad_axes": _pad_axes,
    "slice": _slice,
    "transpose": _transpose,
}
"""Kind of a node -> what it does."""


def write_move(builder: BlockBuilder, op: Operator, inputs: Sequence[Var], fill: int) -> Var:
    """The operator with the builder it came from, ``fill`` in places that have no source."""
    from patterns.ops import movement, shape

    assert op.origin is not None
    kind, attrs, x, name = op.origin.kind, op.origin.attrs, inputs[0], op.name
    if kind == "concat":
        return movement.concat(builder, inputs, attrs["axis"], name=name)
    if kind == "slice":
        bounds = attrs["begin"], attrs["sizes"], attrs["strides"]
        return movement.slice_axes(builder, x, *bounds, name=name)
    if kind == "transpose":
        return movement.transpose(builder, x, attrs["axes"], name=name)
    if kind == "nearest":
        rows, columns = attrs["rows"], attrs["columns"]
        return movement.nearest(builder, x, rows, columns, layout=attrs["layout"], name=name)
    if kind == "interleave":
        return movement.interleave(
            builder, x, attrs["size"], attrs["start"], attrs["strides"], fill,
            layout=attrs["layout"], name=name,
        )  # fmt: skip
    if kind == "pad":
        return shape.pad(builder, x, attrs["padding"], fill, layout=attrs["layout"], name=name)
    widths = list(zip(attrs["widths"][::2], attrs["widths"][1::2], strict=True))
    return movement.pad_axes(builder, x, widths, fill, name=name)
