"""The computations of DIANA's cores for one tile: the fields of their drivers' calls.

Offsets are logical bytes, in L1 relative to its start.
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.tileloop.steps import Trigger


@dataclass(frozen=True)
class MapTrigger(Trigger):
    """The convolution of one tile.

    ``pad_top`` and ``pad_left`` are numbers of zeros before the tile; negative values skip rows or
    columns.
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
    l1_in: int
    l1_out: int
    weight_offset: int


@dataclass(frozen=True)
class ConvTrigger(MapTrigger):
    """A convolution on the digital core.

    If ``depthwise``, there is one trigger per ``channels`` channels: if these are several, each is
    a convolution over them whose weights between different channels are zero.
    """

    relu: bool
    depthwise: bool
    channels: int = 1

    def blocks(self) -> list[int]:
        """Return the numbers of channels of a depthwise layer's triggers."""
        full, left = divmod(self.k, self.channels)
        return [self.channels] * full + [left] * (left > 0)


@dataclass(frozen=True)
class DenseTrigger(Trigger):
    """Outputs of a fully connected layer: one trigger per block of them."""

    k: int
    c: int
    shift: int
    relu: bool
    l1_in: int
    l1_out: int
    weight_offset: int


@dataclass(frozen=True)
class AddTrigger(Trigger):
    """Element-wise sum of two flat runs of bytes."""

    elements: int
    shift: int
    relu: bool
    l1_a: int
    l1_b: int
    l1_out: int


@dataclass(frozen=True)
class AnalogTrigger(MapTrigger):
    """A convolution on an in-memory array, or a matrix times a vector (``vector``).

    The array sums ``c_pass`` channels and computes ``unroll`` output columns at a time; a vector's
    outputs take one trigger per ``slice`` of them. ``gain`` is the right shift before the
    converters.
    """

    gain: int
    clip: tuple[int, int]
    c_pass: int
    unroll: int
    vector: bool
    slice: int
    l1_sums: int
