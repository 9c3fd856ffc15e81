"""Inferring layouts of tensors touched only by operators without a layout of their own.

A sum does not tell whether its four axes are NHWC or NCHW, and need not know.  Inside a region it
must agree with the convolutions it is connected to, because tensors there have channels.  A padding
of only the third axis pads columns in NHWC and rows in NCHW.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from byoc_dory.layers import Add, Layout, Tensor
from patterns.reading.node import Node

__all__ = ["with_layouts"]


def with_layouts(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, with sums and paddings in the layout of the convolutions and pools around.

    Operators connected to none of these, or to both layouts, keep NHWC.

    Args:
        nodes: operators in execution order, with all sums and ambiguous paddings read as NHWC.
    """
    channels_first = _channels_first_tensors(nodes)
    return tuple(_turned(node) if node.output in channels_first else node for node in nodes)


def _channels_first_tensors(nodes: Sequence[Node]) -> set[str]:
    """Return the tensors computed by neutral operators that are certainly NCHW."""
    homes: dict[str, str] = {}

    def home(tensor: str) -> str:
        while tensor in homes:
            tensor = homes[tensor]
        return tensor

    for node in nodes:
        for name in node.inputs if node.op.neutral else ():
            if home(name) != home(node.output):
                homes[home(name)] = home(node.output)
    found: dict[str, set[str]] = {}
    for node in nodes:
        for tensor, layout in _prescribed(node):
            found.setdefault(home(tensor), set()).add(layout)
    neutral = [node.output for node in nodes if node.op.neutral]
    return {tensor for tensor in neutral if found.get(home(tensor)) == {"NCHW"}}


def _prescribed(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the tensors of an operator with the layout it prescribes."""
    layout = node.op.prescribed
    if layout is not None:
        for tensor in (*node.inputs, node.output):
            yield tensor, layout


def _turned(node: Node) -> Node:
    """Return a neutral operator that was read as NHWC as NCHW instead."""
    if isinstance(node.layer, Add):
        return replace(node, layer=_turned_sum(node.layer))
    return replace(node, op=node.op.in_channels_first())


def _turned_sum(layer: Add) -> Add:
    if layer.output.layout != "NHWC":
        return layer
    # (C, y, x) of NHWC are the axes 3, 1, 2; of NCHW they are 1, 2, 3.
    channels, y, x = layer.oy, layer.ox, layer.K

    def turned(tensor: Tensor) -> Tensor:
        layout: Layout = "NCHW"
        return replace(tensor, shape=(channels, y, x), layout=layout)

    a, b = layer.inputs
    return replace(
        layer,
        inputs=(turned(a), turned(b)),
        output=turned(layer.output),
    )
