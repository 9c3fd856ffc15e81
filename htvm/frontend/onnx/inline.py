"""Functions of a file: written in place of the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import ModelError, UnsupportedError

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

_MOST_NODES = 1 << 16
"""Nodes that calls may expand to: functions that call others twice grow exponentially."""

_MOST_BYTES = 1 << 24
"""Bytes that calls may expand to, or four times those of the file: bodies may hold constants."""

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
    most_bytes = max(_MOST_BYTES, 4 * model.ByteSize())
    for what, most, size in (
        ("nodes", _MOST_NODES, lambda _: 1),
        ("bytes", most_bytes, lambda node: node.ByteSize()),
    ):
        sizes = _sizes(functions, size, source)
        total = sum(sizes.get(_key_of(node)) or size(node) for node in _nodes(model.graph.node))
        if total > most:
            raise UnsupportedError(
                f"functions that expand to {total:,} {what}",
                where=source,
                hint=f"at most {most:,}; export the model without functions",
            )
    from onnx import checker, inliner

    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, checker.ValidationError) as error:
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


def _sizes(
    functions: dict[_Key, FunctionProto], size: Callable[[NodeProto], int], source: str
) -> dict[_Key, int]:
    """Return what a call of each function expands to, given the size of a node."""
    nodes = {key: list(_nodes(function.node)) for key, function in functions.items()}
    sizes: dict[_Key, int] = {}
    for start in functions:
        if start in sizes:
            continue
        waiting = [(start, iter(nodes[start]))]
        path = {start}
        while waiting:
            key, inner = waiting[-1]
            call = next((c for c in map(_key_of, inner) if c in functions and c not in sizes), None)
            if call in path:
                raise ModelError(f"function '{key[1]}' calls itself", where=source)
            if call is not None:
                waiting.append((call, iter(nodes[call])))
                path.add(call)
                continue
            waiting.pop()
            path.discard(key)
            sizes[key] = max(sum(sizes.get(_key_of(n)) or size(n) for n in nodes[key]), 1)
    return sizes
