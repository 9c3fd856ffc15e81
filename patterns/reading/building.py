"""`GraphBuilder`: a `Graph` made operator by operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from byoc_dory.errors import HtvmError
from patterns.reading.graph import Graph
from patterns.reading.layout import with_layouts
from patterns.reading.node import Node, node_of
from patterns.reading.ranges import with_ranges

if TYPE_CHECKING:
    from patterns.op import Op, TensorType

__all__ = ["GraphBuilder"]


class GraphBuilder:
    """Takes operators in execution order; tensors are known by their names.

    Args:
        inputs: name and type of each tensor that the network is given.
    """

    def __init__(self, inputs: Iterable[tuple[str, TensorType]]) -> None:
        self._inputs = tuple(inputs)
        self._nodes: list[Node] = []
        self._types = dict(self._inputs)

    @property
    def types(self) -> Mapping[str, TensorType]:
        """The type of each tensor so far."""
        return self._types

    @property
    def last(self) -> Node:
        """The operator that was applied last."""
        return self._nodes[-1]

    def apply(
        self, op: Op, inputs: Sequence[str], name: str, result: TensorType | None = None
    ) -> str:
        """Apply an operator to tensors; return the name of the result, which is the operator's.

        Args:
            op: the operator.
            inputs: names of the tensors that it reads.
            name: name of the operator.
            result: type of its result, if it is known.

        Raises:
            IntegerFormError: the tensors do not fit the operator.
            UnsupportedError: the result could not be computed exactly.
        """
        read = [(each, self._types[each]) for each in inputs]
        try:
            result = result or op.result_of([kind for _, kind in read])
        except HtvmError as error:
            where = error.where or f"operator '{name}'"
            raise type(error)(error.what, where=where, hint=error.hint) from error
        self._nodes.append(node_of(name, op, read, result))
        self._types[name] = result
        return name

    def graph(self, results: Sequence[str]) -> Graph:
        """Return the graph of what was applied, with layouts and ranges as its operators tell."""
        nodes = with_ranges(with_layouts(self._nodes))
        return Graph(nodes, tuple(results), self._inputs)
