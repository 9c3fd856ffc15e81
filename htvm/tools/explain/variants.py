"""A layer with other sizes, to evaluate changes with the rules, packing and the cost model.

Weights are zeros, because only sizes matter; the arithmetic is a single shift, until
`byoc_dory.soc.schemes.NumberScheme.form_of` rewrites it for an accelerator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from byoc_dory.layers import (
    Convolution,
    Dense,
    Layer,
    Shift,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_resizable(layer: Layer) -> TypeGuard[Convolution | Dense]:
    """Whether `resized` applies: to dense layers, and convolutions with one group or depthwise."""
    if isinstance(layer, Convolution):
        return layer.full or layer.depthwise
    return isinstance(layer, Dense)


def resized(
    layer: Layer,
    *,
    K: int | None = None,
    C: int | None = None,
    kernel: tuple[int, int] | None = None,
    stride: tuple[int, int] | None = None,
) -> Layer:
    """Return the layer with other sizes; its output's height and width follow from them.

    Args:
        layer: a convolution with one group, a depthwise convolution, or a dense layer.
        K, C: output and input channels; for a depthwise layer, K sets both.
        kernel: (fy, fx).  Paddings change with it so that the output keeps its size at stride 1.
        stride: (y, x).

    Raises:
        ValueError: the layer does not have these sizes.
        ModelError: the sizes contradict each other.
    """
    if not is_resizable(layer):
        raise ValueError(f"a {layer.op} of {layer.groups} groups cannot be resized")
    k, c = K or layer.K, C or layer.C
    fy, fx = kernel or (layer.fy, layer.fx)
    source = layer.inputs[0]
    shared_fields: Mapping[str, Any] = {
        "requant": Shift(0),
        "clip": (0, 127) if layer.relu else _INT8,
    }
    if isinstance(layer, Dense):
        return dense_layer(
            layer.name, replace(source, shape=(c,), dtype="int8"), layer.output.name,
            np.zeros((k, c, 1, 1), np.int8), np.zeros(k, np.int32), **shared_fields,
        )  # fmt: skip
    build = depthwise_layer if layer.depthwise else conv2d_layer
    channels = k if layer.depthwise else c
    return build(
        layer.name,
        replace(source, shape=(channels, layer.iy, layer.ix), dtype="int8"),
        layer.output.name,
        np.zeros((k, 1 if layer.depthwise else c, fy, fx), np.int8),
        np.zeros(k, np.int32),
        stride=stride or layer.stride,
        pad=_padding(layer, fy, fx),
        **shared_fields,
    )


_INT8 = (-128, 127)


def _padding(layer: Layer, fy: int, fx: int) -> tuple[int, int, int, int]:
    """Return the layer's padding, adjusted to its new kernel, starting at the end."""
    top, left, bottom, right = layer.pad
    top, bottom = _shared(top, bottom, fy - layer.fy)
    left, right = _shared(left, right, fx - layer.fx)
    return top, left, bottom, right


def _shared(before: int, after: int, more: int) -> tuple[int, int]:
    total = max(0, before + after + more)
    begin = min(total, max(0, before + more // 2))
    return begin, total - begin
