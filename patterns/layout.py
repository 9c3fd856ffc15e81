"""Which layout a tensor has that only element-wise operators touch.

A sum does not say whether its four axes are NHWC or NCHW, and by itself need not.  Inside a region
it must agree with the convolutions it is connected to, because there tensors have channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.layer import Layer, Layout, Tensor

if TYPE_CHECKING:
    from patterns.read import Node

__all__ = ["with_layouts"]

_NEUTRAL = ("add", "convert", "pad", "softmax")
"""Operators that neither know their layout nor change it."""


def with_layouts(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, sums laid out like the convolutions and pools they are connected to.

    A sum that is connected to none, or to some of either layout, keeps NHWC.

    Args:
        nodes: in execution order.
    """
    homes: dict[str, str] = {}

    def home(tensor: str) -> str:
        while tensor in homes:
            tensor = homes[tensor]
        return tensor

    known: list[tuple[str, str]] = []
    for node in nodes:
        if node.kind in _NEUTRAL:
            for name in node.inputs:
                if home(name) != home(node.output):
                    homes[home(name)] = home(node.output)
        layout = _layout_of(node)
        if layout is not None:
            known += [(tensor, layout) for tensor in (*node.inputs, node.output)]
    found: dict[str, set[str]] = {}
    for tensor, layout in known:
        found.setdefault(home(tensor), set()).add(layout)
    return tuple(
        replace(node, layer=_channels_first(node.layer))
        if node.kind == "add" and node.layer and found.get(home(node.output)) == {"NCHW"}
        else node
        for node in nodes
    )


def _layout_of(node: Node) -> str | None:
    """The layout an operator prescribes; that of a padding is a guess (see `patterns.read`)."""
    if node.kind in ("conv2d", "depthwise") and node.layer is not None:
        return node.layer.output.layout
    return str(node.attrs["layout"]) if node.kind in ("average_pool", "max_pool") else None


def _channels_first(layer: Layer) -> Layer:
    """A sum read as NHWC, read as NCHW instead."""
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
        K=channels,
        C=channels,
        iy=y,
        ix=x,
        oy=y,
        ox=x,
    )
