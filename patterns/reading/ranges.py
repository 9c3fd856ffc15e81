"""In which range a layer's inputs are known to lie, because of what made them.

A core with fewer bits than eight takes a layer only if its inputs provably fit.  A clip bounds what
it clips; the sums of a layer with one right shift are bounded by its weights, too, which often is
less than its clip lets through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patterns.op import INT8, Range, union
from patterns.reading.node import Node

__all__ = ["with_ranges"]


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, their layers told the range of their inputs.

    Args:
        nodes: in execution order.
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
    """The range of what an operator computes."""
    if node.scaled is not None and set(node.input_dtypes) != {"int8"}:
        return node.scaled.clip
    return node.op.range(inputs)
