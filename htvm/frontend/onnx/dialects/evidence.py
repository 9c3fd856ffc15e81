"""Distinguishing the dialects of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from htvm.frontend.onnx.dialect import Options
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

_LAYERS = ("Conv", "Gemm", "MatMul", "RequantShift")


def has_only(graph: OnnxGraph, operators: Collection[str]) -> bool:
    """Whether all nodes are among these standard operators."""
    return all(node.op in operators and not node.domain for node in graph.nodes)


def holds_integers(graph: OnnxGraph, options: Options) -> bool:
    """Whether tensors declared as reals hold integers, judging by the file and the user's options.

    No constant has a fraction, except between a division and its floor, and a layer's weights are
    integers, or all inputs are known to be.
    """
    weights, rounding = 0, {node for chain in _floored_divisions(graph) for node in chain[2:]}
    whole: set[str] = set()  # constants that many nodes may name
    for node in graph.nodes:
        if node in rounding:
            continue
        for name in node.inputs:
            value = graph.constants.get(name)
            if value is None or value.dtype.kind not in "iuf":
                continue
            if name not in whole and value.dtype.kind == "f" and (value != np.rint(value)).any():
                return False
            whole.add(name)
            weights += node.op in _LAYERS
    kinds = [
        options.input_types.get(item.name, item.dtype if item.dtype != "float32" else "")
        for item in graph.inputs
    ]
    return weights > 0 or all(kinds)


def _makers(graph: OnnxGraph) -> dict[str, OnnxNode]:
    return {name: node for node in graph.nodes for name in node.outputs}


def _floored_divisions(graph: OnnxGraph) -> list[tuple[OnnxNode, ...]]:
    """Return each floor after a division, the division, and what is added between, if anything."""
    makers = _makers(graph)
    found = []
    for node in graph.nodes:
        chain = [node, *_before(makers, node)]
        if node.op == "Floor" and chain[-1].op == "Add":
            constants = [name in graph.constants for name in chain[-1].inputs]
            chain[1:1] = _before(makers, chain[-1]) if any(constants) else []
        if node.op == "Floor" and len(chain) > 1 and chain[1].op == "Div":
            found.append(tuple(chain))
    return found


def _before(makers: Mapping[str, OnnxNode], node: OnnxNode) -> list[OnnxNode]:
    return [makers[name] for name in node.inputs if name in makers]


def floor_chains(graph: OnnxGraph) -> tuple[OnnxNode, ...]:
    """Return the floors after a division of a value that was multiplied or added to."""
    makers, found = _makers(graph), []
    for floor, division, *_ in _floored_divisions(graph):
        before = makers.get(division.input(0))
        if before is not None and before.op in ("Mul", "Add"):
            operands = [graph.constants.get(name) for name in before.inputs]
            scaled = before.op == "Mul" or any(
                getattr(makers.get(name), "op", "") == "Mul" for name in before.inputs
            )
            if scaled and any(operand is not None for operand in operands):
                found.append(floor)
    return tuple(found)


def bare_chains(graph: OnnxGraph) -> tuple[OnnxNode, ...]:
    """Return the floors after a division of plain sums of products, possibly with a bias."""
    scaled = floor_chains(graph)
    return tuple(floor for floor, *_ in _floored_divisions(graph) if floor not in scaled)
