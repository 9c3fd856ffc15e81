"""Predicted cycles of a walk: tiles computed while the DMA loads and stores others.

The host orders transfers, which the DMA executes one after another, and computations, which either
hold the host (a kernel on all cores) or run beside it (ITA, two tasks at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from byoc_dory.soc.base import Dma
from byoc_dory.soc.snitch_ita.walk import Moved, Walk

__all__ = ["Overheads", "blocking_cycles", "device_cycles"]


@dataclass(frozen=True)
class Overheads:
    """Host cycles of what it orders and waits for.

    Attributes:
        order: of ordering a transfer.
        latency: from then until the DMA begins, if it has nothing else to do.
        wait: of finding that something is done.
        start: of ordering a computation.
        call: of a layer besides.
    """

    order: int
    latency: int
    wait: int
    start: int
    call: int


class _Timeline:
    """When the DMA and the host are done with what has been ordered so far."""

    def __init__(self, walk: Walk, dma: Dma, overheads: Overheads) -> None:
        self.walk, self.dma, self.overheads = walk, dma, overheads
        self.host = overheads.call
        self.dma_free = 0

    def load(self, tile: int) -> int:
        """Order the loads of a tile; returns when they are done."""
        for moved in self.walk.loaded(tile):
            self._order(moved)
        return self.dma_free

    def store(self, tile: int) -> None:
        moved = self.walk.stored(tile)
        if moved is not None:
            self._order(moved)

    def _order(self, moved: Moved) -> None:
        self.host += self.overheads.order
        begin = max(self.host + self.overheads.latency, self.dma_free)
        self.dma_free = begin + moved.cycles(self.dma)

    def wait(self, until: int) -> None:
        self.host = max(self.host, until) + self.overheads.wait

    def end(self) -> int:
        return max(self.host, self.dma_free) + self.overheads.wait


def blocking_cycles(
    walk: Walk, dma: Dma, overheads: Overheads, compute: Callable[[int], int]
) -> int:
    """Cycles where computing a tile (``compute(tile)`` cycles) holds the host."""
    line = _Timeline(walk, dma, overheads)
    ready = line.load(0)
    for tile in range(walk.tiles):
        wanted = ready
        more = tile + 1 < walk.tiles
        if walk.double and more:
            ready = line.load(tile + 1)
        line.wait(wanted)
        line.host += overheads.start + compute(tile)
        line.store(tile)
        if not walk.double and more:
            ready = line.load(tile + 1)
    return line.end()


def device_cycles(walk: Walk, dma: Dma, overheads: Overheads, compute: Callable[[int], int]) -> int:
    """Cycles where a device computes a tile while the host orders the next."""
    line = _Timeline(walk, dma, overheads)
    ready = [line.load(0)]
    ends: list[int] = []
    free = 0

    def start(tile: int) -> None:
        nonlocal free
        line.wait(ready[tile])
        line.host += overheads.start
        free = max(free, line.host) + compute(tile)
        ends.append(free)

    start(0)
    if walk.double and walk.tiles > 1:
        if walk.rows_wait and walk.begins_rows(1):
            line.wait(ends[0])
        ready.append(line.load(1))
    for tile in range(walk.tiles):
        more = tile + 1 < walk.tiles
        if walk.double and more:
            start(tile + 1)
        line.wait(ends[tile])
        line.store(tile)
        following = tile + (2 if walk.double else 1)
        if following < walk.tiles:
            if walk.rows_wait and walk.begins_rows(following):
                line.wait(ends[following - 1])
            ready.append(line.load(following))
        if not walk.double and more:
            start(tile + 1)
    return line.end()
