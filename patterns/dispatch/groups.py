"""Groups of operators that an accelerator takes together, as one layer.

A group is offered to the accelerators before its operators are; if none takes it, the operators are
dispatched one by one.  A group has the name of its last operator.

A product of integers and its requantization are one layer.  So are a sum of one row with a
conversion of an operand, or a product with an activation: for so few elements, starting a kernel
takes longer than the kernel itself.  In larger tensors, functions of bytes stay layers of their
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from byoc_dory.layers import Gemm, Layer, MulShift, Rows, combination_layer, matmul_layer
from byoc_dory.layers.rowwise import ItaGelu, TableMap
from patterns.op import TensorType
from patterns.ops.add import Add
from patterns.ops.dense import Linear
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.layers import matrix_of, row_layer
from patterns.ops.pulp.elementwise import ElementWise
from patterns.ops.pulp.ita import ItaActivation

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True, eq=False)
class Group:
    """Operators that make up one layer.

    Attributes:
        kind: name in reports: ``matmul``, ``gelu``, ``hard_swish``, ``linear``, ``mha``,
            ``attention``.
        layer: the layer that they compute together.
        parts: their names in execution order; the last is the layer's name.
    """

    kind: str
    layer: Layer
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the layer and of its last operator."""
        return self.parts[-1]


@dataclass(frozen=True, eq=False)
class ByteFunction:
    """A function of single bytes.

    Attributes:
        table: uint8 [256]: the result for each byte, both in two's complement.
        source: name of the tensor that it reads.
        dtype: type of that tensor.
        parts: the operators that compute it.
    """

    table: Array
    source: str
    dtype: str
    parts: tuple[str, ...]


def byte_function(node: Node, graph: Graph) -> ByteFunction | None:
    """Return the function of bytes whose last operator this is; ``None`` if it is none."""
    op, layer = node.op, node.layer
    parts: tuple[str, ...] = (node.name,)
    if isinstance(op, Rescale) and isinstance(op.requantization, MulShift):
        after = _Requantized(node, op.requantization, op.clip)
        group = _scaled_activation(after, graph) or _scaled_bytes(after)
        layer, parts = (None, ()) if group is None else (group.layer, group.parts)
    if not isinstance(layer, Rows) or not isinstance(layer.function, TableMap):
        return None
    source = layer.inputs[0]
    return ByteFunction(layer.function.table, source.name, source.dtype, parts)


def pair_at(node: Node, graph: Graph) -> Group | None:
    """Return the group of two that an operator ends; ``None`` if it ends none.

    They are a product or activation to requantize, and a product with activation.
    """
    match node.op:
        case Rescale(requantization=MulShift() as requant):
            after = _Requantized(node, requant, node.op.clip)
            return (
                _scaled_product(after, graph)
                or _scaled_activation(after, graph)
                or _scaled_bytes(after)
            )
        case ItaActivation():
            return _activated_product(node, node.op.function, graph)
    return None


@dataclass(frozen=True, eq=False)
class _Requantized:
    """A requantization with one factor that is an operator of its own."""

    node: Node
    requant: MulShift
    clip: tuple[int, int]


def _scaled_product(after: _Requantized, graph: Graph) -> Group | None:
    """Return a matmul with its requantization."""
    node = after.node
    product = graph.nodes.get(node.inputs[0])
    if product is None or not isinstance(product.op, IntegerMatmul):
        return None
    if not graph.is_inner(product.name, {node.name}):
        return None
    if not set(product.input_dtypes) <= {"int8", "uint8"} or node.output_dtype == "int32":
        return None
    batches = [prod(shape[:-2]) for shape in (*product.input_shapes, product.output_shape)]
    if len(set(batches)) != 1:
        return None  # one operand is broadcast
    a, b = (
        matrix_of(name, TensorType(shape, dtype))
        for name, shape, dtype in zip(
            product.inputs, product.input_shapes, product.input_dtypes, strict=True
        )
    )
    layer = matmul_layer(
        node.name, a, b, requant=after.requant, clip=after.clip, dtype=node.output_dtype,
        batch=batches[0], transposed=product.op.transpose_b,
    )  # fmt: skip
    return Group("matmul", layer, (product.name, node.name))


def _scaled_activation(after: _Requantized, graph: Graph) -> Group | None:
    """Return a function of bytes with its requantization, as a table."""
    node = after.node
    source = graph.nodes.get(node.inputs[0])
    if source is None or not isinstance(source.op, ElementWise) or not source.op.offered:
        return None
    if not graph.is_inner(source.name, {node.name}):
        return None
    dtype = source.input_dtypes[0]
    if dtype not in ("int8", "uint8") or node.output_dtype not in ("int8", "uint8"):
        return None
    layer = _table_layer(after, source.inputs[0], dtype, source.op.tabulated(dtype))
    return Group(source.kind, layer, (source.name, node.name))


def _scaled_bytes(after: _Requantized) -> Group | None:
    """Return a requantization of bytes into bytes, as a table."""
    node = after.node
    dtype = node.input_dtypes[0]
    if dtype not in ("int8", "uint8") or node.output_dtype not in ("int8", "uint8"):
        return None
    values = np.arange(256, dtype="uint8").view(dtype).tolist()
    return Group(node.kind, _table_layer(after, node.inputs[0], dtype, values), (node.name,))


def _table_layer(after: _Requantized, source: str, dtype: str, values: Sequence[int]) -> Layer:
    """Return the layer that looks up requantized values, one for each byte of ``source``."""
    node, requant = after.node, after.requant
    # Computed in Python's integers, which do not overflow.
    scaled = [(value * requant.mul[0] + requant.add[0]) >> requant.shift[0] for value in values]
    clipped = np.clip(np.array(scaled, object), *after.clip)
    table = clipped.astype(node.output_dtype).view("uint8")
    x = (source, TensorType(node.input_shapes[0], dtype))
    output = TensorType(node.output_shape, node.output_dtype)
    return row_layer(node.name, x, output, TableMap(table))


def _activated_product(node: Node, function: ItaGelu, graph: Graph) -> Group | None:
    """Return a product with a constant matrix and the accelerator's GELU."""
    origin, passed = graph.behind_reshapes(node.inputs[0])
    product = graph.made_by(origin, Linear)
    if product is None or not isinstance(product.layer, Gemm):
        return None
    parts = (product.name, *reversed(passed), node.name)
    if not all(graph.is_inner(name, set(parts)) for name in parts[:-1]):
        return None
    output = replace(product.layer.output, name=node.name)
    layer = replace(product.layer, name=node.name, output=output, function=function)
    return Group("linear", layer, parts)


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
