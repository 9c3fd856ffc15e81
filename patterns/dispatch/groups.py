"""Operators that an accelerator takes together, as one layer.

A group is offered to the accelerators before its operators are; where none takes it, they are
dispatched one by one.  The last operator names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Gemm, Layer, MulShift, Rows, matmul_layer, matrix, rows_layer
from byoc_dory.layers.rowwise import ItaGelu, TableMap
from patterns.ops.pulp.activation import tabulated

if TYPE_CHECKING:
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["Group", "groups_of"]


@dataclass(frozen=True, eq=False)
class Group:
    """Operators that make up one layer.

    Attributes:
        kind: what reports call it: ``matmul``, ``gelu``, ``hard_swish``, ``linear``, ``mha``.
        layer: what they compute together.
        parts: their names in execution order; the last is the layer's.
    """

    kind: str
    layer: Layer
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the layer and of its last operator."""
        return self.parts[-1]


def groups_of(graph: Graph) -> Iterator[Group]:
    """The groups of two operators: a product or activation and what requantizes it, and a product
    and its activation.
    """
    for node in graph.nodes.values():
        if node.kind == "rescale" and "mul" in node.attrs:
            group = _scaled_product(node, graph) or _scaled_activation(node, graph)
        elif node.kind == "ita_gelu":
            group = _activated_product(node, graph)
        else:
            continue
        if group is not None:
            yield group


def _scaled_product(node: Node, graph: Graph) -> Group | None:
    """A matmul and its requantization."""
    product = graph.made_by(node.inputs[0], "matmul")
    if product is None or not graph.is_inner(product.name, {node.name}):
        return None
    if not set(product.input_dtypes) <= {"int8", "uint8"} or node.output_dtype == "int32":
        return None
    batches = [prod(shape[:-2]) for shape in (*product.input_shapes, product.output_shape)]
    if len(set(batches)) != 1:
        return None  # one operand is broadcast
    a, b = (
        matrix(name, prod(shape[:-1]), shape[-1], dtype)
        for name, shape, dtype in zip(
            product.inputs, product.input_shapes, product.input_dtypes, strict=True
        )
    )
    requant, clip = _requantization(node)
    layer = matmul_layer(
        node.name, a, b, requant=requant, clip=clip, dtype=node.output_dtype, batch=batches[0],
        transposed=bool(product.attrs["transpose_b"]),
    )  # fmt: skip
    return Group("matmul", layer, (product.name, node.name))


def _requantization(node: Node) -> tuple[MulShift, tuple[int, int]]:
    mul, shift, add = (node.attrs[role] for role in ("mul", "shift", "add"))
    clip = node.attrs["clip"]
    assert isinstance(mul, int) and isinstance(shift, int) and isinstance(add, int)
    assert isinstance(clip, tuple)
    return MulShift((mul,), (shift,), (add,)), (clip[0], clip[1])


def _scaled_activation(node: Node, graph: Graph) -> Group | None:
    """A function of bytes and its requantization: a table."""
    source = graph.nodes.get(node.inputs[0])
    if source is None or not graph.is_inner(source.name, {node.name}):
        return None
    dtype = source.input_dtypes[0]
    if dtype not in ("int8", "uint8") or node.output_dtype not in ("int8", "uint8"):
        return None
    values = tabulated(source.kind, source.attrs, dtype)
    if values is None:
        return None
    requant, (low, high) = _requantization(node)
    # In Python's integers, which do not overflow.
    scaled = [(value * requant.mul[0] + requant.add[0]) >> requant.shift[0] for value in values]
    table = np.clip(np.array(scaled, object), low, high).astype(node.output_dtype).view("uint8")
    shape = source.input_shapes[0]
    x = matrix(source.inputs[0], prod(shape[:-1]), shape[-1], dtype)
    layer = rows_layer(node.name, x, TableMap(table), node.output_dtype)
    return Group(source.kind, layer, (source.name, node.name))


def _activated_product(node: Node, graph: Graph) -> Group | None:
    """A product with a constant matrix and the accelerator's GELU."""
    origin, passed = graph.behind_reshapes(node.inputs[0])
    product = graph.made_by(origin, "linear")
    if product is None or not isinstance(product.layer, Gemm) or not isinstance(node.layer, Rows):
        return None
    parts = (product.name, *reversed(passed), node.name)
    if not all(graph.is_inner(name, set(parts)) for name in parts[:-1]):
        return None
    function = node.layer.function
    assert isinstance(function, ItaGelu)
    output = replace(product.layer.output, name=node.name)
    layer = replace(product.layer, name=node.name, output=output, function=function)
    return Group("linear", layer, parts)
