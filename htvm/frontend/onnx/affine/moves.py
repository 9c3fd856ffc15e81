"""Parts, repetitions, blocks and choices: more moves of elements of tensors of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.pointwise import quantized_constant
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of, split
from htvm.frontend.onnx.affine.shapes import (
    Movable,
    in_shape,
    movable_of,
    move,
    moved,
    reshape,
    tensor_of,
)
from htvm.frontend.onnx.affine.values import Constant, Quantized, Real, Sums, Value, View
from htvm.frontend.operators import Activation
from patterns.ops.broadcast import broadcast
from patterns.ops.float32.combine import RealArgExtreme
from patterns.ops.integer.reduction import ArgExtreme, Which
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Gather, Select, Take
from patterns.ops.moves.reshape import Slice, Transpose


def _take_elements(node: NodeReader, tensor: Movable, axis: int, places: Sequence[int]) -> Movable:
    """Return chosen elements along an axis; as a slice, if they are evenly spread."""
    if not isinstance(places, range):
        step = places[1] - places[0] if len(places) > 1 else 1
        even = range(places[0], places[0] + step * len(places), step or 1)
        places = even if list(even) == places else places
    if places == range(tensor.shape[axis]):
        return tensor
    if isinstance(places, range):
        return move(node, tensor, Slice.along(tensor.shape, axis, places))
    return move(node, tensor, Take(axis, tuple(places)))


def _gather(node: NodeReader) -> Value:
    computed = node.value(1)
    if isinstance(computed, Sums):
        return _gathered(node, computed.activation)
    tensor, shape = movable_of(node, 0), node.array(1, "indices").shape
    source = tensor.shape
    axis, places = forms.gathered(node, source)
    taken = _take_elements(node, tensor, axis, places)
    return reshape(node, taken, (*source[:axis], *shape, *source[axis + 1 :]))


def _gathered(node: NodeReader, places: Activation) -> Value:
    """Return the elements of a tensor, or of a constant table, at int32 places.

    Raises:
        UnsupportedError: a table holds integers beyond int32.
    """
    value = node.value(0)
    if isinstance(value, Constant):
        return _looked_up(node, value, places)
    tensor = tensor_of(node, 0)
    source, step = tensor.activation, node.reader.steps.get(tensor.activation)
    axis = forms.axis_of(node, node.integer("axis", 0), len(source.shape))
    op = Gather(axis, tensor.step.zero_point if isinstance(tensor, View) else 0)
    made = node.write(op, source, places, step=step)
    return replace(tensor, activation=made)


def _looked_up(node: NodeReader, constant: Constant, places: Activation) -> Value:
    source = constant.data.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(source))
    if not constant.data.size:
        raise node.unsupported(f"a table of shape {list(source)}", "one with elements")

    def written(table: Array, zero_point: int = 0) -> Activation:
        op = Gather(axis, zero_point, np.asarray(table, order="C"))
        return node.write(op, places)

    dtype, scale = constant.data.dtype, constant.scale
    if scale is not None and scale.size == 1 and dtype.name in ("int8", "uint8"):
        table, step = quantized_constant(node, constant)
        made = written(table, step.zero_point)
        node.reader.steps[made] = step
        return View(made, step, dtype.name)
    if scale is None and dtype.name in ("int8", "uint8"):
        moved = constant.data.astype("int64") - offset_of(dtype.name)
        return Quantized(written(moved.astype("int8")), dtype.name)
    if scale is None and dtype.name in ("int16", "int32", "int64"):
        narrow = constant.data.astype("int32")
        if (narrow != constant.data).any():
            raise node.unsupported("a table of integers beyond int32")
        return Sums(written(narrow), dtype.name)
    return Real(written(constant.real.astype("float32")))


def _split_parts(node: NodeReader) -> list[Value]:
    tensor = movable_of(node, 0)
    source = tensor.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(source))
    count, size = len(node.outputs), source[axis]
    declared = node.integer("num_outputs", count)
    if "split" in node.attributes:
        sizes = list(node.integers("split"))
    elif node.input(1):
        sizes = [*node.given(1, "sizes")]
    else:
        each = -(-size // count)
        sizes = [min(each, size - each * at) for at in range(count)]
    if declared != count or len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        raise node.damaged(f"{count} parts of {sizes} of an axis of {size}")
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        _take_elements(node, tensor, axis, range(start, start + part))
        for start, part in zip(starts, sizes, strict=False)
    ]


def _tile(node: NodeReader) -> Value:
    tensor = movable_of(node, 0)
    repeats = [*node.given(1, "repeats")]
    source = tensor.shape
    if len(repeats) != len(source) or min(repeats, default=1) < 1:
        raise node.damaged(f"repeats {repeats} of {list(source)}")
    for axis, (size, count) in enumerate(zip(source, repeats, strict=True)):
        if count > 1:
            node.reader.graph.budget.spend_places(size * count, node.where)
            tensor = _take_elements(node, tensor, axis, list(range(size)) * count)
    return tensor


def _expand(node: NodeReader) -> Value:
    tensor = movable_of(node, 0)
    wanted = node.given(1, "shape")
    node.check_axes(wanted)
    source = tensor.shape
    try:
        shape = np.broadcast_shapes(source, wanted)
    except ValueError:
        raise node.damaged(f"an expansion of {list(source)} to {list(wanted)}") from None
    if min(shape, default=1) < 1:
        raise node.damaged(f"an expansion of {list(source)} to {list(wanted)}")
    tensor = reshape(node, tensor, (*(1,) * (len(shape) - len(source)), *source))
    for axis, (size, after) in enumerate(zip(tensor.shape, shape, strict=True)):
        if size != after:
            node.reader.graph.budget.spend_places(after, node.where)
            tensor = _take_elements(node, tensor, axis, [0] * after)
    return tensor


def _blocks(node: NodeReader) -> tuple[Movable, tuple[int, ...], int]:
    tensor, block = movable_of(node, 0), node.integer("blocksize")
    shape = tensor.shape
    if len(shape) != 4 or block < 1:
        raise node.damaged(f"blocks of {block} of {list(shape)}")
    return tensor, shape, block


def _depth_to_space(node: NodeReader) -> Value:
    tensor, (n, channels, y, x), block = _blocks(node)
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD") or channels % block**2:
        raise node.damaged(f"mode '{mode}', blocks of {block} and {channels} channels")
    c = channels // block**2
    parts, axes = ((block, block, c), (0, 3, 4, 1, 5, 2))
    if mode == "CRD":
        parts, axes = (c, block, block), (0, 1, 4, 2, 5, 3)
    return _rearranged(node, tensor, (n, *parts, y, x), axes, (n, c, y * block, x * block))


def _space_to_depth(node: NodeReader) -> Value:
    tensor, (n, c, y, x), block = _blocks(node)
    mode = node.text("mode", "DCR")
    if y % block or x % block or mode != "DCR":
        raise node.unsupported(f"blocks of {block} of {[n, c, y, x]} in mode '{mode}'")
    split = (n, c, y // block, block, x // block, block)
    shape = (n, c * block**2, y // block, x // block)
    return _rearranged(node, tensor, split, (0, 3, 5, 1, 2, 4), shape)


def _rearranged(
    node: NodeReader,
    tensor: Movable,
    split: tuple[int, ...],
    axes: tuple[int, ...],
    shape: tuple[int, ...],
) -> Movable:
    apart = reshape(node, tensor, split)
    turned = move(node, apart, Transpose(axes))
    return reshape(node, turned, shape)


def _place(node: NodeReader, which: Which) -> Value:
    """The place along an axis, which the file has as int64 and the integer form as int32."""
    tensor = tensor_of(node, 0)
    if isinstance(tensor, Sums):
        raise node.unsupported(
            f"places among sums of {tensor.activation.dtype}", "quantize them before"
        )
    shape = tensor.activation.shape
    axis = forms.axis_of(node, node.integer("axis", 0), len(shape))
    before, length, after = shape[:axis], shape[axis], shape[axis + 1 :]
    keeps_dims = bool(node.integer("keepdims", 1))
    if not keeps_dims and len(shape) == 1:
        raise node.unsupported("a single place without axes", "set keepdims")
    last = bool(node.integer("select_last_index", 0))
    if last:
        backwards = range(length - 1, -1, -1)
        tensor = moved(node, tensor, Slice.along(shape, axis, backwards))
    if keeps_dims:
        # The axis that remains is put behind the one that goes.
        tensor = in_shape(node, tensor, (*before, length, 1, *after))
    source = tensor.activation
    op = RealArgExtreme(which, axis) if isinstance(tensor, Real) else ArgExtreme(which, axis)
    placed = node.write(op, source)
    if last:
        one, end = np.full((), -1, "int32"), np.full((), length - 1, "int32")
        back = Rescale(one, end, 0, (0, length - 1), "int32", bound=length)
        placed = node.write(back, placed)
    return Sums(placed, "int64")


def _select(node: NodeReader) -> Value:
    """Elements of one tensor or another in reals, by a constant condition."""
    condition = node.value(0)
    if not isinstance(condition, Constant):
        raise node.unsupported(
            "its condition is computed at run time", "make it constant, or multiply by a mask"
        )
    mask = np.asarray(condition.data != 0)
    operands = [node.operand(index, infinite=True) for index in (1, 2)]
    shape = broadcast(mask.shape, *(item.shape for item in operands))
    tensors, (a, b) = split(operands)
    if not tensors:
        raise node.unsupported("both operands are constant", "fold constants when exporting")
    for chosen, index in ((mask.all(), 0), (not mask.any(), 1)):
        operand = operands[index]
        if chosen and isinstance(operand, Activation) and operand.shape == shape:
            return node.value(index + 1)
    made = Select(np.asarray(mask.astype("int8"), order="C"), a, b)
    return Real(node.write(made, *tensors))


HANDLERS: dict[str, Handler] = {
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Gather": _gather,
    "SpaceToDepth": _space_to_depth,
    "Split": _split_parts,
    "Tile": _tile,
    "ArgMax": partial(_place, which="maximum"),
    "ArgMin": partial(_place, which="minimum"),
    "Where": _select,
}
"""Handlers by operator."""
