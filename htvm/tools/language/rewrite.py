"""Decoding steps rewritten: caches that stay in place, and the scores of the next token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from htvm.model import TensorInfo
from htvm.tools.language.interface import StepInterface
from patterns.ops.convert import Convert
from patterns.ops.dense import LinearSums
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape, Slice
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from htvm.model import Model
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

_NAME = "scores"
_POSITIONS = 2  # the axis of positions
_Results: TypeAlias = "Callable[[GraphBuilder, Mapping[str, str]], Sequence[str]]"


def in_place(step: Model) -> Model:
    """Return the step with the token's keys and values as outputs, instead of whole caches.

    The caches are the same before and after a step but for the token's position, so that whoever
    keeps them only needs to write this position.

    Args:
        step: a decoding step that returns whole caches (see `StepInterface`).

    Raises:
        ModelError: it is no decoding step.
    """
    sizes = StepInterface.of(step.inputs, step.outputs, f"model '{step.name}'")
    graph = step.graph
    caches = graph.results[1:]

    def results(builder: GraphBuilder, known: Mapping[str, str]) -> list[str]:
        found = [known[graph.results[0]]]
        earlier = [name for name, _ in graph.inputs[-sizes.caches :]]
        for cache, before in zip(caches, earlier, strict=True):
            joined = graph.made_by(cache, Concat)
            if joined is not None and joined.inputs[:-1] == (before,):
                found.append(known[joined.inputs[-1]])
                continue
            begin, shape = (0, 0, sizes.length, 0), (1, sizes.heads, 1, sizes.head)
            last = Slice.every(begin, shape)
            found.append(builder.apply(last, [known[cache]], _free(f"{cache}_last", known)))
        return found

    shape = (1, sizes.heads, 1, sizes.head)
    outputs = (step.outputs[0], *(replace(info, shape=shape) for info in step.outputs[1:]))
    return replace(
        step,
        graph=_rewritten(graph, results),
        outputs=outputs,
        file_sha256="",
        state=tuple(info.name for info in step.inputs[-sizes.caches :]),
    )


def with_scores(step: Model, output: Array) -> Model:
    """Return the step with one more output: ``output @ hidden``, int32 [1, vocabulary].

    Args:
        step: a decoding step, whose first output is the hidden state [1, 1, width].
        output: row of each token, int8 [vocabulary, width].
    """
    graph = step.graph

    def results(builder: GraphBuilder, known: Mapping[str, str]) -> list[str]:
        name = _free(_NAME, known)
        flat = Reshape((1, output.shape[1]))
        row = builder.apply(flat, [known[graph.results[0]]], f"{name}_row")
        sums = builder.apply(LinearSums(output, np.zeros(len(output), "int32")), [row], name)
        return [*(known[each] for each in graph.results), sums]

    info = TensorInfo(_free(_NAME, {each.name for each in step.outputs}), (1, len(output)), "int32")
    # It is no longer the content of a file.
    outputs = (*step.outputs, info)
    return replace(step, graph=_rewritten(graph, results), outputs=outputs, file_sha256="")


def _rewritten(graph: Graph, results: _Results) -> Graph:
    """Return the step's graph with other results, which are made of its tensors by name.

    Conversions that change no byte are left out: files convert a token's key and value to the scale
    of the cached ones, from which theirs often differ by less than a rounding.
    """
    new_names = {name: name for name, _ in graph.inputs}
    builder = GraphBuilder(graph.inputs)
    for node in graph.in_order:
        inputs = [new_names[each] for each in node.inputs]
        if _keeps_bytes(node):
            new_names[node.name] = inputs[0]
        else:
            new_names[node.name] = builder.apply(node.op, inputs, node.name)
    return builder.graph(results(builder, new_names))


def _keeps_bytes(node: Node) -> bool:
    table = node.op.table() if isinstance(node.op, Convert) else None
    if table is None or (*node.input_dtypes, node.output_dtype) != ("int8", "int8"):
        return False
    return bool((table == np.arange(256)).all())


def _free(name: str, used_names: Mapping[str, object] | set[str]) -> str:
    """Return the name, with underscores appended if it is taken."""
    while name in used_names or f"{name}_row" in used_names:
        name += "_"
    return name
