"""The layout of activations in DIANA's memories: by channel, rows padded, groups reversed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.base import round_up


@dataclass(frozen=True)
class Map:
    """A tensor in the accelerator's layout: rows per channel, bytes per row."""

    rows: int
    pitch: int

    @property
    def channel(self) -> int:
        """Bytes of a channel."""
        return self.rows * self.pitch


def stored_bytes(shape: tuple[int, ...], pitch: int) -> int:
    """Return the bytes of a tensor in this layout: rows (or the vector) padded to ``pitch``."""
    if len(shape) == 1:
        return round_up(shape[0], pitch)
    channels, rows, columns = shape
    return channels * rows * round_up(columns, pitch)


def stored_offsets(shape: tuple[int, ...], pitch: int, group: int) -> Array:
    """Return the byte offset of each element of a tensor of bytes in the accelerator's layout.

    Args:
        shape: shape (C, y, x) or (C,).
        pitch: rows (or the vector) are padded to a multiple of this many bytes.
        group: aligned groups of this many bytes are stored in reverse order; a power of two.

    Returns:
        int64 array of that shape: bytes from the tensor's first byte.
    """
    columns = np.arange(shape[-1], dtype=np.int64)
    rows = np.arange(int(np.prod(shape[:-1])), dtype=np.int64) * round_up(shape[-1], pitch)
    return ((rows[:, None] + columns) ^ (group - 1)).reshape(shape)
