"""Attention heads: a softmax, and the products before and after it.

Where the elements of a tensor come from, through operators that only move them, is traced: a chain
of reshapes, transpositions, slices and concatenations is not analysed symbolically, but run on an
array of element indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Add, Gemm, MulShift, Projection, Rows, Scores, rounded_half_up
from byoc_dory.layers.rowwise import ItaSoftmax
from patterns.op import INT8
from patterns.ops.dense import Linear
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.binary import OnnxBinary
from patterns.ops.tflite.binary import TfliteBinary
from patterns.reading.graph import is_plain_reshape

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


class Obstacle(Exception):
    """The reason why something is not an attention layer, as one sentence."""


@dataclass(frozen=True, eq=False)
class AttentionCore:
    """A softmax with the products before and after it, for one head or several.

    Attributes:
        scores: requantizations and softmax of the scores.
        batch, rows: number of heads, and rows of each head.
        query, key, value: elements of the operands, each [batch, rows, head size].
        context: name of the last of its operators.
        parts: names of all of its operators.
    """

    scores: Scores
    batch: int
    rows: int
    query: Arranged
    key: Arranged
    value: Arranged
    context: Node
    parts: frozenset[str]


def product_of(softmax: Node, graph: Graph) -> Node | None:
    """Return the product that reads the softmax, possibly through plain reshapes."""
    waiting = [softmax.name]
    while waiting:
        name = waiting.pop()
        for node in graph.read_by(name):
            if isinstance(node.op, IntegerMatmul) and node.inputs[0] == name:
                return node
            if is_plain_reshape(node):
                waiting.append(node.name)
    return None


# ------------------------------------------------------------------------------ around the softmax


def core_of(softmax: Node, graph: Graph) -> AttentionCore:
    """Return the scores, context and operands around the softmax of one or more heads.

    Raises:
        Obstacle: it is not a self-attention in ITA's arithmetic.
    """
    function = softmax.layer.function if isinstance(softmax.layer, Rows) else None
    if not isinstance(function, ItaSoftmax):
        raise Obstacle(f"the softmax is {softmax.kind}, which is not one of powers of two")
    scaled, before = graph.behind_reshapes(softmax.inputs[0])
    scores, product, transposed = _scaled_product(scaled, "scores", graph)
    mixture = product_of(softmax, graph)
    assert mixture is not None and isinstance(mixture.op, IntegerMatmul)
    _, between = graph.behind_reshapes(mixture.inputs[0])
    readers = [node for node in graph.read_by(mixture.name) if isinstance(node.op, Rescale)]
    if len(readers) != 1 or len(mixture.inputs) != 2 or len(product.inputs) != 2:
        raise Obstacle(f"the product '{mixture.name}' is not requantized")
    context, _, _ = _scaled_product(readers[0].name, "context", graph)
    *batch, rows, size = product.input_shapes[0]
    heads = prod(batch)
    if prod(mixture.output_shape[:-2]) != heads or prod(product.output_shape[:-2]) != heads:
        raise Obstacle(f"the product '{product.name}' broadcasts its operands")
    parts = {softmax.name, scaled, product.name, mixture.name, readers[0].name, *before, *between}
    operands = []
    for node, at, swap in (
        (product, 0, False),
        (product, 1, not transposed),
        (mixture, 1, mixture.op.transpose_b),
    ):
        shape = node.input_shapes[at]
        if prod(shape[:-2]) != heads:
            raise Obstacle(f"the product '{node.name}' broadcasts its operands")
        found = arranged(node.inputs[at], shape, graph).reshaped(heads, *shape[-2:])
        found = found.swapped() if swap else found
        if found.place.shape[1] != rows:
            raise Obstacle(f"{rows} queries and {found.place.shape[1]} keys: no self-attention")
        operands.append(found)
        parts |= found.moves
    query, key, value = operands
    return AttentionCore(
        Scores(scores, function, context), heads, rows, query, key, value, readers[0],
        frozenset(parts),
    )  # fmt: skip


def _scaled_product(name: str, role: str, graph: Graph) -> tuple[tuple[int, int, int], Node, bool]:
    """A requantization's factors, the product it requantizes, and whether that transposes."""
    node = graph.nodes.get(name)
    product = None
    if node is not None and isinstance(node.op, Rescale):
        product = graph.nodes.get(node.inputs[0])
    odd = product if product is not None else node
    if odd is not None and _adds(odd):
        raise Obstacle(f"{odd.kind} '{odd.name}' adds to the {role}: masks are not supported")
    if node is None or product is None or not isinstance(product.op, IntegerMatmul):
        kind = "an input" if odd is None else odd.kind
        raise Obstacle(f"the {role} '{name}' are {kind}, not a product with one requantization")
    assert isinstance(node.op, Rescale)
    requant = node.op.requantization
    if requant is None:
        raise Obstacle(f"the {role} '{name}' are requantized by several factors")
    if node.op.clip != INT8 or node.output_dtype != "int8":
        raise Obstacle(f"the {role} '{name}' are clipped to {node.op.clip}")
    factors = (requant.mul[0], requant.shift[0], requant.add[0])
    return factors, product, product.op.transpose_b


