"""Integer forward passes over a batch, fast enough to calibrate with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated, channel_last, is_end
from htvm.quantization.islands import Island
from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.binary import OnnxAdd
from patterns.ops.scaling import factors_of
from patterns.ops.weighted import WeightedOp

if TYPE_CHECKING:
    from patterns.reading.node import Node

_TOGETHER = 1 << 16  # results that a layer computes at a time


def forward(net: Annotated, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return every tensor of the network for a batch of inputs.

    Args:
        net: the network.  A softmax and everything after it is not computed.
        inputs: name -> int8 ``[N, y, x, C]`` or ``[N, C]``.

    Returns:
        name -> int8 array of every tensor, including the inputs.
    """
    tensors = dict(inputs)
    for node in net.nodes:
        if not is_end(node) and all(name in tensors for name in node.inputs):
            parts = [tensors[name] for name in node.inputs]
            tensors[node.name] = run(node, parts, net.channel_first, net.zeros[node.inputs[0]])
    return tensors


def run(node: Node, parts: Sequence[Array], channel_first: bool, zero_point: int) -> Array:
    """Return the int8 output of an operator for a batch of its inputs, ``[N, ...]``.

    Args:
        node: the operator.
        parts: its inputs, channel-last.
        channel_first: whether the module's own layout is NCHW.
        zero_point: of its first input, with which convolutions are padded.
    """
    match node.op:
        case WeightedOp() as op:
            # A few samples at a time: what is computed in 64 bits stays in the processor's cache,
            # and networks with large maps need no memory for it.
            x, count = parts[0], max(1, _TOGETHER // int(np.prod(node.output_shape)))
            few = (x[start : start + count] for start in range(0, len(x), count))
            return np.concatenate([op.compute([some], zero_point) for some in few])
        case OnnxAdd() as op:
            return _summed(op, parts)
        case Island() as op:
            own = [_to_source(x, channel_first) for x in parts]
            return _from_source(op.run(own), channel_first)
        case Reshape() as op:
            x = _to_source(parts[0], channel_first)
            return _from_source(x.reshape(len(x), *op.shape[1:]), channel_first)
        case Move() as op:
            index = index_of(node, channel_first)
            flat = np.concatenate([x.reshape(len(x), -1) for x in parts], axis=1)
            fill = op.value if isinstance(op, Filling) else 0
            out = np.where(index < 0, np.int8(fill), flat[:, index])
            return out.reshape(len(out), *channel_last(node.output_shape, channel_first))
    return node.op.compute(parts)


def _summed(op: OnnxAdd, parts: Sequence[Array]) -> Array:
    """The sum in 64 bits, which is rounded once: float32 differs where it rounds to a tie."""
    (left, right), (a, b) = factors_of(op.requant), op.requant.input_zero_points
    first, second = (x.astype(np.int64) for x in parts)
    total = (first - a) * left + (second - b) * right + op.requant.output_zero_point
    return np.clip(np.rint(total), *op.clip).astype(np.int8)


def index_of(node: Node, channel_first: bool) -> Array:
    """Return the source index of each element of a move's result; -1 for the filling.

    Returns:
        Flat int64 array, in the order of a channel-last result; elements are counted through all
        channel-last inputs, one after the other.
    """
    assert isinstance(node.op, Move), node.name
    parts, start = [], 0
    for shape in node.input_shapes:
        size = int(np.prod(shape))
        own = (1, *channel_last(shape, channel_first))
        parts.append(_to_source(np.arange(start, start + size).reshape(own), channel_first))
        start += size
    return _from_source(node.op.moved(parts, -1), channel_first).reshape(-1)


def _to_source(x: Array, channel_first: bool) -> Array:
    """Return a batch ``[N, y, x, C]`` (or of fewer axes) in the module's own layout."""
    return np.moveaxis(x, -1, 1) if channel_first and x.ndim == 4 else x


def _from_source(x: Array, channel_first: bool) -> Array:
    """Return a batch in the module's own layout as ``[N, y, x, C]``."""
    return np.moveaxis(x, 1, -1) if channel_first and x.ndim == 4 else x
