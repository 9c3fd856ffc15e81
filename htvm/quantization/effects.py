"""What each kind of operator does to scales and to noise, and what is computed with weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Add, Array, OnnxRequant, TfliteRequant, Weighted
from htvm.quantization.annotated import Annotated, passes
from htvm.quantization.forward import index_of
from patterns.ops.convert import Convert
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.base import Move
from patterns.ops.moves.reshape import Reshape
from patterns.ops.scaling import factors_of, offset_of
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import ADD_LEFT_SHIFT

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


def channel_factors(layer: Weighted) -> Array:
    """Return real factors ``[K]`` from accumulator steps to output steps."""
    return np.broadcast_to(factors_of(layer.requant), (layer.K,))


def weight_magnitudes(layer: Weighted) -> Array:
    """Return magnitudes of the weights in steps of the output, ``[K, C / groups, taps]``."""
    weight = layer.weight.reshape(*layer.weight.shape[:2], -1)
    return np.abs(weight * channel_factors(layer)[:, None, None])


def real_output(node: Node, x: Array, zero_point: int) -> Array:
    """Return the output before rounding and clipping, in steps of the output.

    Args:
        node: a layer with weights.
        x: its input, int8 ``[N, y, x, C]`` or ``[N, C]``.
        zero_point: of the input.
    """
    layer = weighted(node)
    sums = product_of(node).accumulate(x, zero_point).astype(np.float64) + layer.bias
    return np.asarray(sums * channel_factors(layer) + offset_of(layer.requant))


def bias_of(layer: Weighted, zero_point: int) -> Array:
    """Return the addend of a layer's product in real numbers, in output steps, ``[K]``.

    It includes flooring, but not zero points.

    Args:
        layer: a layer of the source.
        zero_point: of its input.
    """
    plain = layer.weight.astype(np.int64).reshape(layer.K, -1).sum(axis=1)
    return np.asarray(
        (layer.bias + zero_point * plain) * channel_factors(layer) + offset_of(layer.requant)
    )


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


_ALIGNED = 0.5  # what is left of the rounding of an average on the source's own grid, of 1 + 1


def operand_factors(node: Node) -> tuple[Array, Array]:
    """Return real factors ``[1]`` from steps of each operand of an add to output steps."""
    assert isinstance(node.scaled, Add), node.name
    factor = factors_of(node.scaled.requant)
    if isinstance(node.scaled.requant, TfliteRequant):
        first, second, out = factor[:, None]
        lift = 2.0**ADD_LEFT_SHIFT
        return first * out * lift, second * out * lift
    if isinstance(node.scaled.requant, OnnxRequant):
        return factor[:1], factor[1:]
    return factor, factor


def before_clip(net: Annotated, node: Node, tensors: Mapping[str, Array]) -> Array:
    """Return the output relative to its zero point, before it is clipped, in real numbers.

    Args:
        net: the network.
        node: one of its operators.
        tensors: tensors of the network by name.
    """
    if isinstance(node.scaled, Weighted):
        return real_output(node, tensors[node.inputs[0]], net.zeros[node.inputs[0]])
    if isinstance(node.scaled, Add):
        parts = zip(node.inputs, operand_factors(node), strict=True)
        first, second = ((tensors[t].astype(np.float64) - net.zeros[t]) * f for t, f in parts)
        return np.asarray(first + second)
    return np.asarray(tensors[node.name].astype(np.float64) - net.zeros[node.name])


def rounding(node: Node, step: Array) -> Array:
    """The variance of rounding the output to steps ``[C, G]``, in squared source steps.

    An average varies so little between source and result that on the same grid both round alike,
    and on different grids the source's rounding adds to ours.
    """
    if isinstance(node.op, AveragePool):
        return np.where(step == 1.0, _ALIGNED, 1.0 + step**2) / 12
    return np.zeros(step.shape) if passes(node) else np.asarray(step**2 / 12)


def pass_back(net: Annotated, node: Node, through: Array) -> list[Array]:
    """Return gains ``[C]`` of each input from those of the output.

    Args:
        net: the network.
        node: one of its operators.
        through: per channel, output noise power per unit of variance of the output.
    """
    match node.scaled or node.op:
        case Weighted() as layer:
            squares = np.square(weight_magnitudes(layer)).sum(axis=-1)
            return [over_outputs(layer, through, squares) / np.prod(layer.stride)]
        case Add():
            return [through * factor**2 for factor in operand_factors(node)]
        case Convert(requant=requant):
            return [through * factors_of(requant) ** 2]
        case AveragePool(kernel=kernel, strides=strides):
            return [through / (np.prod(kernel) * np.prod(strides))]
        case MaxPool(strides=strides):
            return [through / np.prod(strides)]
        case Reshape():
            channels = net.shapes(node)[0][-1]
            if not net.channel_first and len(through) % channels == 0:
                return [through.reshape(-1, channels).mean(axis=0)]
            return [np.full(channels, through.mean())]
    gains = []
    # Each element counts as often as it is taken.
    for shape, taken, target in _taken_elements(net, node):
        back = np.zeros(shape[-1])
        np.add.at(back, taken % shape[-1], through[target])
        gains.append(back * shape[-1] / int(np.prod(shape)))
    return gains


def ratio(node: Node) -> float:
    """The factor between input and output steps of an operator that passes scales through."""
    return float(factors_of(node.op.requant)[0]) if isinstance(node.op, Convert) else 1.0


def lanes(net: Annotated, node: Node) -> list[Array | None]:
    """Which channels of inputs and output belong together, for each input.

    With one input: the input channel that each output channel comes from; with several: for each,
    the output channel that each of its channels goes to.  ``None`` if channels are unchanged, empty
    if they are mixed.
    """
    after = net.shape(node.name)
    if isinstance(node.op, Reshape):
        (before,) = net.shapes(node)
        if before[-1] == after[-1]:
            return [None]
        if len(after) == 1 and after[0] == int(np.prod(before)):
            own = np.arange(before[-1])
            places = int(np.prod(before[:-1]))
            return [np.repeat(own, places) if net.channel_first else np.tile(own, places)]
        return [np.zeros(0, np.int64)]  # channels get mixed: one lane for all
    found: list[Array | None] = []
    for shape, taken, target in _taken_elements(net, node) if isinstance(node.op, Move) else ():
        source, size = taken % shape[-1], after[-1]
        if len(node.inputs) > 1:
            source, target, size = target, source, shape[-1]
        own = np.full(size, -1)
        own[target] = source
        whole = bool((own >= 0).all() and (own[target] == source).all())
        found.append(own if whole else np.zeros(0, np.int64))
    return found or [None] * len(node.inputs)


def _taken_elements(net: Annotated, node: Node) -> Iterator[tuple[tuple[int, ...], Array, Array]]:
    """Yield for each input of a move its shape, the elements that are taken of it, and the channels
    they go to."""
    index, start = index_of(node, net.channel_first), 0
    channels = np.arange(index.size) % net.channels(node.name)
    for shape in net.shapes(node):
        size = int(np.prod(shape))
        taken = (index >= start) & (index < start + size)
        yield shape, index[taken] - start, channels[taken]
        start += size
