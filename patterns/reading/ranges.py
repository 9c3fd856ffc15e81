"""Proving ranges of layers' inputs from the operators that compute them.

A core with fewer than eight bits takes a layer only if its inputs provably fit.  A clip bounds its
result; the sums of a layer with one right shift are also bounded by its weights, often more tightly
than by its clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patterns.op import INT8, Range, union
from patterns.reading.node import Node

__all__ = ["with_ranges"]


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the operators, with the ranges of their inputs in their layers.

    Args:
        nodes: operators in execution order.
    """
    known: dict[str, Range] = {}
    result = []
    for node in nodes:
        inputs = [known.get(name, INT8) for name in node.inputs]
        known[node.output] = _range_of(node, inputs)
        if node.layer is not None:
            node = replace(node, layer=replace(node.layer, input_range=union(inputs)))
        result.append(node)
    return tuple(result)


def _range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """Return the range of an operator's result."""
    if node.scaled is not None and set(node.input_dtypes) != {"int8"}:
        return node.scaled.clip
    return node.op.range(inputs)
