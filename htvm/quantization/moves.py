"""Operators that only move elements, as an index for retargeting, which lets scales through them.

The index serves for every layout and every operator alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from htvm.quantization.graph import Array

if TYPE_CHECKING:
    from patterns.ops.moves.base import Move

__all__ = ["from_source", "index_of", "to_source"]


def to_source(x: Array, channel_first: bool) -> Array:
    """``[N, y, x, C]`` (or fewer axes) in the module's own layout."""
    return np.moveaxis(x, -1, 1) if channel_first and x.ndim == 4 else x


def from_source(x: Array, channel_first: bool) -> Array:
    """The other way round."""
    return np.moveaxis(x, 1, -1) if channel_first and x.ndim == 4 else x


def index_of(move: Move, shapes: Sequence[tuple[int, ...]], channel_first: bool) -> Array:
    """Which element each of the result's is; -1 for the filling.

    Args:
        move: the operator.
        shapes: of its inputs, channel-last, without batch.
        channel_first: whether the module's own layout is NCHW.

    Returns:
        int64, flat, in the order of a channel-last result.
    """
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        numbers = np.arange(start, start + size).reshape(1, *shape)
        parts.append(to_source(numbers, channel_first))
        start += size
    return from_source(move.moved(parts, -1), channel_first).reshape(-1)
