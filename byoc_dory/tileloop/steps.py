"""The steps of a tile loop as plain data: transfers and triggers.

A transfer or trigger by itself is a driver call that ends when it is done.  If devices work in
parallel, `Queue`, `Prepare`, `Start`, `Finish` and `Wait` say when each of them begins and when it
must have ended.  Offsets are logical bytes, in L2 relative to the tensor, in L1 relative to its
start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Block",
    "Call",
    "Finish",
    "Load",
    "Prepare",
    "Queue",
    "Start",
    "Step",
    "Store",
    "Trigger",
    "Wait",
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


@dataclass(frozen=True)
class Load:
    """Move a block of input operand ``operand`` from L2 to L1.

    ``by_rows``: whether there is one command per row, even if rows are contiguous.
    """

    operand: int
    l2_offset: int
    l1_offset: int
    block: Block
    by_rows: bool = False


@dataclass(frozen=True)
class Store:
    """Move a block of the output from L1 to L2."""

    l2_offset: int
    l1_offset: int
    block: Block


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


@dataclass(frozen=True)
class Queue:
    """Hand a transfer to the DMA, which executes its transfers in order."""

    transfer: Load | Store


@dataclass(frozen=True)
class Wait:
    """Wait until the DMA has done all transfers queued."""


@dataclass(frozen=True)
class Prepare:
    """Write the registers of the core, which may still be working on something else."""

    trigger: Trigger


@dataclass(frozen=True)
class Start:
    """Start the prepared computation; if it takes several triggers, the first of them."""

    trigger: Trigger


@dataclass(frozen=True)
class Finish:
    """Run the other triggers, and wait for the core."""

    trigger: Trigger


Step: TypeAlias = Load | Store | Trigger | Queue | Wait | Prepare | Start | Finish
