"""`GraphBuilder`: a `Graph` made operator by operator; `finished`: of operators that are there.

Layouts and ranges are what all operators together tell.  A core with fewer than eight bits takes a
layer only if its inputs provably fit.  A clip bounds its result; the sums of a layer with one right
shift are also bounded by its weights, often more tightly than by its clip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import HtvmError
from patterns.op import INT8, Range, union
from patterns.reading.graph import Graph
from patterns.reading.layout import with_layouts
from patterns.reading.node import Node, node_of

if TYPE_CHECKING:
    from patterns.op import Op, TensorType


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
        return finished(self._nodes, results, self._inputs)


def finished(
    nodes: Sequence[Node], results: Sequence[str], inputs: Sequence[tuple[str, TensorType]]
) -> Graph:
    """Return the graph of operators in execution order, with layouts and ranges as they tell.

    Args:
        nodes: the operators.
        results: names of the tensors that it returns.
        inputs: name and type of each tensor that it is given.
    """
    return Graph(_with_ranges(with_layouts(nodes)), tuple(results), tuple(inputs))


def _with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the operators, with the ranges of their inputs in their layers."""
    known: dict[str, Range] = {}
    result = []
    for node in nodes:
        inputs = [known.get(name, INT8) for name in node.inputs]
        known[node.output] = _range_of(node, inputs)
        if node.layer is not None:
            node = replace(node, layer=replace(node.layer, input_range=union(inputs)))
        result.append(node)
    return tuple(result)


def _range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """Return the range of an operator's result."""
    if node.scaled is not None and set(node.input_dtypes) != {"int8"}:
        return node.scaled.clip
    return node.op.range(inputs)
