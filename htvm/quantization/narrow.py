"""Keeping tensors within fewer than eight bits where their producer cannot clip to them.

A ternary core reads seven bits.  The CPU and the core itself clip to seven bits; an 8-bit core does
not, so the sums of its layer must be small enough by themselves: the step of its output is widened
until weights and bias prove it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated, is_padded
from htvm.quantization.noise import WEIGHT_LIMIT
from htvm.quantization.rewrite import scaled_parameters
from htvm.quantization.search import Scales
from htvm.quantization.ties import Tie, find_ties
from patterns.reading.node import Node

_MARGIN = 1.04  # margin for rounding of the weights and mean errors in the bias
_SWEEPS = 4


def widen(net: Annotated, scales: Scales, *, per_channel: bool = True) -> Scales:
    """Return scales with which every sum of an 8-bit layer fits where fewer bits are read.

    Tensors whose step is fixed (results of the network) are not changed (see `readers_of_wide`).

    Args:
        net: the source.
        scales: scales chosen without this restriction.
        per_channel: as for choosing them.
    """
    tight = _tight(net)
    if not tight:
        return scales
    ties = find_ties(net, per_channel=per_channel)
    for _ in range(_SWEEPS):
        changed = False
        for node in tight:
            tie = ties.tie_of[node.name]
            excess = _excess(net, node, scales)
            anchored = tie.anchor(net, scales.zero_point) is not None
            if anchored or (excess <= 1.0).all():
                continue
            scales = _coarser(net, scales, tie, _by_lane(tie, node.name, excess * _MARGIN))
            changed = True
        if not changed:
            break
    return scales


def readers_of_wide(net: Annotated, scales: Scales) -> tuple[str, ...]:
    """Return the ternary layers whose inputs could not be kept small enough.

    Args:
        net: the source.
        scales: scales returned by `widen`.
    """
    wide_layers = [node.name for node in _tight(net) if (_excess(net, node, scales) > 1.0).any()]
    readers: dict[str, None] = {}
    while wide_layers:
        for node in net.graph.read_by(wide_layers.pop()):
            if net.core(node) is not None:
                readers[node.name] = None
            elif net.hands_limits_on(node):
                wide_layers.append(node.name)
    return tuple(readers)


def _tight(net: Annotated) -> list[Node]:
    """Return the layers that cannot clip to the fewer bits in which they are read."""
    return [
        node
        for node in net.products
        if not net.clips_freely(node) and net.needs_fewer_bits(node.name)
    ]


def _excess(net: Annotated, node: Node, scales: Scales) -> Array:
    """Return the factor by which the sums of each output channel may exceed the limits, ``[K]``."""
    weight, bias, shift = scaled_parameters(net, node, scales)
    zero_in, zero_out = scales.zero_point[node.inputs[0]], scales.zero_point[node.name]
    read = node.inputs[0]
    low, high = (bound - zero_in for bound in net.limits(read))
    if zero_in == 0 and net.rectified(read):
        low = 0
    if is_padded(node):
        low, high = min(low, 0), max(high, 0)
    rows = weight.reshape(len(weight), -1)
    up, down = np.maximum(rows, 0).sum(axis=1), np.minimum(rows, 0).sum(axis=1)
    most = (bias + up * high + down * low) / 2.0**shift - zero_out
    least = (bias + up * low + down * high) / 2.0**shift - zero_out
    bottom, top = (bound - zero_out for bound in net.limits(node.name))
    result = np.maximum(most / top, 0.0)
    if not (net.rectifies(node) and zero_out == 0):
        result = np.maximum(result, least / bottom)
    return np.asarray(result)


def _by_lane(tie: Tie, name: str, factor: Array) -> Array:
    """Return the largest factor of each lane of a tie, at least 1."""
    lanes = tie.members[name]
    result = np.ones(tie.lanes)
    np.maximum.at(result, lanes, factor)
    return result


def _coarser(net: Annotated, scales: Scales, tie: Tie, factor: Array) -> Scales:
    """Return the scales with the steps of a tie multiplied, and suitable shifts."""
    step = dict(scales.step)
    for name, lanes in tie.members.items():
        step[name] = step[name] * factor[lanes]
    scales = replace(scales, step=step)
    shift = dict(scales.shift)
    for name in tie.members:
        for node in (net.producer(name), *net.graph.read_by(name)):
            if node is not None and node.name in shift:
                shift[node.name] = _fitting(net, node, scales)
    return replace(scales, shift=shift)


def _fitting(net: Annotated, node: Node, scales: Scales) -> int:
    """Return the largest shift with which a layer's weights fit int8."""
    plain = replace(scales, shift={**scales.shift, node.name: 0})
    largest = float(np.abs(scaled_parameters(net, node, plain)[0]).max())
    if largest <= 0.0:
        return 0
    return int(np.clip(np.floor(np.log2(WEIGHT_LIMIT / largest)), 0, 31))
