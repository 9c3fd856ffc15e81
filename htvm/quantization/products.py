"""What retargeting computes with the weights of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array, Weighted
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from patterns.ops.scaling import factors_of, offset_of

if TYPE_CHECKING:
    from patterns.reading.node import Node


def weighted(node: Node) -> Weighted:
    """The layer of an operator that has weights."""
    assert isinstance(node.layer, Weighted), node.name
    return node.layer


def product_of(node: Node) -> Conv2d | Dense:
    """An operator of the source that has weights."""
    assert isinstance(node.op, Conv2d | Dense), node.name
    return node.op


def factor(layer: Weighted) -> Array:
    """Return real factors ``[K]`` from accumulator steps to output steps."""
    return np.broadcast_to(factors_of(layer.requant), (layer.K,))


def magnitude(layer: Weighted) -> Array:
    """Return magnitudes of the weights in steps of the output, ``[K, C / groups, taps]``."""
    weight = layer.weight.reshape(*layer.weight.shape[:2], -1)
    return np.abs(weight * factor(layer)[:, None, None])


def real(node: Node, x: Array, zero_point: int) -> Array:
    """Return the output before rounding and clipping, in steps of the output.

    Args:
        node: a layer with weights.
        x: its input, int8 ``[N, y, x, C]`` or ``[N, C]``.
        zero_point: of the input.
    """
    layer = weighted(node)
    sums = product_of(node).accumulate(x, zero_point).astype(np.float64) + layer.bias
    return np.asarray(sums * factor(layer) + offset_of(layer.requant))


def bias_of(layer: Weighted, zero_point: int) -> Array:
    """Return the addend of a layer's product in real numbers, in output steps, ``[K]``.

    It includes flooring, but not zero points.

    Args:
        layer: a layer of the source.
        zero_point: of its input.
    """
    plain = layer.weight.astype(np.int64).reshape(layer.K, -1).sum(axis=1)
    return np.asarray((layer.bias + zero_point * plain) * factor(layer) + offset_of(layer.requant))


# ------------------------------------------------------------------------------ channels


def per_input(layer: Weighted, values: Array) -> Array:
    """Reshape values ``[.., C]`` of inputs to broadcast over ``[.., K, C / groups]``."""
    return values[..., None] if layer.depthwise else values[..., None, :]


def over_inputs(layer: Weighted, matrix: Array, values: Array) -> Array:
    """``matrix [.., K, C / groups]`` times values ``[C]`` of inputs, summed: ``[.., K]``."""
    return np.asarray(matrix[..., 0] * values if layer.depthwise else matrix @ values)


def over_outputs(layer: Weighted, values: Array, matrix: Array) -> Array:
    """Values ``[K]`` of outputs times ``matrix [.., K, C / groups]``, summed: ``[.., C]``."""
    return np.asarray(values * matrix[..., 0] if layer.depthwise else values @ matrix)
