"""A retargeted network as a graph in the integer form."""

from __future__ import annotations

from htvm.quantization.graph import Net
from htvm.quantization.operators import Operator
from patterns.op import TensorType
from patterns.reading.building import GraphBuilder
from patterns.reading.graph import Graph

__all__ = ["emitted"]


def emitted(net: Net) -> Graph:
    """Return the graph; inputs and operators keep the names of the network.

    Raises:
        UnsupportedError: an operator is in no accelerator's scheme.
    """
    builder = GraphBuilder(
        (name, TensorType((1, *_source_shape(shape, net)))) for name, shape in net.inputs.items()
    )
    for op in _needed(net):
        op.apply(builder)
    return builder.graph(net.outputs)


def _needed(net: Net) -> list[Operator]:
    """The operators that outputs depend on; conversions for other kept operators are useless."""
    wanted, found = set(net.outputs), []
    for op in reversed(net.operators):
        if op.name in wanted:
            found.append(op)
            wanted.update(op.inputs)
    return found[::-1]


def _source_shape(shape: tuple[int, ...], net: Net) -> tuple[int, ...]:
    if net.channel_first and len(shape) == 3:
        return shape[2], shape[0], shape[1]
    return shape
