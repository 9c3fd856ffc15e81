"""`Mchan`: the numbers of the cluster's DMA."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.parts import Dma


@dataclass(frozen=True)
class Mchan(Dma):
    """A DMA with a queue for each direction; both move ``bytes_per_cycle`` at the same time.

    A row outside of L1 is one or several bursts. While a burst is under way, others are, too, but
    only ``outstanding`` of them: short bursts do not hide the time until their answers arrive.
    ``call_cycles`` is this time; it counts for the first burst of a transfer to an idle DMA.

    Attributes:
        counters: number of counters, one of which each transfer belongs to.
        burst_bytes: longest burst in bytes.
        outstanding: number of bursts that can be under way in one direction.
        most_refusals: how often a direction takes a bank of L1 that a core asks for before the core
            has its turn.
    """

    counters: int
    burst_bytes: int
    outstanding: int
    most_refusals: int

    def row_cycles(self, size: int) -> int:
        """Return the cycles of a row of ``size`` bytes that begins on a word of the DMA."""
        whole, rest = divmod(size, self.burst_bytes)
        total = whole * self._burst_cycles(self.burst_bytes)
        return total + (self._burst_cycles(rest) if rest else 0)

    def _burst_cycles(self, size: int) -> int:
        words = -(-size // self.bytes_per_cycle)
        return max(words, -(-(self.call_cycles + words) // self.outstanding))
