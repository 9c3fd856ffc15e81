"""Ordering nodes: files need not be ordered, but must not have cycles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from byoc_dory.errors import ModelError
from htvm.frontend.onnx.graph import OnnxNode


def ordered(nodes: Sequence[OnnxNode], known: Collection[str], source: str) -> list[OnnxNode]:
    """Return the nodes, each after those it reads, otherwise in the order of the file.

    Args:
        nodes: nodes in the order of the file.
        known: names of inputs and constants.
        source: name of the file, for messages.

    Raises:
        ModelError: a tensor is computed twice or by no node, or nodes form a cycle.
    """
    makers: dict[str, OnnxNode] = {}
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in makers or name in known:
                raise ModelError(f"tensor '{name}' is computed twice", where=node.where)
            makers[name] = node
    result: list[OnnxNode] = []
    done: set[OnnxNode] = set()
    for start in nodes:
        _visit(start, makers, known, done, result, source)
    return result


def _visit(
    start: OnnxNode,
    makers: dict[str, OnnxNode],
    known: Collection[str],
    done: set[OnnxNode],
    result: list[OnnxNode],
    source: str,
) -> None:
    """Append a node after everything it needs, with an explicit stack for files of any depth."""
    waiting = [(start, iter(start.inputs))]
    open_nodes = {start}
    if start in done:
        return
    while waiting:
        node, inputs = waiting[-1]
        for name in inputs:
            if not name or name in known:
                continue
            if name not in makers:
                raise ModelError(
                    f"it reads '{name}', which is neither computed nor given", where=node.where
                )
            maker = makers[name]
            if maker in open_nodes:
                raise ModelError(f"a cycle: '{name}' depends on itself", where=node.where)
            if maker not in done:
                waiting.append((maker, iter(maker.inputs)))
                open_nodes.add(maker)
                break
        else:
            waiting.pop()
            open_nodes.discard(node)
            done.add(node)
            result.append(node)


def needed(
    nodes: Sequence[OnnxNode], outputs: Sequence[str], known: Collection[str], source: str
) -> tuple[OnnxNode, ...]:
    """Return those of the ordered nodes that the outputs need.

    Raises:
        ModelError: an output is computed by no node.
    """
    wanted = set(outputs)
    kept: list[OnnxNode] = []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted |= set(node.inputs)
    made = {name for node in kept for name in node.outputs}
    missing = [name for name in outputs if name not in known and name not in made]
    if missing:
        raise ModelError(f"output '{missing[0]}' is computed by no node", where=source)
    return tuple(reversed(kept))


def used(nodes: Sequence[OnnxNode], outputs: Sequence[str]) -> tuple[OnnxNode, ...]:
    """Return the nodes without the names of optional outputs that nobody reads.

    The first output keeps its name: messages use it.
    """
    read = {*outputs, *(name for node in nodes for name in node.inputs)}
    result = []
    for node in nodes:
        names = tuple(
            name if not at or name in read else "" for at, name in enumerate(node.outputs)
        )
        result.append(node if names == node.outputs else replace(node, outputs=names))
    return tuple(result)
