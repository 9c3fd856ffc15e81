"""Reshapes inside regions that do not move any byte: they only give a tensor another name.

A reshape that only adds or drops leading axes of size 1 leaves a matrix unchanged.  Files of
transformers have one before and after most products.  If layers of matrices of one family read its
result, it does not end a region.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from patterns.reading.graph import is_plain_reshape

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from patterns.reading.graph import Graph

__all__ = ["renames"]


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
    homes = dict(families)
    found: dict[str, str] = {}
    for node in reversed(graph.nodes.values()):
        if not is_plain_reshape(node) or graph.is_result(node.name) or node.name in inner:
            continue
        readers = {homes.get(reader.name) for reader in graph.read_by(node.name)}
        home = readers.pop() if len(readers) == 1 else None
        if home is not None:
            found[node.name] = homes[node.name] = home
    return {
        name: home for name, home in found.items() if _are_rows(name, graph, home, homes, layers)
    }


def _are_rows(
    name: str, graph: Graph, home: str, homes: Mapping[str, str], layers: Mapping[str, Layer]
) -> bool:
    """Whether the layers around store the tensor row by row, and one of them is a matrix layer."""
    origin, passed = graph.behind_reshapes(name)
    names = {origin, *passed} | _behind(name, graph)
    around = []
    for layer in layers.values():
        made = layer.name == origin
        tensors = [tensor for tensor in layer.inputs if tensor.name in names]
        tensors += [layer.output] if made else []
        if tensors and homes.get(layer.name) == home:
            around.append(layer)
            if any(tensor.layout == "NCHW" for tensor in tensors):
                return False
    return any(layer.of_matrices for layer in around)


def _behind(name: str, graph: Graph) -> set[str]:
    """Return the plain reshapes of a tensor, and their reshapes in turn."""
    found: set[str] = set()
    for node in graph.read_by(name):
        if is_plain_reshape(node):
            found |= {node.name} | _behind(node.name, graph)
    return found