def _adds(node: Node) -> bool:
    """Whether the operator may add a mask."""
    return isinstance(node.layer, Add) or isinstance(node.op, Combine | OnnxBinary | TfliteBinary)


# ------------------------------------------------------------------------------ products


def head_product(
    found: Arranged, head: int, role: str, graph: Graph
) -> tuple[Projection, list[Node]]:
    """Return the product for one head's queries, keys or values, and the nodes it comes from."""
    origin, place = found.origin[head], found.place[head]
    nodes = []
    for number in dict.fromkeys(origin[0].tolist()):
        name = found.origins[number]
        node = graph.made_by(name, Linear)
        if node is None:
            raise Obstacle(f"the {role} is made of '{name}', no product with constants")
        nodes.append(node)
    if len(nodes) != 1:
        raise Obstacle(f"the {role} of a head is made of {len(nodes)} products")
    layer = plain_layer(nodes[0])
    rows, columns = np.divmod(place, layer.K)
    same = (origin == origin[0, 0]).all() and (columns == columns[0]).all()
    if not same or not (rows == np.arange(len(rows))[:, None]).all():
        raise Obstacle(f"the rows of '{nodes[0].name}' are rearranged before they are the {role}")
    return of_rows(layer, columns[0], nodes[0].name), nodes


def plain_layer(node: Node) -> Gemm:
    """Return the layer of a product with int8 results that are not clipped further."""
    layer = node.layer
    if not isinstance(layer, Gemm):
        raise Obstacle(f"'{node.name}' is not a product of matrices")
    if layer.clip != INT8 or layer.output.dtype != "int8":
        raise Obstacle(f"'{node.name}' is clipped to [{layer.clip[0]}, {layer.clip[1]}]")
    return layer


def of_rows(layer: Gemm, rows: Array, name: str) -> Projection:
    """Return some output columns of a product, which are rows of its weights."""
    layer = rounded_half_up(layer)
    requant = layer.requant
    if not isinstance(requant, MulShift):
        raise Obstacle(f"the requantization of '{name}' is {type(requant).__name__}")
    factors = []
    for values in (requant.mul, requant.shift, requant.add):
        used = {values[row] for row in rows.tolist()} if len(values) > 1 else set(values)
        if len(used) != 1:
            raise Obstacle(f"'{name}' is requantized by a factor for each column")
        factors.append(used.pop())
    bias = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    weight = np.asarray(layer.weight[rows, :, 0, 0], order="C")
    return Projection(weight, np.asarray(bias[rows], order="C"), *factors)


def columns_of_heads(
    node: Node, found: Arranged, cores: dict[str, AttentionCore]
) -> dict[tuple[str, int], Array]:
    """Return which columns of an output product's input belong to each head, in the head's order.

    Raises:
        Obstacle: the rows or columns of a head are incomplete or out of place.
    """
    size = node.input_shapes[0][-1]
    found = found.reshaped(-1, size)
    result: dict[tuple[str, int], Array] = {}
    numbers = found.origin[0]
    if not (found.origin == numbers).all():
        raise Obstacle(f"the heads are rearranged before '{node.name}'")
    for number in dict.fromkeys(numbers.tolist()):
        name = found.origins[number]
        core = cores[name]
        *_, rows, width = core.context.output_shape
        (columns,) = np.nonzero(numbers == number)
        head, row, column = np.unravel_index(found.place[:, columns], (core.batch, rows, width))
        straight = (row == np.arange(len(row))[:, None]).all() and len(row) == rows
        if not straight or not ((head == head[0]).all() and (column == column[0]).all()):
            raise Obstacle(f"the rows of '{name}' are rearranged before '{node.name}'")
        for at in dict.fromkeys(head[0].tolist()):
            own = columns[head[0] == at]
            order = np.argsort(column[0][head[0] == at])
            if sorted(column[0][head[0] == at].tolist()) != list(range(width)):
                raise Obstacle(f"'{node.name}' reads some columns of a head of '{name}'")
            result[name, at] = own[order]
    return result
