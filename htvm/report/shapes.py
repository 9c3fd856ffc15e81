"""Sizes of a layer in words, the same in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byoc_dory.layers.layer import Layer

__all__ = ["describe"]


def describe(layer: Layer) -> str:
    """Sizes of a layer, maps first: ``"16x32x32 -> 32x16x16, 3x3/2"`` (filter / stride)."""
    if layer.op == "dense":
        return f"{layer.C} -> {layer.K}"
    if layer.op == "add":
        return f"{layer.K}x{layer.oy}x{layer.ox}"
    sizes = f"{layer.C}x{layer.iy}x{layer.ix} -> {layer.K}x{layer.oy}x{layer.ox}"
    sy, sx = layer.stride
    stride = "" if (sy, sx) == (1, 1) else f"/{sy}" if sy == sx else f"/{sy}x{sx}"
    return f"{sizes}, {layer.fy}x{layer.fx}{stride}"
