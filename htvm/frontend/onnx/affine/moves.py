"""Parts, repetitions and blocks: more operators that move elements of tensors of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.gather import gathered
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.shapes import Movable, movable_of, move, reshape
from htvm.frontend.onnx.affine.values import Sums, Value
from patterns.ops.moves.slice import Slice
from patterns.ops.moves.take import Take
from patterns.ops.moves.transpose import Transpose

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS"]


def _taken(
    reader: Reader, node: OnnxNode, tensor: Movable, axis: int, places: Sequence[int]
) -> Movable:
    """Return chosen elements along an axis; as a slice, if they are evenly spread."""
    shape = list(tensor.shape)
    if not isinstance(places, range):
        step = places[1] - places[0] if len(places) > 1 else 1
        even = range(places[0], places[0] + step * len(places), step or 1)
        places = even if list(even) == places else places
    if places == range(shape[axis]):
        return tensor
    shape[axis] = len(places)
    if isinstance(places, range):
        begin, strides = [0] * len(shape), [1] * len(shape)
        begin[axis], strides[axis] = places.start, places.step
        return move(
            reader, node, tensor, Slice(tuple(begin), tuple(shape), tuple(strides)), tuple(shape)
        )
    return move(reader, node, tensor, Take(axis, tuple(places)), tuple(shape))


def _gather(reader: Reader, node: OnnxNode) -> Value:
    computed = reader.value(node, 1)
    if isinstance(computed, Sums):
        return gathered(reader, node, computed.activation)
    tensor, shape = movable_of(reader, node, 0), reader.array(node, 1, "indices").shape
    indices = reader.given(node)(1, "indices")
    source = tensor.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(source))
    size = source[axis]
    places = [index + size * (index < 0) for index in indices]
    if not places or min(places) < 0 or max(places) >= size:
        raise node.damaged(f"indices {[*indices[:8]]} of an axis of {size}")
    taken = _taken(reader, node, tensor, axis, places)
    return reshape(reader, node, taken, (*source[:axis], *shape, *source[axis + 1 :]))


def _split(reader: Reader, node: OnnxNode) -> list[Value]:
    tensor = movable_of(reader, node, 0)
    source = tensor.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(source))
    count, size = len(node.outputs), source[axis]
    declared = node.integer("num_outputs", count)
    if "split" in node.attributes:
        sizes = list(node.integers("split"))
    elif node.input(1):
        sizes = [*reader.given(node)(1, "sizes")]
    else:
        each = -(-size // count)
        sizes = [min(each, size - each * at) for at in range(count)]
    if declared != count or len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        raise node.damaged(f"{count} parts of {sizes} of an axis of {size}")
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        _taken(reader, node, tensor, axis, range(start, start + part))
        for start, part in zip(starts, sizes, strict=False)
    ]


def _tile(reader: Reader, node: OnnxNode) -> Value:
    tensor = movable_of(reader, node, 0)
    repeats = [*reader.given(node)(1, "repeats")]
    source = tensor.shape
    if len(repeats) != len(source) or min(repeats, default=1) < 1:
        raise node.damaged(f"repeats {repeats} of {list(source)}")
    for axis, (size, count) in enumerate(zip(source, repeats, strict=True)):
        if count > 1:
            reader.graph.budget.spend_places(size * count, node.where)
            tensor = _taken(reader, node, tensor, axis, list(range(size)) * count)
    return tensor


def _expand(reader: Reader, node: OnnxNode) -> Value:
    tensor = movable_of(reader, node, 0)
    wanted = reader.given(node)(1, "shape")
    node.check_axes(wanted)
    source = tensor.shape
    try:
        shape = np.broadcast_shapes(source, wanted)
    except ValueError:
        raise node.damaged(f"an expansion of {list(source)} to {list(wanted)}") from None
    if min(shape, default=1) < 1:
        raise node.damaged(f"an expansion of {list(source)} to {list(wanted)}")
    tensor = reshape(reader, node, tensor, (*(1,) * (len(shape) - len(source)), *source))
    for axis, (size, after) in enumerate(zip(tensor.shape, shape, strict=True)):
        if size != after:
            reader.graph.budget.spend_places(after, node.where)
            tensor = _taken(reader, node, tensor, axis, [0] * after)
    return tensor


def _blocks(reader: Reader, node: OnnxNode) -> tuple[Movable, tuple[int, ...], int]:
    tensor, block = movable_of(reader, node, 0), node.integer("blocksize")
    shape = tensor.shape
    if len(shape) != 4 or block < 1:
        raise node.damaged(f"blocks of {block} of {list(shape)}")
    return tensor, shape, block


def _depth_to_space(reader: Reader, node: OnnxNode) -> Value:
    tensor, (n, channels, y, x), block = _blocks(reader, node)
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD") or channels % block**2:
        raise node.damaged(f"mode '{mode}', blocks of {block} and {channels} channels")
    c = channels // block**2
    parts, axes = ((block, block, c), (0, 3, 4, 1, 5, 2))
    if mode == "CRD":
        parts, axes = (c, block, block), (0, 1, 4, 2, 5, 3)
    return _rearranged(reader, node, tensor, (n, *parts, y, x), axes, (n, c, y * block, x * block))


def _space_to_depth(reader: Reader, node: OnnxNode) -> Value:
    tensor, (n, c, y, x), block = _blocks(reader, node)
    mode = node.text("mode", "DCR")
    if y % block or x % block or mode != "DCR":
        raise node.unsupported(f"blocks of {block} of {[n, c, y, x]} in mode '{mode}'")
    split = (n, c, y // block, block, x // block, block)
    shape = (n, c * block**2, y // block, x // block)
    return _rearranged(reader, node, tensor, split, (0, 3, 5, 1, 2, 4), shape)


def _rearranged(
    reader: Reader,
    node: OnnxNode,
    tensor: Movable,
    split: tuple[int, ...],
    axes: tuple[int, ...],
    shape: tuple[int, ...],
) -> Movable:
    apart = reshape(reader, node, tensor, split)
    turned = move(reader, node, apart, Transpose(axes), tuple(split[axis] for axis in axes))
    return reshape(reader, node, turned, shape)


HANDLERS: dict[str, Handler] = {
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Gather": _gather,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Tile": _tile,
}
"""Handlers by operator."""
