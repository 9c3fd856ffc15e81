"""Functions of a file: written in place of the nodes that call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import ModelError, UnsupportedError

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

__all__ = ["inlined"]

_MOST_NODES = 1 << 16
"""Nodes that calls may expand to: functions that call others twice grow exponentially."""

_Key: TypeAlias = tuple[str, str, str]


def inlined(model: ModelProto, source: str) -> ModelProto:
    """Return a model without functions.

    Args:
        model: the file; unchanged if it has none.
        source: name of the file, for messages.

    Raises:
        ModelError: a function calls itself, or two have the same name.
        UnsupportedError: the calls expand to too many nodes, or cannot be written in place.
    """
    if not model.functions:
        return model
    functions = {_key(function): function for function in model.functions}
    if len(functions) < len(model.functions):
        raise ModelError("two functions of the same name", where=source)
    sizes = _sizes(functions, source)
    total = sum(sizes.get(_key_of(node), 1) for node in _nodes(model.graph.node))
    if total > _MOST_NODES:
        raise UnsupportedError(
            f"functions that expand to {total:,} nodes",
            where=source,
            hint=f"at most {_MOST_NODES:,}; export the model without functions",
        )
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise UnsupportedError(
            f"functions, as '{model.functions[0].name}', cannot be written in place: {error}",
            where=source,
            hint="export the model without functions",
        ) from error


def _key(function: FunctionProto) -> _Key:
    return function.domain, function.name, getattr(function, "overload", "")


def _key_of(node: NodeProto) -> _Key:
    return node.domain, node.op_type, getattr(node, "overload", "")


def _nodes(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, also those of graphs among their attributes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                waiting.extend(graph.node)


def _sizes(functions: dict[_Key, FunctionProto], source: str) -> dict[_Key, int]:
    """Return how many nodes a call of each function expands to; each after those it calls."""
    calls = {key: [_key_of(node) for node in _nodes(f.node)] for key, f in functions.items()}
    sizes: dict[_Key, int] = {}
    for start in functions:
        path = [start]
        while path:
            inner = [call for call in calls[path[-1]] if call in functions and call not in sizes]
            if any(call in path for call in inner):
                raise ModelError(f"function '{path[-1][1]}' calls itself", where=source)
            if inner:
                path.append(inner[0])
            else:
                key = path.pop()
                sizes[key] = max(sum(sizes.get(call, 1) for call in calls[key]), 1)
    return sizes
