"""Tracing where the elements of a tensor come from, through operators that only move them.

A chain of reshapes, transpositions, slices and concatenations is not analysed symbolically: it is
run on an array of element indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True, eq=False)
class Arranged:
    """The elements of a tensor, and where they come from.

    Attributes:
        origins: names of the tensors that the elements come from, which are not computed by moves.
        origin: index of the origin, for each element.
        place: index in the flattened origin, for each element.
        moves: names of the operators in between.
    """

    origins: tuple[str, ...]
    origin: Array
    place: Array
    moves: frozenset[str]

    def reshaped(self, *shape: int) -> Arranged:
        """Return the same elements in another shape."""
        origin, place = self.origin.reshape(shape), self.place.reshape(shape)
        return Arranged(self.origins, origin, place, self.moves)

    def swapped(self) -> Arranged:
        """Return the same elements with the last two axes exchanged."""
        origin, place = self.origin.swapaxes(-1, -2), self.place.swapaxes(-1, -2)
        return Arranged(self.origins, origin, place, self.moves)


def arranged(name: str, shape: tuple[int, ...], graph: Graph) -> Arranged:
    """Trace the elements of a tensor with this name and shape."""
    numbers: dict[str, int] = {}
    moves: set[str] = set()
    labels = _labels(name, shape, graph, numbers, moves)
    return Arranged(tuple(numbers), labels[0], labels[1], frozenset(moves))


def _labels(
    name: str, shape: tuple[int, ...], graph: Graph, numbers: dict[str, int], moves: set[str]
) -> Array:
    """Return, for each element, the number of its origin and its index there: [2, *shape]."""
    node = graph.nodes.get(name)
    if node is not None and is_arranged(node) and _is_whole(node):
        read = zip(node.inputs, node.input_shapes, strict=True)
        parts = [_labels(part, size, graph, numbers, moves) for part, size in read]
        moves.add(name)
        if isinstance(node.op, Reshape):
            return parts[0].reshape(2, *node.output_shape)
        # Move the two labels of an element one after the other.
        assert isinstance(node.op, Move)
        return np.stack([node.op.moved([part[i] for part in parts], -1) for i in (0, 1)])
    number = numbers.setdefault(name, len(numbers))
    places = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    return np.stack([np.full_like(places, number), places])


def is_arranged(node: Node) -> bool:
    """Whether the operator only moves elements, without filling in any."""
    return isinstance(node.op, Reshape) or (
        isinstance(node.op, Move) and not isinstance(node.op, Filling)
    )


def _is_whole(node: Node) -> bool:
    """Whether the inputs are all parts of a concatenation; a repeated part is listed only once."""
    if not isinstance(node.op, Concat):
        return True
    return sum(prod(shape) for shape in node.input_shapes) == prod(node.output_shape)
