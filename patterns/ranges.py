"""In which range a layer's inputs are known to lie, because of the clips that made them.

A core with fewer bits than eight takes a layer only if its inputs provably fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from patterns.read import Node

__all__ = ["Range", "with_ranges"]

Range: TypeAlias = tuple[int, int]

_INT8: Range = (-128, 127)
_SELECTING = ("max_pool", "reshape")
"""Operators whose results are some of their inputs."""


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, their layers told the range of their inputs.

    Args:
        nodes: in execution order.
    """
    known: dict[str, Range] = {}
    result = []
    for node in nodes:
        found = _union([known.get(name, _INT8) for name in node.inputs])
        known[node.output] = _range_of(node, found)
        if node.layer is not None:
            node = replace(node, layer=replace(node.layer, input_range=found))
        result.append(node)
    return tuple(result)


def _union(ranges: Sequence[Range]) -> Range:
    if not ranges:
        return _INT8
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _range_of(node: Node, inputs: Range) -> Range:
    """The range of what an operator computes."""
    if node.layer is not None:
        return node.layer.clip
    if node.kind in _SELECTING:
        return inputs
    if node.kind == "pad":
        fill = node.attrs["value"]
        assert isinstance(fill, int)
        return _union([inputs, (fill, fill)])
    clip = _clip(node.attrs)
    if node.kind == "average_pool":
        # A mean lies between its inputs.
        return max(clip[0], inputs[0]), min(clip[1], inputs[1])
    return clip


def _clip(attrs: Mapping[str, object]) -> Range:
    clip = attrs.get("clip")
    return (clip[0], clip[1]) if isinstance(clip, tuple) and len(clip) == 2 else _INT8
