"""In which range a layer's inputs are known to lie, because of what made them.

A core with fewer bits than eight takes a layer only if its inputs provably fit.  A clip bounds what
it clips; the sums of a layer with one right shift are bounded by its weights, too, which often is
less than its clip lets through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Layer, Shift, Weighted
from patterns.reading.node import Node, Unclassed

__all__ = ["Range", "shifted_range", "with_ranges"]

Range: TypeAlias = tuple[int, int]

_INT8: Range = (-128, 127)
_SELECTING = ("max_pool",)
"""Operators whose results are some of their inputs."""


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, their layers told the range of their inputs.

    Args:
        nodes: in execution order.
    """
    known: dict[str, Range] = {}
    result = []
    for node in nodes:
        inputs = [known.get(name, _INT8) for name in node.inputs]
        known[node.output] = _range_of(node, inputs)
        if node.layer is not None:
            node = replace(node, layer=replace(node.layer, input_range=_union(inputs)))
        result.append(node)
    return tuple(result)


def shifted_range(layer: Layer, inputs: Sequence[Range]) -> Range:
    """The range of the output of a layer that requantizes by one right shift.

    Args:
        layer: its weights and bias, or for an add nothing, bound the sums.
        inputs: range of each operand.
    """
    assert isinstance(layer.requant, Shift)
    if not isinstance(layer, Weighted):
        least, most = (sum(ends) for ends in zip(*inputs, strict=True))
    else:
        ((low, high),) = inputs
        if any(layer.pad):
            low, high = min(low, 0), max(high, 0)
        rows = layer.weight.reshape(layer.K, -1).astype(np.int64)
        positive = np.maximum(rows, 0).sum(axis=1)
        negative = np.minimum(rows, 0).sum(axis=1)
        bias = np.zeros(layer.K, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
        least = int((bias + positive * low + negative * high).min())
        most = int((bias + positive * high + negative * low).max())
    shift = layer.requant.shift
    bottom, top = layer.clip
    return min(max(least >> shift, bottom), top), min(max(most >> shift, bottom), top)


def _union(ranges: Sequence[Range]) -> Range:
    if not ranges:
        return _INT8
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """The range of what an operator computes."""
    if node.scaled is not None:
        known = isinstance(node.scaled.requant, Shift) and set(node.input_dtypes) == {"int8"}
        return shifted_range(node.scaled, inputs) if known else node.scaled.clip
    read = _union(inputs)
    if not isinstance(node.op, Unclassed):
        return node.op.range(inputs)
    if node.kind in _SELECTING:
        return read
    clip = _clip(node.attrs)
    if node.kind == "average_pool":
        # A mean lies between its inputs.
        return max(clip[0], read[0]), min(clip[1], read[1])
    return clip


def _clip(attrs: Mapping[str, object]) -> Range:
    clip = attrs.get("clip")
    return (clip[0], clip[1]) if isinstance(clip, tuple) and len(clip) == 2 else _INT8
