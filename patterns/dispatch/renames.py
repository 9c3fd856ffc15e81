"""Reshapes inside regions that do not move any byte: they only give a tensor another name.

A reshape that only adds or drops leading axes of size 1 leaves a matrix unchanged.  Files of
transformers have one before and after most products.  If layers of matrices of one family read its
result, it does not end a region.  Any other reshape is a name, too, if the layers around it read
the same rows, or a vector: a single row is also the rows of its heads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from typing import TYPE_CHECKING

from byoc_dory.region import are_same_rows
from patterns.ops.moves.reshape import Reshape
from patterns.reading.graph import is_plain_reshape

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def renames(
    graph: Graph,
    families: Mapping[str, str],
    layers: Mapping[str, Layer],
    inner: Collection[str],
) -> dict[str, str]:
    """Return the reshapes that are part of a region, with the region's family.

    Args:
        graph: the operators.
        families: family of each layer, and part of a layer, that runs on an accelerator.
        layers: layers by name.
        inner: operators that are part of another operator's layer.
    """
    of_any = _renames(graph, families, layers, inner, _is_reshape)
    plain = _renames(graph, families, layers, inner, is_plain_reshape)
    return {**plain, **of_any}


def origin_of(name: str, graph: Graph, renamed: Container[str]) -> str:
    """Return the tensor that a reshape in ``renamed`` is another name of."""
    while name in renamed:
        name = graph.nodes[name].inputs[0]
    return name


def _is_reshape(node: Node) -> bool:
    return isinstance(node.op, Reshape)


def _renames(
    graph: Graph,
    families: Mapping[str, str],
    layers: Mapping[str, Layer],
    inner: Collection[str],
    may_be: Callable[[Node], bool],
) -> dict[str, str]:
    homes = dict(families)
    found: dict[str, str] = {}
    for node in reversed(graph.nodes.values()):
        if not may_be(node) or graph.is_result(node.name) or node.name in inner:
            continue
        readers = {homes.get(reader.name) for reader in graph.read_by(node.name)}
        home = readers.pop() if len(readers) == 1 else None
        if home is not None:
            found[node.name] = homes[node.name] = home
    return {
        name: home
        for name, home in found.items()
        if _are_rows(origin_of(name, graph, found), graph, home, homes, layers, found)
    }


def _are_rows(
    origin: str,
    graph: Graph,
    home: str,
    homes: Mapping[str, str],
    layers: Mapping[str, Layer],
    found: Container[str],
) -> bool:
    """Whether the layers around store the tensor row by row, and one of them is a matrix layer."""
    names = {origin} | _behind(origin, graph, found)
    around = []
    shapes: list[tuple[int, ...]] = []
    for layer in layers.values():
        made = layer.name == origin
        tensors = [tensor for tensor in layer.inputs if tensor.name in names]
        tensors += [layer.output] if made else []
        if tensors and homes.get(layer.name) == home:
            around.append(layer)
            shapes += [tensor.shape for tensor in tensors]
            if any(tensor.layout == "NCHW" for tensor in tensors):
                return False
    if not all(is_plain_reshape(graph.nodes[name]) for name in names - {origin}) and not all(
        are_same_rows(one, other) for one in shapes for other in shapes
    ):
        return False
    return any(layer.of_matrices for layer in around)


def _behind(name: str, graph: Graph, found: Container[str]) -> set[str]:
    """Return the reshapes of a tensor that are names, and their reshapes in turn."""
    names: set[str] = set()
    for node in graph.read_by(name):
        if node.name in found:
            names |= {node.name} | _behind(node.name, graph, found)
    return names
