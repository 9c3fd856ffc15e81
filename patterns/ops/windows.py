"""Windows that move over maps: their number, and views in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers.layer import out_size

if TYPE_CHECKING:
    from byoc_dory.layers import Array


def counts(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
) -> tuple[int, int]:
    """Return the number of windows (y, x) on maps of these sizes; 0 where none fits."""
    y, x = (
        out_size(
            sizes[axis], padding[axis] + padding[axis + 2], kernel[axis], strides[axis],
            dilation[axis],
        )
        for axis in (0, 1)
    )  # fmt: skip
    return y, x


def windows(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    value: int,
    dilation: tuple[int, int] = (1, 1),
) -> Array:
    """Return a view of the windows on maps.

    Args:
        x: ``[N, y, x, C]``.
        kernel: rows and columns of a window.
        strides: of windows.
        padding: (top, left, bottom, right).
        value: of the padding.
        dilation: distance (y, x) of the elements of a window.

    Returns:
        ``[N, oy, ox, C, rows, columns]``.
    """
    if any(padding):
        top, left, bottom, right = padding
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        x = np.pad(x, border, constant_values=value)
    (dy, dx), (rows, columns) = dilation, kernel
    span = (rows - 1) * dy + 1, (columns - 1) * dx + 1
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(1, 2))
    return np.asarray(view[:, :: strides[0], :: strides[1], :, ::dy, ::dx])
