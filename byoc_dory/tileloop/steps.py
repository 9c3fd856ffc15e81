"""What a tile program gives a driver for one tile, as plain data: blocks to move, and triggers."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def size(self) -> int:
        """Total number of bytes."""
        return self.channels * self.rows * self.bytes

    def runs(self) -> tuple[int, int]:
        """Return (number, bytes) of the contiguous runs of one channel."""
        if self.rows == 1 or self.l2_row_stride == self.l1_row_stride == self.bytes:
            return 1, self.rows * self.bytes
        return self.rows, self.bytes

    def commands(self) -> tuple[int, int]:
        """Return (number, bytes) of the 1-D commands after collapsing contiguous dimensions."""
        rows, size = self.runs()
        alone = self.channels == 1
        if rows == 1 and (alone or self.l2_channel_stride == self.l1_channel_stride == size):
            return 1, size * self.channels
        return self.channels * rows, size


class Trigger:
    """The computation of one tile on an accelerator: a `Call`, or a subclass of its own."""


@dataclass(frozen=True)
class Call(Trigger):
    """A trigger of any kind: its name, and its fields by name, for one tile."""

    name: str
    fields: dict[str, int | str | tuple[int, ...]]

    def number(self, name: str) -> int:
        """A field that is a number."""
        value = self.fields[name]
        assert isinstance(value, int), (self.name, name)
        return value
