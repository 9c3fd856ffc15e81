"""Finding sums and products of two tensors, with the functions of bytes before them.

A product of integers and its requantization are one layer.  So are a sum of one row with a
conversion of an operand, or a product with an activation: for so few elements, starting a kernel
takes longer than the kernel itself.  In larger tensors, functions of bytes stay layers of their
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from byoc_dory.layers import MulShift, combination_layer
from byoc_dory.layers.rowwise import TableMap
from patterns.dispatch.groups import Group, byte_function
from patterns.op import TensorType
from patterns.ops.add import Add
from patterns.ops.integer.combine import Combine
from patterns.ops.integer.rescale import Rescale
from patterns.ops.rows import matrix_of

if TYPE_CHECKING:
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def combination_at(node: Node, graph: Graph) -> Group | None:
    """Return the sum or product that an operator ends; ``None`` if it ends none."""
    match node.op:
        case Add(requant=MulShift() as requant, clip=clip):
            found = _Combination(graph, node, node, "add")
            return found.group(requant, clip, least=2) if found.is_row else None
        case Rescale(requantization=MulShift() as requant, clip=clip):
            inner = graph.made_by(node.inputs[0], Combine)
            if inner is None or not graph.is_inner(inner.name, {node.name}):
                return None
            function = _function(inner)
            if function is not None:
                return _Combination(graph, node, inner, function).group(requant, clip, least=1)
    return None


def _function(node: Node) -> Literal["add", "multiply"] | None:
    """Return the function of two operands; ``None`` if it is another, or one is constant."""
    op = node.op
    if not isinstance(op, Combine) or op.b is not None or op.function == "subtract":
        return None
    return op.function


@dataclass(frozen=True, eq=False)
class _Combination:
    """A combination of two tensors.

    Attributes:
        graph: all operators.
        end: the operator that computes the result.
        inner: the one that reads the operands.
        function: what it computes.
    """

    graph: Graph
    end: Node
    inner: Node
    function: Literal["add", "multiply"]

    @property
    def is_row(self) -> bool:
        """Whether it has a single row."""
        shape = self.end.output_shape
        return len(shape) < 4 and prod(shape[:-1]) == 1

    def group(self, requant: MulShift, clip: tuple[int, int], least: int) -> Group | None:
        """Return the layer, if it consists of at least so many operators."""
        node = self.inner
        shapes = {*node.input_shapes, self.end.output_shape}
        dtypes = {*node.input_dtypes, self.end.output_dtype}
        if len(set(node.inputs)) != 2 or len(shapes) != 1 or dtypes != {"int8"}:
            return None
        parts = {self.end.name, node.name}
        tables: list[TableMap | None] = []
        sources = []
        for name in node.inputs:
            source = self._behind_function(name, parts) if self.is_row else None
            tables.append(None if source is None else source[0])
            sources.append(name if source is None else source[1])
        if len(parts) < least or len(set(sources)) != 2:
            return None
        kind = TensorType(self.end.output_shape, "int8")
        a, b = (matrix_of(name, kind) for name in sources)
        layer = combination_layer(
            self.end.name, a, b, self.function, (tables[0], tables[1]), requant=requant, clip=clip
        )
        ordered = tuple(name for name in self.graph.nodes if name in parts)
        return Group(self.function, layer, ordered)

    def _behind_function(self, name: str, parts: set[str]) -> tuple[TableMap, str] | None:
        """Return the function that only this combination reads, and what it reads."""
        node = self.graph.nodes.get(name)
        found = None if node is None else byte_function(node, self.graph)
        if found is None or found.dtype != "int8":
            return None
        own = {*found.parts, self.inner.name}
        if not all(self.graph.is_inner(part, own) for part in found.parts):
            return None
        source = self.graph.nodes.get(found.source)
        shape = self.graph.nodes[found.parts[0]].input_shapes[0]
        if shape != self.end.output_shape or (source is not None and source.name in parts):
            return None
        parts.update(found.parts)
        return TableMap(found.table), found.source
