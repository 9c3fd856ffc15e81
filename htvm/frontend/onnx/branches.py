"""Branches: a node If of known condition gives way to the nodes of the branch that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    from byoc_dory.layers import Array
    from htvm.frontend.onnx.graph import OnnxNode


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
    taken = {node.index: _taken(model, node, constants) for node in ready}
    before = list(model.graph.node)
    del model.graph.node[:]
    for index, proto in enumerate(before):
        model.graph.node.extend(taken.get(index, [proto]))


def _taken(model: ModelProto, node: OnnxNode, constants: Mapping[str, Array]) -> list[NodeProto]:
    """Return the nodes of the branch that is taken; its initialisers become the graph's."""
    condition = constants[node.input(0)]
    if condition.size != 1:
        raise node.damaged(f"a condition of shape {list(condition.shape)}", "one truth value")
    proto = model.graph.node[node.index]
    name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    branch = next((item.g for item in proto.attribute if item.name == name), None)
    if branch is None or len(branch.output) != len(proto.output):
        raise node.damaged(f"no {name} with {len(proto.output)} outputs")
    nodes = _nodes(branch, proto, node)
    model.graph.initializer.extend(branch.initializer)
    return nodes


def _nodes(branch: GraphProto, proto: NodeProto, node: OnnxNode) -> list[NodeProto]:
    """Return the nodes of a branch under their new names; its initialisers are renamed."""
    from onnx import helper

    if branch.input or branch.sparse_initializer:
        raise ModelError("a branch with inputs, or with sparse initialisers", where=node.where)
    own = [item.name for item in branch.initializer]
    made = [name for each in branch.node for name in each.output if name]
    names = {name: f"{proto.output[0]}/{name}" for name in (*own, *made)}
    aliases: list[tuple[str, str]] = []
    taken: set[str] = set()
    for value, wanted in zip(branch.output, proto.output, strict=True):
        if value.name in made and value.name not in taken and wanted:
            names[value.name] = wanted
            taken.add(value.name)
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
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        for node in inner.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
            for attribute in node.attribute:
                waiting.extend([attribute.g] if attribute.HasField("g") else [])
                waiting.extend(attribute.graphs)
        if inner is not graph:
            for value in inner.output:
                value.name = names.get(value.name, value.name)
