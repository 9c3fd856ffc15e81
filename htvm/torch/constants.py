"""Folding what a graph computes from its buffers alone, such as masks."""

from __future__ import annotations

from typing import Any

import torch


def constants_of(model: Any, *, parameters: bool = True) -> dict[Any, Any]:
    """Return the nodes of a graph that depend on no input, and their values.

    Args:
        model: the module whose graph it is.
        parameters: whether parameters are constants, which training changes.
    """
    known: dict[Any, Any] = {}
    for node in model.graph.nodes:
        if node.op == "get_attr":
            value = _attribute(model, node.target)
            is_parameter = isinstance(value, torch.nn.Parameter)
            if isinstance(value, torch.Tensor) and (parameters or not is_parameter):
                known[node] = value.detach().clone()  # some operators write in place
        elif node.op == "call_function" and known.keys() >= set(node.all_input_nodes):
            arguments, options = (
                torch.fx.node.map_arg(part, known.__getitem__) for part in (node.args, node.kwargs)
            )
            known[node] = node.target(*arguments, **options)
    return {node: value for node, value in known.items() if isinstance(value, torch.Tensor)}


def fold_buffers(model: Any) -> None:
    """Replace what depends on neither inputs nor parameters by buffers with its values.

    Parameters stay, as they are trained.

    Args:
        model: the module whose graph it is.
    """
    graph = model.graph
    known = constants_of(model, parameters=False)
    for node, value in known.items():
        if node.op == "call_function" and not set(node.users) <= known.keys():
            name = f"{node.name}_folded"
            model.register_buffer(name, value.clone())
            with graph.inserting_before(node):
                folded = graph.get_attr(name)
            folded.meta = dict(node.meta)
            node.replace_all_uses_with(folded)
    graph.eliminate_dead_code()
    model.recompile()


def _attribute(model: Any, path: str) -> Any:
    for part in path.split("."):
        model = getattr(model, part)
    return model
