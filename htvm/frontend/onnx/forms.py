"""Attributes and constant inputs of nodes that only change shapes or move elements.

Readers differ in the values that a tensor can stand for; these forms are the same for all.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from htvm.frontend.onnx.graph import OnnxNode
from patterns.ops.moves.reshape import Slice


@dataclass(frozen=True, eq=False)
class ReadNode(OnnxNode):
    """A node while it is read, which knows the values of its inputs."""

    @abstractmethod
    def given(self, index: int, role: str) -> tuple[int, ...]:
        """Return the integers of an input that must be constant; messages name its role."""


def axis_of(node: OnnxNode, axis: int, rank: int) -> int:
    """Return an axis, which may count from the end.

    Raises:
        ModelError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise node.damaged(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank


def axes_of(node: ReadNode, index: int) -> tuple[int, ...] | None:
    """Return axes from an attribute, or an input since opset 13; ``None`` if there are none."""
    axes: tuple[int, ...] | None = None
    if "axes" in node.attributes:
        axes = node.integers("axes")
    elif node.input(index):
        axes = node.given(index, "axes")
    noop = node.set_attributes.get("noop_with_empty_axes")
    if axes and isinstance(noop, int) and noop == 1:
        node.ignore("noop_with_empty_axes")  # what a reduction over no axis is
    return axes


def _reshaped(node: ReadNode, source: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a Reshape, an input, or an attribute before opset 5.

    Raises:
        ModelError: it does not fit the elements of ``source``.
    """
    target = list(node.given(1, "shape") if node.input(1) else node.integers("shape"))
    if not node.integer("allowzero", 0):
        for axis, size in enumerate(target):
            if size == 0 and axis < len(source):
                target[axis] = source[axis]
    elements, known_elements = math.prod(source), math.prod(size for size in target if size != -1)
    free = target.count(-1)
    fits = known_elements >= 1 and not (
        elements % known_elements if free else elements - known_elements
    )
    if free > 1 or min(target, default=1) < -1 or not fits:
        raise node.damaged(f"a reshape of {list(source)} to {target}")
    return tuple(elements // known_elements if size == -1 else size for size in target)


def _flattened(node: ReadNode, source: Sequence[int]) -> tuple[int, ...]:
    """Return the two sizes of a Flatten.

    Raises:
        ModelError: there is no such axis.
    """
    axis, rank = node.integer("axis", 1), len(source)
    axis = axis if axis == rank else axis_of(node, axis, rank)
    return math.prod(source[:axis]), math.prod(source[axis:])


def _squeezed(node: ReadNode, source: Sequence[int]) -> tuple[int, ...]:
    """Return the shape without some axes of size 1, or without all if none are named.

    Raises:
        ModelError: an axis has another size.
    """
    listed_axes = axes_of(node, 1)
    if listed_axes is None:
        listed_axes = tuple(axis for axis, size in enumerate(source) if size == 1)
    axes = {axis_of(node, axis, len(source)) for axis in listed_axes}
    if any(source[axis] != 1 for axis in axes):
        raise node.damaged(f"axes {sorted(axes)} of shape {list(source)} are not all 1")
    return tuple(size for axis, size in enumerate(source) if axis not in axes)


def _unsqueezed(node: ReadNode, source: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with further axes of size 1.

    Raises:
        ModelError: no axis is named, or one is named twice.
    """
    listed_axes = axes_of(node, 1)
    if listed_axes is None:
        raise node.damaged("attribute or input 'axes' is missing")
    axes = {axis_of(node, axis, len(source) + len(listed_axes)) for axis in listed_axes}
    if len(axes) != len(listed_axes):
        raise node.damaged(f"axes {listed_axes} name one twice")
    shape = list(source)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return tuple(shape)


Reshaped: TypeAlias = Callable[[ReadNode, Sequence[int]], tuple[int, ...]]

RESHAPES: Mapping[str, Reshaped] = {
    "Flatten": _flattened,
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
}
"""Operators that change the shape only: the new shape, given the old one."""


def permuted(node: OnnxNode, source: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """Return the axes of a Transpose, and whether it moves any element.

    Raises:
        ModelError: they are not a permutation.
    """
    rank = len(source)
    axes = node.integers("perm", tuple(reversed(range(rank))))
    if sorted(axes) != list(range(rank)):
        raise node.damaged(f"permutation {axes} of {rank} axes")
    order = [axis for axis in axes if source[axis] != 1]
    return axes, order != sorted(order)


def sliced(node: ReadNode, source: Sequence[int]) -> Slice:
    """Return the elements of a Slice, from inputs or, before opset 10, from attributes.

    Raises:
        ModelError: bounds, axes and steps do not fit together.
        UnsupportedError: they leave no elements.
    """
    rank, steps = len(source), None
    if "starts" in node.attributes:
        starts, ends = node.integers("starts"), node.integers("ends")
    elif not node.input(1) or not node.input(2):
        raise node.damaged("input 1 or 2 is missing", "a Slice needs starts and ends")
    else:
        starts, ends = node.given(1, "range"), node.given(2, "range")
        steps = node.given(4, "range") if node.input(4) else None
    listed_axes = axes_of(node, 3)
    listed_axes = tuple(range(len(starts))) if listed_axes is None else listed_axes
    axes = [axis_of(node, axis, rank) for axis in listed_axes]
    steps = (1,) * len(starts) if steps is None else steps
    counts = {len(starts), len(ends), len(axes), len(set(axes)), len(steps)}
    if len(counts) != 1 or 0 in steps:
        raise node.damaged(f"starts {starts}, ends {ends}, axes {listed_axes}, steps {steps}")
    begin, sizes, strides = [0] * rank, list(source), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        selected = range(source[axis])[slice(start, end, step)]
        if not selected:
            raise node.unsupported(
                f"a slice of {list(source)} that leaves nothing", "tensors have elements here"
            )
        begin[axis], sizes[axis], strides[axis] = selected[0], len(selected), step
    return Slice(tuple(begin), tuple(sizes), tuple(strides))


def padded(node: ReadNode, source: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the widths (before, after) of a Pad for each axis, from inputs or an attribute.

    Raises:
        ModelError: they do not fit the axes.
        UnsupportedError: widths are negative.
    """
    rank = len(source)
    pads = node.integers("pads") if "pads" in node.attributes else node.given(1, "widths")
    named = node.given(3, "axes") if node.input(3) else tuple(range(rank))
    axes = [axis_of(node, axis, rank) for axis in named]
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise node.damaged(f"widths {list(pads)} for {len(axes)} of {rank} axes")
    if min(pads, default=0) < 0:
        raise node.unsupported(f"widths {list(pads)}", "cut with a Slice")
    pairs = dict(zip(axes, zip(pads[: len(axes)], pads[len(axes) :], strict=True), strict=True))
    return tuple(pairs.get(axis, (0, 0)) for axis in range(rank))


def gathered(node: ReadNode, source: Sequence[int]) -> tuple[int, list[int]]:
    """Return the axis of a Gather, and the places along it, from a constant input.

    Raises:
        ModelError: there is no such axis or place.
    """
    indices = node.given(1, "indices")
    axis = axis_of(node, node.integer("axis", 0), len(source))
    size = source[axis]
    places = [index + size * (index < 0) for index in indices]
    if not places or min(places) < 0 or max(places) >= size:
        raise node.damaged(f"indices {[*indices[:8]]} of an axis of {size}")
    return axis, places
