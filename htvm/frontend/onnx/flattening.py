"""The nodes of a file as one ordered list: functions written in place, branches taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import ModelError, UnsupportedError
from htvm.frontend.onnx.graph import OnnxNode

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

    from byoc_dory.layers import Array

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
        total = sum(sizes.get(_key_of(node)) or size(node) for node in _all_nodes(model.graph.node))
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


def _all_nodes(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, also those of graphs among their attributes."""
    to_visit = list(nodes)
    while to_visit:
        node = to_visit.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                to_visit.extend(graph.node)


def _sizes(
    functions: dict[_Key, FunctionProto], size: Callable[[NodeProto], int], source: str
) -> dict[_Key, int]:
    """Return what a call of each function expands to, given the size of a node."""
    nodes = {key: list(_all_nodes(function.node)) for key, function in functions.items()}
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


def decide(model: ModelProto, nodes: Sequence[OnnxNode], constants: Mapping[str, Array]) -> None:
    """Write the nodes of a branch in place of each node If of the file, which is changed.

    Names of the branch's own tensors begin with the node's first output, so that they differ from
    those of all other branches.

    Args:
        model: the file.
        nodes: the nodes; if the conditions of some are known, only these are replaced.
        constants: constants by name.

    Raises:
        UnsupportedError: all conditions are computed at run time.
        ModelError: a branch is missing, or has other outputs than the node.
    """
    ready = [node for node in nodes if node.input(0) in constants]
    if not ready:
        raise nodes[0].unsupported(
            "its condition is computed at run time",
            "export the network without control flow; a branch is read where its condition is "
            "known beforehand",
        )
    branches = {node.index: _taken_branch(model, node, constants) for node in ready}
    before = list(model.graph.node)
    del model.graph.node[:]
    for index, proto in enumerate(before):
        model.graph.node.extend(branches.get(index, [proto]))


def _taken_branch(
    model: ModelProto, node: OnnxNode, constants: Mapping[str, Array]
) -> list[NodeProto]:
    """Return the nodes of the branch that is taken; its initialisers become the graph's."""
    condition = constants[node.input(0)]
    if condition.size != 1:
        raise node.damaged(f"a condition of shape {list(condition.shape)}", "one truth value")
    proto = model.graph.node[node.index]
    name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    branch = next((item.g for item in proto.attribute if item.name == name), None)
    if branch is None or len(branch.output) != len(proto.output):
        raise node.damaged(f"no {name} with {len(proto.output)} outputs")
    nodes = _branch_nodes(branch, proto, node)
    model.graph.initializer.extend(branch.initializer)
    return nodes


def _branch_nodes(branch: GraphProto, proto: NodeProto, node: OnnxNode) -> list[NodeProto]:
    """Return the nodes of a branch under their new names; its initialisers are renamed."""
    from onnx import helper

    if branch.input or branch.sparse_initializer:
        raise ModelError("a branch with inputs, or with sparse initialisers", where=node.where)
    own = [item.name for item in branch.initializer]
    results = [name for each in branch.node for name in each.output if name]
    names = {name: f"{proto.output[0]}/{name}" for name in (*own, *results)}
    aliases: list[tuple[str, str]] = []
    used_names: set[str] = set()
    for value, wanted in zip(branch.output, proto.output, strict=True):
        if value.name in results and value.name not in used_names and wanted:
            names[value.name] = wanted
            used_names.add(value.name)
        elif wanted:
            aliases.append((value.name, wanted))
    for tensor in branch.initializer:
        tensor.name = names[tensor.name]
    _rename(branch, names)
    return [
        *branch.node,
        *(helper.make_node("Identity", [names.get(a, a)], [wanted]) for a, wanted in aliases),
    ]


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename tensors of a graph, also where graphs within it read them."""
    to_visit = [graph]
    while to_visit:
        inner = to_visit.pop()
        for node in inner.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
            for attribute in node.attribute:
                to_visit.extend([attribute.g] if attribute.HasField("g") else [])
                to_visit.extend(attribute.graphs)
        if inner is not graph:
            for value in inner.output:
                value.name = names.get(value.name, value.name)


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
