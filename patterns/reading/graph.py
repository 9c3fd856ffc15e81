"""`Graph`: operators by name, and who reads what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patterns.reading.node import Node

__all__ = ["Graph", "is_plain_reshape"]


class Graph:
    """The operators of a module in the integer form.

    Args:
        nodes: in execution order.
        results: names of the tensors the module returns.

    Attributes:
        nodes: by name, in execution order.
        readers: the operators that read a tensor, in execution order.
    """

    def __init__(self, nodes: Sequence[Node], results: Sequence[str]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.readers: dict[str, list[Node]] = {}
        for node in nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)
        self._results = frozenset(results)

    def is_result(self, name: str) -> bool:
        """Whether the module returns the tensor."""
        return name in self._results

    def read_by(self, name: str) -> tuple[Node, ...]:
        """The operators that read a tensor."""
        return tuple(self.readers.get(name, ()))

    def is_inner(self, name: str, parts: frozenset[str] | set[str]) -> bool:
        """Whether nobody but ``parts`` reads the tensor."""
        return not self.is_result(name) and all(node.name in parts for node in self.read_by(name))

    def made_by(self, name: str, *kinds: str) -> Node | None:
        """The operator that computes the tensor, if it is of one of these kinds."""
        node = self.nodes.get(name)
        return node if node is not None and node.kind in kinds else None

    def behind_reshapes(self, name: str) -> tuple[str, tuple[str, ...]]:
        """The tensor that plain reshapes made this one from, and these reshapes, last first."""
        passed = []
        while (node := self.nodes.get(name)) is not None and is_plain_reshape(node):
            passed.append(name)
            name = node.inputs[0]
        return name, tuple(passed)


def is_plain_reshape(node: Node) -> bool:
    """Whether it only adds or drops leading axes of one element."""
    if node.kind != "reshape":
        return False
    return _without_ones(node.input_shapes[0]) == _without_ones(node.output_shape)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape from its first axis of more than one element on; the last axis always stays."""
    first = next((at for at, size in enumerate(shape[:-1]) if size > 1), len(shape) - 1)
    return shape[max(first, 0) :]
