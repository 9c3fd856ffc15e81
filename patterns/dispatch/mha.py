"""Finding multi-head attention in a graph of operators, starting from its softmax.

The scores are a product of queries and keys with one requantization, read by the softmax; the
context is a product of the softmax and the values, requantized.  Queries, keys and values are
columns of products of one tensor with constants: one product for each of the three, one for all, or
one per head.  The contexts of all heads go into one product with a constant, or each into its own,
with accumulated results.  Operators that move elements may occur anywhere in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Attention, Projection, mha_layer
from patterns.dispatch.groups import Group
from patterns.dispatch.heads import (
    AttentionCore,
    Obstacle,
    arranged,
    columns_of_heads,
    core_of,
    head_product,
    is_arranged,
    of_rows,
    plain_layer,
    product_of,
)
from patterns.op import INT8, Work
from patterns.ops.dense import Linear
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.elementwise import Accumulate

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True)
class NoAttention:
    """A softmax whose surroundings look like attention but do not form a layer.

    Attributes:
        softmax: name of the softmax.
        reason: one sentence on what prevents it.
    """

    softmax: str
    reason: str


def attention_around(softmax: Node, graph: Graph) -> Group | NoAttention | None:
    """Return the attention that a softmax belongs to, or what prevents it; ``None`` in others."""
    if product_of(softmax, graph) is None:
        return None  # a classifier's softmax
    try:
        return _Finder(graph, softmax).group()
    except Obstacle as obstacle:
        return NoAttention(softmax.name, str(obstacle))


class _Finder:
    """Follows one softmax to the attention it belongs to."""

    def __init__(self, graph: Graph, softmax: Node) -> None:
        self._graph = graph
        self._softmax = softmax

    def group(self) -> Group:
        """Return the attention.

        Raises:
            Obstacle: the softmax does not belong to an attention layer.
        """
        first = core_of(self._softmax, self._graph)
        end, outputs, passed = self._outputs(first.context)
        parts = {end.name, *passed, *(node.name for node in outputs)}
        cores: dict[str, AttentionCore] = {first.context.name: first}
        heads = []
        for node in outputs:
            found = arranged(node.inputs[0], node.input_shapes[0], self._graph)
            parts |= found.moves
            for name in found.origins:
                if name not in cores:
                    cores[name] = self._other_core(name)
            heads.append(columns_of_heads(node, found, cores))
        for core in cores.values():
            parts |= core.parts
        attention, rows, products = self._attention(end, outputs, heads, cores)
        parts |= {product.name for product in products}
        source, reshapes = self._source(products)
        parts |= reshapes
        self._check_closed(parts, end)
        ordered = tuple(name for name in self._graph.nodes if name in parts)
        first_layer = products[0].layer
        assert first_layer is not None
        tensor = replace(first_layer.inputs[0], name=source)
        if tensor.shape[1] != rows:
            raise Obstacle(f"{rows} queries of '{source}', which has {tensor.shape[1]} rows")
        return Group("mha", mha_layer(end.name, tensor, attention), ordered)

    def _other_core(self, name: str) -> AttentionCore:
        """Return the core that computes the context of another head."""
        node = self._graph.made_by(name, Rescale)
        product = None if node is None else self._graph.made_by(node.inputs[0], IntegerMatmul)
        softmax = None
        if product is not None:
            made = self._graph.behind_reshapes(product.inputs[0])[0]
            softmax = self._graph.nodes.get(made)
        if softmax is None or softmax.op.work is not Work.SOFTMAX:
            raise Obstacle(f"'{name}' is joined to the heads, but is not one")
        return core_of(softmax, self._graph)

    # -------------------------------------------------------------------------- output products

    def _outputs(self, context: Node) -> tuple[Node, list[Node], frozenset[str]]:
        """Return the last operator, the output products, and the reshapes in between."""
        found = self._products_behind(context)
        sums = {self._sum_behind(node) for node in found}
        total = self._graph.nodes.get(next(iter(sums)) or "") if len(sums) == 1 else None
        if total is not None:
            behind = [self._graph.behind_reshapes(name) for name in total.inputs]
            parts = [self._graph.made_by(name, Linear) for name, _ in behind]
            products = [node for node in parts if node is not None]
            passed = frozenset(name for _, names in behind for name in names)
            if len(products) == len(total.inputs):
                return total, products, passed
        if len(found) != 1:
            names = ", ".join(f"'{node.name}'" for node in found)
            raise Obstacle(f"{len(found)} products read the heads, unaccumulated: {names}")
        return found[0], found, frozenset()

    def _products_behind(self, context: Node) -> list[Node]:
        """Return the products with constants that read a context, through moves."""
        waiting = [context.name]
        found: dict[str, Node] = {}
        if self._graph.is_result(context.name):
            raise Obstacle(f"the heads '{context.name}' are a result of the model")
        while waiting:
            name = waiting.pop()
            for node in self._graph.read_by(name):
                if isinstance(node.op, Linear):
                    found[node.name] = node
                elif is_arranged(node):
                    waiting.append(node.name)
                else:
                    raise Obstacle(f"{node.kind} '{node.name}' reads the heads")
        if not found:
            raise Obstacle("no product with constants reads the heads")
        return list(found.values())

    def _sum_behind(self, product: Node) -> str | None:
        """Return the accumulation that reads an output product, through plain reshapes."""
        name = product.name
        while len(readers := self._graph.read_by(name)) == 1:
            if isinstance(readers[0].op, Accumulate):
                return readers[0].name
            if self._graph.behind_reshapes(readers[0].name)[0] != product.name:
                return None
            name = readers[0].name
        return None

    # -------------------------------------------------------------------------- putting together

    def _attention(
        self,
        end: Node,
        outputs: list[Node],
        columns: list[dict[tuple[str, int], Array]],
        cores: dict[str, AttentionCore],
    ) -> tuple[Attention, int, list[Node]]:
        first = next(iter(cores.values()))
        for core in cores.values():
            if core.scores != first.scores or core.rows != first.rows:
                raise Obstacle(f"the heads of '{core.context.name}' are requantized unlike others")
        joined = not isinstance(end.op, Accumulate)
        order = [head for each in columns for head in each]
        expected = {(name, at) for name, core in cores.items() for at in range(core.batch)}
        if len(order) != len(set(order)) or set(order) != expected:
            raise Obstacle(f"the output products read {len(order)} of {len(expected)} heads")
        if not joined and any(len(each) != 1 for each in columns):
            raise Obstacle("an accumulated product reads several heads")
        sides: dict[str, list[Projection]] = {}
        products: dict[str, Node] = {}
        for role in ("query", "key", "value"):
            sides[role] = []
            for name, at in order:
                part, used = head_product(getattr(cores[name], role), at, role, self._graph)
                sides[role].append(part)
                products |= {node.name: node for node in used}
        sizes = {role: {part.weight.shape[0] for part in parts} for role, parts in sides.items()}
        if len(set.union(*sizes.values())) != 1:
            raise Obstacle(f"heads of several sizes: {sizes}")
        made = []
        for node, each in zip(outputs, columns, strict=True):
            layer = plain_layer(node)
            taken = np.concatenate(list(each.values()))
            part = of_rows(layer, np.arange(layer.K), node.name)
            made.append(replace(part, weight=np.asarray(part.weight[:, taken], order="C")))
        total = None
        if isinstance(end.op, Accumulate):
            total = (end.op.mul, end.op.shift, end.op.add)
            if end.op.clip != INT8:
                raise Obstacle(f"the sum of the heads is clipped to {end.op.clip}")
        attention = Attention(
            tuple(sides["query"]), tuple(sides["key"]), tuple(sides["value"]), first.scores,
            tuple(made), total,
        )  # fmt: skip
        return attention, first.rows, list(products.values())

    def _source(self, products: list[Node]) -> tuple[str, frozenset[str]]:
        """Return the tensor that all the products read, and plain reshapes in between."""
        direct = {node.inputs[0] for node in products}
        if len(direct) == 1:
            return direct.pop(), frozenset()
        behind = [self._graph.behind_reshapes(name) for name in direct]
        origins = {name for name, _ in behind}
        if len(origins) != 1:
            names = ", ".join(f"'{name}'" for name in sorted(origins))
            raise Obstacle(f"queries, keys and values are products of several tensors: {names}")
        return origins.pop(), frozenset(name for _, names in behind for name in names)

    def _check_closed(self, parts: set[str], end: Node) -> None:
        for name in parts - {end.name}:
            if self._graph.is_result(name):
                raise Obstacle(f"'{name}' inside it is a result of the model")
            others = [node.name for node in self._graph.read_by(name) if node.name not in parts]
            if others:
                raise Obstacle(f"'{name}' inside it is read by '{others[0]}', too")
