"""Inferring layouts of tensors from the operators that prescribe one.

A sum does not tell whether its four axes are NHWC or NCHW, and need not know.  Inside a region it
must agree with the convolutions it is connected to, because tensors there have channels.  A padding
of only the third axis pads columns in NHWC and rows in NCHW.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_dory.layers import Add, Layout, Tensor
from patterns.ops.moves.base import Move
from patterns.reading.node import Node


def layouts_of(nodes: Sequence[Node]) -> Mapping[str, Layout]:
    """Return the layout of each tensor whose four axes an operator gives a meaning.

    It is carried on by operators that compute element by element, and by those that do not depend
    on it.  Where operators contradict each other, none is known.

    Args:
        nodes: operators in execution order.
    """
    return {
        tensor: next(iter(layouts))
        for tensor, layouts in _layouts(nodes, _keeps_axes).items()
        if len(layouts) == 1
    }


def _keeps_axes(node: Node) -> bool:
    same = node.input_shapes == (node.output_shape,) and not isinstance(node.op, Move)
    return node.op.neutral or same


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
    layouts = _layouts(nodes, lambda node: node.op.neutral)
    neutral = [node.output for node in nodes if node.op.neutral]
    return {tensor for tensor in neutral if layouts.get(tensor) == {"NCHW"}}


def _layouts(nodes: Sequence[Node], keeps: Callable[[Node], bool]) -> dict[str, set[Layout]]:
    """Return what is prescribed for each tensor, directly or through operators that ``keeps``."""
    homes: dict[str, str] = {}

    def home(tensor: str) -> str:
        while tensor in homes:
            # Halves the way for the next one: chains have thousands of operators.
            homes[tensor] = homes.get(homes[tensor], homes[tensor])
            tensor = homes[tensor]
        return tensor

    for node in nodes:
        for name in node.inputs if keeps(node) else ():
            if home(name) != home(node.output):
                homes[home(name)] = home(node.output)
    found: dict[str, set[Layout]] = {}
    for node in nodes:
        for tensor, layout in _prescribed(node):
            found.setdefault(home(tensor), set()).add(layout)
    tensors = {name for node in nodes for name in (*node.inputs, node.output)}
    return {tensor: found[home(tensor)] for tensor in tensors if home(tensor) in found}


def _prescribed(node: Node) -> Iterator[tuple[str, Layout]]:
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
