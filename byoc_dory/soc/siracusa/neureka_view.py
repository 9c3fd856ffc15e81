"""The convolution with stride 1 that N-EUREKA executes for a layer.

Strides of 1x1 are strides of addresses.  A 3x3 layer with stride 2 is executed on pairs of pixels:
two neighbours are one pixel with twice the channels, and the filter covers the pairs before, at and
after an output's, with zeros where the layer has no weight.  This halves the columns.  Rows are all
computed, and every other one is dropped when the result is stored.  Depthwise, which has no sums
over channels, computes all pixels; the cores copy those that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_dory.layers import Array, Convolution, Weighted

__all__ = ["View", "in_pairs", "keeps_some", "view_of"]


@dataclass(frozen=True, eq=False)
class View:
    """A convolution with stride 1.

    Attributes:
        channels: input channels.
        weight: int64 ``[K, channels, f, f]``, depthwise ``[C, 1, f, f]``.
        pixel, row: bytes from pixel to pixel of the input, and from row to row.
        left, right: columns of padding.
        row_step: rows computed for each row that is kept.
        column_step: columns computed for each column that is kept.
        columns: columns computed.
    """

    channels: int
    weight: Array
    pixel: int
    row: int
    left: int
    right: int
    columns: int
    row_step: int = 1
    column_step: int = 1


def keeps_some(layer: Weighted) -> bool:
    """Whether a depthwise layer computes pixels that are dropped."""
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    return depthwise and layer.fy == 3 and layer.stride == (2, 2)


def in_pairs(layer: Weighted) -> bool:
    """Whether a layer is executed on pairs of pixels."""
    full = isinstance(layer, Convolution) and layer.full
    return full and layer.fy == 3 and layer.stride == (2, 2) and layer.ix % 2 == 0


@lru_cache(maxsize=256)  # called for every tile size that is considered
def view_of(layer: Weighted) -> View:
    """Return what the engine executes for a layer that the rules accept."""
    weight, row = layer.weight.astype(np.int64), layer.C * layer.ix
    if keeps_some(layer):
        left, columns = layer.pad[1], 2 * layer.ox - 1
        right = max(0, columns + 2 - left - layer.ix)
        return View(layer.C, weight, layer.C, row, left, right, columns, 2, 2)
    if not in_pairs(layer):
        sy, sx = layer.stride
        left, right = layer.pad[1], layer.pad[3]
        return View(layer.C, weight, layer.C * sx, row * sy, left, right, layer.ox)
    left, channels = layer.pad[1], layer.C
    paired = np.zeros((layer.K, 2 * channels, 3, 3), np.int64)
    for pair in (-1, 0, 1):
        for half in (0, 1):
            column = 2 * pair + half + left
            if 0 <= column < layer.fx:
                place = slice(half * channels, (half + 1) * channels)
                paired[:, place, :, pair + 1] = weight[:, :, :, column]
    right = layer.ox + 1 - layer.ix // 2
    return View(2 * channels, paired, 2 * channels, row, 1, right, layer.ox, row_step=2)
