"""What chains do with bytes that are left: several rows at once, and spare rows in their strips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from htvm.aot.chains.chain import Chain, chain_of
from htvm.aot.chains.estimate import rounded
from htvm.aot.chains.segment import Segment

if TYPE_CHECKING:
    from htvm.aot.chains.costs import ChainCosts
    from htvm.aot.chains.kernels import Band
    from htvm.aot.chains.network import Network

_BAND = 5
"""Rows at once at most."""


class Room:
    """Gives chains more room where that pays, the cheapest for what it saves first.

    Args:
        network: the units.
        costs: what chains cost and take.
    """

    def __init__(self, network: Network, costs: ChainCosts) -> None:
        self.network = network
        self.costs = costs
        self._chains: dict[object, Chain | None] = {}  # by their ends and bands
        self._segments: dict[object, Segment] = {}  # the same, and how many kernels are known

    def in_bands(self, segment: Segment, limit: int) -> Segment:
        """Return a chain in bands; kernels that are not there yet take no bytes."""
        refused: set[Band] = set()
        while segment.chain is not None:
            best: tuple[float, Segment] | None = None
            for band in self._bands(segment.chain):
                if band in refused:
                    continue
                wider = self._wider(segment.chain, band)
                saved = 0.0 if wider is None else segment.cost - wider.cost
                if wider is None or wider.bytes > limit or saved <= 0:
                    refused.add(band)
                    continue
                gain = saved / max(wider.bytes - segment.bytes, 1)
                if best is None or gain > best[0]:
                    best = gain, wider
            if best is None:
                break
            segment = best[1]
        return segment

    def _bands(self, chain: Chain) -> Iterator[Band]:
        """Yield the units that lose something by themselves, and more rows at once."""
        for number in range(*chain.units):
            unit, now = self.network.units[number], chain.bands.get(number, 0)
            tensor = self.network.tensors[unit.result]
            lost = self.costs.lost(number, now)
            for rows in range(now + 1, min(_BAND, tensor.rows) + 1):
                if tensor.rows % rows or unit.of_sums is not None or unit.name in self.costs.wide:
                    continue
                if lost > self.costs.lost(number, rows):
                    yield number, rows

    def _wider(self, chain: Chain, band: Band) -> Segment | None:
        """Return a chain one of whose units makes more rows at once; ``None`` if it cannot."""
        bands = {**chain.bands, band[0]: band[1]}
        key = chain.units, tuple(sorted(bands.items()))
        if key not in self._chains:
            self._chains[key] = chain_of(self.network, *chain.units, self.costs.wide, bands)
        wider = self._chains[key]
        if wider is None:
            return None
        known = key, len(self.costs.rows)
        if known not in self._segments:
            self._segments[known] = Segment.of(wider, self.costs)
        return self._segments[known]

    def with_spare(self, segment: Segment, limit: int) -> Segment:
        """Return a chain with more room in its strips, where that fits and saves moving rows."""
        if segment.chain is None:
            return segment
        chain, free = segment.chain, limit - segment.bytes
        while True:
            best: tuple[float, int, Chain] | None = None
            for name, strip in chain.strips.items():
                for more in (1, 2, 4, 8):
                    wider = chain.with_room(name, strip.rows + more)
                    added = rounded(wider.strips[name].bytes) - rounded(strip.bytes)
                    saved = chain.moved_by(strip) - chain.moved_by(wider.strips[name])
                    if added > free or saved <= 0:
                        continue
                    if best is None or saved / max(added, 1) > best[0]:
                        best = saved / max(added, 1), added, wider
            if best is None:
                return replace(segment, chain=chain)
            free -= best[1]
            chain = best[2]


def bands_of(chain: Chain) -> list[Band]:
    """Return a chain's units, and the rows that each makes at once."""
    return [(number, chain.bands.get(number, 0)) for number in range(*chain.units)]
