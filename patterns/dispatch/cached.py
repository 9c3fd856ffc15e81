"""Finding attention over keys and values that are given, such as a cache, from its softmax.

The scores are products of queries with keys, requantized; any functions of bytes may follow, then
the sum with a mask, a softmax by table, functions of bytes, and the requantized product with the
values.  Where the keys are a concatenation of a cache with the key of the last position, and
nothing else reads it, the two are read where they are, and nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import (
    AttentionOperands,
    MulShift,
    Tensor,
    Weighing,
    cached_attention_layer,
    matrix,
)
from byoc_dory.layers.matrices import Rows
from byoc_dory.layers.rowwise import TableMap, TableSoftmax
from patterns.dispatch.groups import Group, byte_function
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Concat

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

_IDENTITY = np.arange(256, dtype="uint8")


def cached_attention_around(softmax: Node, graph: Graph) -> Group | None:
    """Return the attention that a softmax belongs to; ``None`` if there is none."""
    function = softmax.layer.function if isinstance(softmax.layer, Rows) else None
    if not isinstance(function, TableSoftmax):
        return None
    return _Finder(graph, softmax, function).group()


@dataclass
class _Finder:
    """Follows a softmax to the products around it.

    Attributes:
        graph: all operators.
        softmax, function: the softmax.
        parts: the operators found so far.
    """

    graph: Graph
    softmax: Node
    function: TableSoftmax
    parts: set[str] = field(default_factory=set[str])

    def group(self) -> Group | None:
        """Return the attention; ``None`` if the softmax does not belong to one."""
        self.parts.add(self.softmax.name)
        mixture = self._mixture()
        masked = self.graph.made_by(self.softmax.inputs[0], Rescale)
        total = masked and self.graph.made_by(masked.inputs[0], Combine)
        if mixture is None or masked is None or total is None or len(total.inputs) != 2:
            return None
        product, after = mixture
        end = self._requantized(product.name)
        before, scores = self._functions(total.inputs[0])
        similarity = scores and self.graph.made_by(scores.inputs[0], IntegerMatmul)
        if end is None or scores is None or similarity is None or not _adds(total):
            return None
        self.parts |= {product.name, end.name, masked.name, total.name, scores.name}
        self.parts.add(similarity.name)
        mask, source = self._mask(total.inputs[1])
        requants = [_requant(node) for node in (scores, masked, end)]
        found = self._operands(similarity, product, source, total)
        if None in requants or found is None or not self._closed(end):
            return None
        operands, heads = found
        (first, clip), (second, masked_clip), (last, out_clip) = (each for each in requants if each)
        weighing = Weighing(
            _numbers(first), clip, TableMap(before), TableMap(mask), _numbers(second), masked_clip,
            self.function, TableMap(after),
        )  # fmt: skip
        layer = cached_attention_layer(
            end.name, operands, heads, weighing, requant=last, clip=out_clip
        )
        ordered = tuple(name for name in self.graph.nodes if name in self.parts)
        return Group("attention", layer, ordered)

    def _mixture(self) -> tuple[Node, Array] | None:
        """Return the product that reads the weights, and the function of bytes in between."""
        table, name = _IDENTITY, self.softmax.name
        while len(readers := self.graph.read_by(name)) == 1:
            (node,) = readers
            if isinstance(node.op, IntegerMatmul) and node.inputs[0] == name:
                return (node, table) if node.input_dtypes[0] == "int8" else None
            function = byte_function(node, self.graph)
            if function is None:
                return None
            table = function.table[table]
            self.parts |= set(function.parts)
            name = node.name
        return None

    def _requantized(self, product: str) -> Node | None:
        readers = self.graph.read_by(product)
        return readers[0] if len(readers) == 1 and isinstance(readers[0].op, Rescale) else None

    def _functions(self, name: str) -> tuple[Array, Node | None]:
        """Return the functions of bytes behind the scores, and the requantization of these."""
        table = _IDENTITY
        while (node := self.graph.nodes.get(name)) is not None:
            if isinstance(node.op, Rescale) and self.graph.made_by(node.inputs[0], IntegerMatmul):
                return table, node
            function = byte_function(node, self.graph)
            if function is None or function.dtype != "int8":
                break
            table = table[function.table]
            self.parts |= set(function.parts)
            name = function.source
        return table, None

    def _mask(self, name: str) -> tuple[Array, str]:
        """Return the function of the mask's bytes that only this attention reads, and the mask."""
        node = self.graph.nodes.get(name)
        function = None if node is None else byte_function(node, self.graph)
        if function is None or function.dtype != "int8":
            return _IDENTITY, name
        if self.graph.is_result(name) or len(self.graph.read_by(name)) != 1:
            return _IDENTITY, name
        self.parts |= set(function.parts)
        return function.table, function.source

    # -------------------------------------------------------------------------- operands

    def _operands(
        self, similarity: Node, mixture: Node, mask: str, total: Node
    ) -> tuple[AttentionOperands, int] | None:
        """Return what the attention reads, and the number of heads."""
        if not _is(similarity, transpose_b=True) or not _is(mixture, transpose_b=False):
            return None
        *batch, queries, size = similarity.input_shapes[0]
        heads, positions = prod(batch), similarity.output_shape[-1]
        for node in (similarity, mixture):
            if any(prod(shape[:-2]) != heads for shape in node.input_shapes):
                return None
        shape = total.input_shapes[1]
        rows = queries if prod(shape) == queries * positions else 1
        if shape[-1] != positions or prod(shape) != rows * positions:
            return None
        if rows > 1 and shape[-2] != queries:
            return None
        dtypes = {*similarity.input_dtypes, mixture.input_dtypes[1], total.input_dtypes[1]}
        if dtypes != {"int8"} or mixture.output_shape[-1] != size:
            return None
        keys = self._apart(similarity.inputs[1], similarity, (heads, positions, size))
        values = self._apart(mixture.inputs[1], mixture, (heads, positions, size))
        if len(keys) != len(values):
            keys, values = (
                (matrix(node.inputs[1], heads * positions, size),) for node in (similarity, mixture)
            )
        else:
            self.parts |= {node.inputs[1] for node in (similarity, mixture) if len(keys) > 1}
        operands = AttentionOperands(
            keys[0], values[0], matrix(similarity.inputs[0], heads * queries, size),
            matrix(mask, rows, positions), *keys[1:], *values[1:],
        )  # fmt: skip
        return operands, heads

    def _apart(self, name: str, reader: Node, shape: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """Return the parts of keys or values: all but the last position, and this one."""
        heads, positions, size = shape
        node = self.graph.nodes.get(name)
        if node is not None and _joins_last(node) and self.graph.is_inner(name, {reader.name}):
            cache, own = node.inputs
            return matrix(cache, heads * (positions - 1), size), matrix(own, heads, size)
        return (matrix(name, heads * positions, size),)

    def _closed(self, end: Node) -> bool:
        inner = self.parts - {end.name}
        return all(self.graph.is_inner(name, self.parts) for name in inner)


def _adds(node: Node) -> bool:
    return isinstance(node.op, Combine) and node.op.function == "add"


def _joins_last(node: Node) -> bool:
    """Whether it appends one row to matrices."""
    if not isinstance(node.op, Concat) or len(set(node.inputs)) != 2 or len(node.inputs) != 2:
        return False
    rank = len(node.output_shape)
    return node.op.axis % rank == rank - 2 and node.input_shapes[1][-2] == 1


def _is(node: Node, *, transpose_b: bool) -> bool:
    return isinstance(node.op, IntegerMatmul) and node.op.transpose_b == transpose_b


def _requant(node: Node) -> tuple[MulShift, tuple[int, int]] | None:
    op = node.op
    if not isinstance(op, Rescale) or node.output_dtype != "int8":
        return None
    return None if op.requantization is None else (op.requantization, op.clip)


def _numbers(requant: MulShift) -> tuple[int, int, int]:
    return requant.mul[0], requant.add[0], requant.shift[0]
