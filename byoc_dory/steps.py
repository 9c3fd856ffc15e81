"""What a schedule is made of: DMA transfers and triggers, as plain data.

Offsets are logical bytes, in L2 relative to the tensor, in L1 relative to its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "AddTrigger",
    "Block",
    "ConvTrigger",
    "DenseTrigger",
    "Load",
    "Step",
    "Store",
]


@dataclass(frozen=True)
class Block:
    """A block that one DMA call moves: channels x rows x bytes, strides in bytes."""

    channels: int
    rows: int
    bytes: int
    l2_channel_stride: int
    l2_row_stride: int
    l1_channel_stride: int
    l1_row_stride: int

    def commands(self) -> tuple[int, int]:
        """(number, bytes) of the 1-D commands after collapsing contiguous dimensions."""
        rows, size = self.rows, self.bytes
        if rows == 1 or self.l2_row_stride == self.l1_row_stride == size:
            size, rows = size * rows, 1
            if self.channels == 1 or self.l2_channel_stride == self.l1_channel_stride == size:
                return 1, size * self.channels
        return self.channels * rows, size


@dataclass(frozen=True)
class Load:
    """Move a block of input operand ``operand`` from L2 to L1."""

    operand: int
    l2_offset: int
    l1_offset: int
    block: Block


@dataclass(frozen=True)
class Store:
    """Move a block of the output from L1 to L2."""

    l2_offset: int
    l1_offset: int
    block: Block


@dataclass(frozen=True)
class ConvTrigger:
    """A convolution of one tile (``depthwise``: one trigger per channel).

    ``pad_top`` and ``pad_left`` are zeros before the tile; negative values skip rows or columns.
    """

    k: int
    c: int
    iy: int
    ix: int
    oy: int
    ox: int
    fy: int
    fx: int
    stride: int
    pad_top: int
    pad_left: int
    shift: int
    relu: bool
    l1_in: int
    l1_out: int
    weight_offset: int
    depthwise: bool


@dataclass(frozen=True)
class DenseTrigger:
    """Up to one block of outputs of a fully connected layer."""

    k: int
    c: int
    shift: int
    relu: bool
    l1_in: int
    l1_out: int
    weight_offset: int


@dataclass(frozen=True)
class AddTrigger:
    """Element-wise sum of two flat runs of bytes."""

    elements: int
    shift: int
    relu: bool
    l1_a: int
    l1_b: int
    l1_out: int


Step: TypeAlias = Load | Store | ConvTrigger | DenseTrigger | AddTrigger
