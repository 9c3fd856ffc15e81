"""The convolution with stride 1 that N-EUREKA executes for a layer.

Strides of 1x1 are strides of addresses.  Convolutions with other filters than the engine's, or 3x3
with a stride, are executed as 1x1 on windows: the cores copy each output's window, which is one
pixel with as many channels as the filter has weights.  With stride 2 and few channels this takes
longer than pairs of pixels: two neighbours are one pixel with twice the channels, and the filter
covers the pairs before, at and after an output's, with zeros where the layer has no weight.  This
halves the columns; rows are all computed, and every other one is dropped when the result is stored.
Depthwise with stride 2, which has no sums over channels, computes all pixels; the cores copy those
that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_dory.layers import Array, Convolution, Weighted
from byoc_dory.soc.base import round_up

_FILTERS = ((1, 1), (3, 3))  # the engine's own
# Most channels of which pairs are one tile of input channels: there the cores would take longer to
# copy windows.
_IN_PAIRS = 14
_WORD = 4  # bytes that the cores copy at a time


@dataclass(frozen=True, eq=False)
class View:
    """A convolution with stride 1.

    Attributes:
        channels: input channels.
        weight: int64 ``[K, channels, f, f]``, depthwise ``[C, 1, f, f]``.
        pixel, row: bytes from pixel to pixel of the input, and from row to row.
        left, right: columns of padding.
        columns: columns computed.
        row_step: rows computed for each row that is kept.
        column_step: columns computed for each column that is kept.
        windows: whether pixels are windows that the cores copy.
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
    windows: bool = False


def keeps_some(layer: Weighted) -> bool:
    """Whether a depthwise layer computes pixels that are dropped."""
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    return depthwise and layer.fy == 3 and layer.stride == (2, 2)


def in_pairs(layer: Weighted) -> bool:
    """Whether a layer is executed on pairs of pixels."""
    if not isinstance(layer, Convolution) or not layer.full or layer.ix % 2:
        return False
    is_3x3 = layer.fy == layer.fx == 3 and layer.stride == (2, 2)
    return is_3x3 and layer.C <= _IN_PAIRS and layer.pad[1] <= 1 and max(layer.pad) <= 2


def in_windows(layer: Weighted) -> bool:
    """Whether a layer is executed on windows."""
    if not isinstance(layer, Convolution) or not layer.full or in_pairs(layer):
        return False
    own = (layer.fy, layer.fx) in _FILTERS
    return not own or (layer.fy == 3 and layer.stride != (1, 1))


@lru_cache(maxsize=256)  # called for every tile size that is considered
def view_of(layer: Weighted) -> View:
    """Return what the engine executes for a layer that the rules accept."""
    weight, row = layer.weight.astype(np.int64), layer.C * layer.ix
    if keeps_some(layer):
        left, columns = layer.pad[1], 2 * layer.ox - 1
        right = max(0, columns + 2 - left - layer.ix)
        return View(layer.C, weight, layer.C, row, left, right, columns, 2, 2)
    if in_windows(layer):
        line = layer.fx * layer.C
        # Rows are copied in whole words, the last one without reaching the next window.  The number
        # of words is odd, so that the cores do not write to the same bank at a time.
        words = -(-((layer.fy - 1) * line + round_up(line, _WORD)) // _WORD)
        pixel = (words | 1) * _WORD
        weight = weight.transpose(0, 2, 3, 1).reshape(layer.K, layer.fy * line, 1, 1)
        return View(layer.fy * line, weight, pixel, pixel * layer.ox, 0, 0, layer.ox, windows=True)
    if in_pairs(layer):
        return _pairs(layer, weight, row)
    sy, sx = layer.stride
    left, right = layer.pad[1], layer.pad[3]
    return View(layer.C, weight, layer.C * sx, row * sy, left, right, layer.ox)


def _pairs(layer: Weighted, weight: Array, row: int) -> View:
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
