"""Grouped convolutions: as one over all channels, or one for each group."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from htvm.rewriting.filters import Filter, Pads, Rewritten
from htvm.rewriting.rewrite import Rewrite
from patterns.op import TensorType
from patterns.ops.convolution import conv2d_of
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.slice import Slice
from patterns.reading.node import Node, node_of


@dataclass(frozen=True)
class AllChannels(Rewrite):
    """A grouped convolution over all channels; the weights of other groups' channels are zero."""

    name = "all_channels"
    early = True

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions in several groups that are not depthwise."""
        if not _is_grouped(it):
            return None
        groups, weight = it.op.window.groups, it.op.weight
        k, each, fy, fx = weight.shape
        whole = np.zeros((k, it.channels, fy, fx), weight.dtype)
        for group in range(groups):
            rows = slice(group * k // groups, (group + 1) * k // groups)
            whole[rows, group * each : (group + 1) * each] = weight[rows]
        says = f"{groups} groups of {each} channels computed over all {it.channels}"
        return Rewritten(it.convolved(whole, it.pads, groups=1), says)


@dataclass(frozen=True)
class ByGroup(Rewrite):
    """A grouped convolution as one convolution for each group, whose results are joined."""

    name = "by_group"
    early = True

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions in several groups that are not depthwise."""
        if not _is_grouped(it):
            return None
        axis, groups = it.op.window.channel_axis, it.op.window.groups
        before, source, kind = it.padded(it.pads if it.value else (0, 0, 0, 0))
        pads = (0, 0, 0, 0) if it.value else it.pads
        parts, joined = list(before), []
        for group in range(groups):
            part = _slice(it, group, source, kind)
            conv = _group(it, group, part, pads)
            parts += [part, conv]
            joined.append(conv)
        results = [(conv.name, conv.result) for conv in joined]
        concat = node_of(it.name, Concat(axis), results, it.output)
        says = f"{groups} groups computed one by one"
        return Rewritten((*parts, concat), says)


def _slice(it: Filter, group: int, source: str, kind: TensorType) -> Node:
    """Return the part that takes a group's channels."""
    axis, each = it.op.window.channel_axis, it.op.weight.shape[1]
    begin, sizes = [0] * 4, list(kind.shape)
    begin[axis], sizes[axis] = group * each, each
    result = TensorType(tuple(sizes), kind.dtype)
    name = f"{it.name}_channels_{group}"
    return node_of(name, Slice.every(begin, sizes), [(source, kind)], result)


def _group(it: Filter, group: int, source: Node, pads: Pads) -> Node:
    """Return the convolution of one group."""
    op, axis = it.op, it.op.window.channel_axis
    count = len(op.weight) // op.window.groups
    rows = slice(group * count, (group + 1) * count)
    requant: Any = op.requant
    own = {
        field.name: value[rows]
        for field in fields(requant)
        if isinstance(value := getattr(requant, field.name), tuple) and len(value) == len(op.weight)
    }
    window = replace(op.window, padding=pads, groups=1)
    conv = conv2d_of(
        op.weight[rows], op.bias[rows], window, replace(requant, **own), op.clip, op.dtype
    )
    shape = list(it.output.shape)
    shape[axis] = count
    result = TensorType(tuple(shape), it.output.dtype)
    return node_of(f"{it.name}_group_{group}", conv, [(source.name, source.result)], result)


def _is_grouped(it: Filter) -> bool:
    groups = it.op.window.groups
    return groups > 1 and not groups == it.channels == len(it.op.weight)
