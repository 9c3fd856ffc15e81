"""Where the elements of a tensor come from, through operators that only move them.

What a chain of reshapes, transpositions, slices and concatenations does is not reasoned about: an
array of numbers is sent through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from byoc_dory.layers.layer import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["MOVES", "Arranged", "arranged"]

MOVES = ("concat", "reshape", "slice", "transpose")
"""Kinds of operators that move elements of one tensor, or some."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """The elements of a tensor.

    Attributes:
        origins: the tensors that the elements come from, which no such operator computes.
        origin: which of these, for each element.
        place: its index there, all axes taken together.
        moves: names of the operators between.
    """

    origins: tuple[str, ...]
    origin: Array
    place: Array
    moves: frozenset[str]

    def reshaped(self, *shape: int) -> Arranged:
        """The same in another shape."""
        origin, place = self.origin.reshape(shape), self.place.reshape(shape)
        return Arranged(self.origins, origin, place, self.moves)

    def swapped(self) -> Arranged:
        """The same with the last two axes exchanged."""
        origin, place = self.origin.swapaxes(-1, -2), self.place.swapaxes(-1, -2)
        return Arranged(self.origins, origin, place, self.moves)


def arranged(name: str, shape: tuple[int, ...], graph: Graph) -> Arranged:
    """Where the elements of a tensor of this name and shape come from."""
    numbers: dict[str, int] = {}
    moves: set[str] = set()
    labels = _labels(name, shape, graph, numbers, moves)
    return Arranged(tuple(numbers), labels[0], labels[1], frozenset(moves))


def _labels(
    name: str, shape: tuple[int, ...], graph: Graph, numbers: dict[str, int], moves: set[str]
) -> Array:
    """Number of the origin and place in it, of each element: [2, *shape]."""
    node = graph.nodes.get(name)
    if node is not None and node.kind in MOVES:
        read = zip(node.inputs, node.input_shapes, strict=True)
        if node.kind != "concat" or _is_whole(node):
            moves.add(name)
            return _moved(node, [_labels(part, size, graph, numbers, moves) for part, size in read])
    number = numbers.setdefault(name, len(numbers))
    places = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    return np.stack([np.full_like(places, number), places])


def _is_whole(node: Node) -> bool:
    """Whether the inputs are all parts of a concatenation; one that occurs twice is listed once."""
    return sum(prod(shape) for shape in node.input_shapes) == prod(node.output_shape)


def _moved(node: Node, parts: Sequence[Array]) -> Array:
    """What the operator makes of arrays with one more axis in front."""
    x, attrs = parts[0], node.attrs

    def numbers(role: str) -> tuple[int, ...]:
        values = attrs[role]
        assert isinstance(values, tuple)
        return tuple(int(value) for value in values)

    if node.kind == "transpose":
        return x.transpose(0, *(axis + 1 for axis in numbers("axes")))
    if node.kind == "concat":
        axis = attrs["axis"]
        assert isinstance(axis, int)
        return np.concatenate(parts, axis=axis + 1)
    if node.kind == "slice":
        triples = zip(numbers("begin"), numbers("sizes"), numbers("strides"), strict=True)
        places = [begin + step * np.arange(size) for begin, size, step in triples]
        return x[np.ix_(np.arange(len(x)), *places)]
    return x.reshape(len(x), *node.output_shape)
