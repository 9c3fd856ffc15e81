"""What chains cost and take, as far as their kernels are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from byoc_dory.soc.cores import ROW_COST
from byoc_dory.work import Work
from htvm.aot.chains.emit import program_of, staged_bytes, state_bytes
from htvm.aot.chains.estimate import rounded
from htvm.aot.chains.places import places_of

if TYPE_CHECKING:
    from htvm.aot.chains.chain import Chain
    from htvm.aot.chains.kernels import Band, RowCompiler, RowKernels
    from htvm.aot.chains.network import Network


class ChainCosts:
    """The instructions of chains beyond those of their units as a whole, and their bytes.

    Attributes:
        network: the units.
        compiler: knows which kernels of rows are computed in bands.
        rows: the kernels that were made.
    """

    def __init__(self, network: Network, compiler: RowCompiler) -> None:
        self.network = network
        self.compiler = compiler
        self.rows: dict[Band, RowKernels] = {}

    @property
    def wide(self) -> dict[str, int]:
        """By name of a unit, the bytes of the pixels that it reads with channels of zeros."""
        units = self.network.units
        known = self.rows.items()
        return {units[number].name: rows.wide for (number, _), rows in known if rows.wide}

    def of_chain(self, chain: Chain) -> float:
        """Return the estimated instructions of a chain beyond those of its units as a whole."""
        staged = sum(
            self.network.tensors[self.network.units[number].result].bytes
            for number in chain.bands
            if staged_bytes(chain, number)
        )
        moved = chain.moved + chain.copied + staged
        return self.of(range(*chain.units), len(chain.order), moved, chain.bands)

    def of(self, units: range, calls: int, moved: int, bands: Mapping[int, int]) -> float:
        """Return the estimated instructions of a chain beyond those of the units as a whole."""
        lost = sum(self.lost(number, bands.get(number, 0)) for number in units)
        return ROW_COST.call * calls + ROW_COST.byte * moved + lost

    def lost(self, number: int, rows: int) -> float:
        """Return the instructions that a unit takes beyond those as a whole, so many rows at once.

        They are multiplications whose results are dropped, because rows are odd, the calls of
        rows of images in parts and of few pairs of pixels, and what depthwise convolutions lose
        that are not computed in bands of rows.
        """
        unit = self.network.units[number]
        if unit.nodes[0].op.work is not Work.PRODUCT:
            return 0.0
        tensor, at_once = self.network.tensors[unit.result], max(rows, 1)
        pixels, macs = at_once * tensor.width, sum(call.macs for call in unit.calls)
        lost = ROW_COST.idle_mac * macs * (-(-pixels // 2) * 2 / pixels - 1)
        band = number, rows
        made = self.rows.get(band)
        if made is not None:
            further = self.compiler.parts(tensor.width, made) - 1
            lost += ROW_COST.part * tensor.rows * further
        calls = self.compiler.calls(self.network, band, self.rows.get((number, 0)))
        lost += ROW_COST.pairs_call * calls
        way = self.compiler.way(self.network, band, made)
        if way is None:
            return lost
        each = ROW_COST.lone
        if way == "line":
            each = ROW_COST.line + ROW_COST.channel / pixels
        elif way == "bands":
            each = ROW_COST.pairs * (at_once + 2) / at_once + ROW_COST.channel / pixels
        return lost + max(each - ROW_COST.banded, 0) * tensor.bytes

    def alive(self, first: int) -> list[str]:
        """Return the whole tensors of the arena that exist when a unit begins."""
        network = self.network
        return [
            name
            for name, number in network.made.items()
            if number < first <= network.dies(name) and network.in_arena(name)
        ]

    def bytes_of(self, chain: Chain) -> int:
        """Return the bytes of the arena while a chain runs, with those kernels that are there."""
        network, (first, behind) = self.network, chain.units
        total = sum(rounded(network.tensors[name].bytes) for name in self.alive(first))
        outputs = [name for name in chain.outputs if network.in_arena(name)]
        total += sum(rounded(network.tensors[name].bytes) for name in outputs)
        own = [strip for name, strip in chain.strips.items() if name not in chain.passing]
        total += sum(rounded(strip.bytes) for strip in own)
        work = {number: self._work(chain, number) for number in range(first, behind)}
        total += rounded(places_of(chain, work).bytes)
        if network.streamed in chain.inputs:
            total += rounded(state_bytes(chain))
        return total - max((self._shared(chain, name) for name in outputs), default=0)

    def _shared(self, chain: Chain, output: str) -> int:
        """Return how many bytes of an input the output may take while the input is read."""
        new = rounded(self.network.tensors[output].bytes)
        saved = 0
        for name, below in chain.below.items():
            if not self.network.in_arena(name) or self.network.dies(name) >= chain.units[1]:
                continue
            old = rounded(self.network.tensors[name].bytes)
            saved = max(saved, new + old - max(new, rounded(below) + old))
        return saved

    def _work(self, chain: Chain, number: int) -> int:
        rows = self.rows.get((number, chain.bands.get(number, 0)))
        staged = staged_bytes(chain, number)
        return staged + (0 if rows is None else program_of(chain, number, rows).plan.peak)
