"""Applying rewrites to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from htvm.rewriting.filters import Filter, Rewritten, filter_of
from patterns.ops.moves.pad import Pad
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from htvm.model import Model
    from htvm.rewriting.rewrites import Rewrite
    from patterns.reading.graph import Graph


@dataclass(frozen=True, eq=False)
class Applied:
    """A model with rewritten layers.

    Attributes:
        model: the model; the operators that end rewritten layers have these layers' names.
        origins: operator that is part of a rewritten layer -> name of the layer.
        layers: the parts that are to be offered to accelerators.
        says: rewritten layer -> what is computed instead.
    """

    model: Model
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    layers: frozenset[str] = frozenset()
    says: Mapping[str, str] = field(default_factory=dict[str, str])


def apply(
    model: Model,
    wanted: Mapping[str, Rewrite],
    agrees: Callable[[str, Rewritten], bool] = lambda name, found: True,
) -> Applied:
    """Return a model with these layers rewritten, which computes the same.

    Args:
        model: model in the integer form.
        wanted: layer -> how it is rewritten.
        agrees: whether a layer is to be rewritten, given its name and its parts.
    """
    graph = model.graph
    found: dict[str, tuple[Filter, Rewritten]] = {}
    for name, rewrite in wanted.items():
        node = graph.nodes.get(name)
        it = None if node is None else filter_of(node, graph)
        done = None if it is None else rewrite.of(it)
        if it is not None and done is not None and agrees(name, done):
            found[name] = it, _renamed(done, name, graph)
    if not found:
        return Applied(model)
    return Applied(
        replace(model, graph=_written(graph, {name: done for name, (_, done) in found.items()})),
        {part.name: name for name, (_, done) in found.items() for part in done.parts},
        frozenset(name for _, done in found.values() for name in done.layers),
        {name: done.says for name, (_, done) in found.items()},
    )


def _renamed(done: Rewritten, layer: str, graph: Graph) -> Rewritten:
    """Return parts whose names are not those of other operators."""
    taken = set(graph.nodes) | {name for node in graph.in_order for name in node.inputs}
    names = {part.name: part.name for part in done.parts}
    for name in names:
        while name != layer and names[name] in taken:
            names[name] += "_"
    parts = tuple(
        replace(
            part,
            name=names[part.name],
            inputs=tuple(names.get(each, each) for each in part.inputs),
        )
        for part in done.parts
    )
    return replace(done, parts=parts)


def _written(graph: Graph, found: Mapping[str, Rewritten]) -> Graph:
    """Return the graph with other operators in place of some."""
    builder, unread = GraphBuilder(graph.inputs), _unread(graph, found)
    for node in graph.in_order:
        if node.name in unread:
            continue
        for part in found[node.name].parts if node.name in found else (node,):
            builder.apply(part.op, part.inputs, part.name)
    return builder.graph(graph.results)


def _unread(graph: Graph, found: Mapping[str, Rewritten]) -> set[str]:
    """Return the paddings that only rewritten layers read, which read past them."""
    parts = {each for done in found.values() for part in done.parts for each in part.inputs}
    return {
        node.name
        for node in graph.in_order
        if isinstance(node.op, Pad)
        and not graph.is_result(node.name)
        and node.name not in parts
        and all(reader.name in found for reader in graph.read_by(node.name))
    }
