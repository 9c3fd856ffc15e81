"""Which operators become chains: the quickest program whose arena stays within a limit.

Units run in their order, which is cut into segments: a unit as a whole, or a chain.  What a segment
needs depends only on its ends, because between two segments only whole tensors are alive.  So the
quickest cuts within a limit are a shortest path, and the least limit is that of the path whose
largest segment is smallest: both are exact for the given order and these kernels.

Chains are looked at, and their kernels of rows compiled, only if such a path takes them.  Until
then, a chain counts with what it takes at least; so a path is found again until it has none of
these.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import CapacityError, UnsupportedError
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.cores import ROW_COST
from htvm.aot.chains.chain import Chain, chain_of
from htvm.aot.chains.costs import ChainCosts
from htvm.aot.chains.emit import chain_kernel
from htvm.aot.chains.estimate import estimate
from htvm.aot.chains.network import Network, network_of
from htvm.aot.chains.room import Room, bands_of
from htvm.aot.chains.segment import Segment
from htvm.aot.program import assemble
from htvm.aot.steps import Alias, CpuKernel, ModelCall, Value
from patterns.rows import has_rows

if TYPE_CHECKING:
    from htvm.aot.assembler import Assembly
    from htvm.aot.chains.kernels import Band, RowCompiler
    from htvm.aot.chains.whole import Whole
    from htvm.aot.program import Program
    from patterns.reading.graph import Graph

_log = logging.getLogger(__name__)

_LONGEST = 24
"""Units of a chain at most."""

_STAGES = 255
"""Stages of a chain at most: their numbers are bytes."""

_TRIES = 8
"""Plans of the arena at most; it may have gaps that the sums of bytes do not show."""


def by_rows(
    graph: Graph,
    whole: Whole,
    memory: int | Literal["least"] | None,
    compiler: RowCompiler,
    *,
    streamed: bool = False,
) -> tuple[Assembly, Program]:
    """Return a program whose arena has at most this many bytes, by chains where that is needed.

    With it comes what it is assembled from.

    Args:
        graph: the operators.
        whole: the program without chains.
        memory: bytes of the arena, or "least"; ``None``: as many as without chains.
        compiler: makes the kernels of rows.
        streamed: whether the only input comes row by row.

    Raises:
        CapacityError: the arena of no such program is that small.
        UnsupportedError: there is not one input with rows, or an operator needs all of it.
    """
    if not streamed and (memory is None or (memory != "least" and _fits(whole, memory))):
        return whole.assembly, whole.program
    network = network_of(graph, whole.sketch)
    if streamed:
        network = _with_streamed_input(network, whole.sketch)
        return _Planner(network, whole, compiler).plan(memory)
    if network is None:
        if memory == "least":
            return whole.assembly, whole.program
        assert memory is not None
        why = "its operators are computed as a whole"
        raise _too_small(memory, whole.program.plan.peak, why)
    return _Planner(network, whole, compiler).plan(memory)


def _fits(whole: Whole, memory: int) -> bool:
    """Whether the arena is within a limit without chains; makes no kernels where it cannot be."""
    return whole.least <= memory and whole.program.plan.peak <= memory


def _with_streamed_input(network: Network | None, given: Assembly) -> Network:
    """Return a network whose input comes row by row.

    Raises:
        UnsupportedError: it does not have one input with rows, or an operator needs all of it.
    """
    if len(given.inputs) != 1 or not has_rows(given.inputs[0].shape):
        shapes = ", ".join(f"'{info.name}' {info.shape}" for info in given.inputs)
        raise _not_streamed(f"the inputs are {shapes}, not one map in NHWC with a batch of 1")
    if network is None:
        raise _not_streamed("the operators are computed as a whole")
    (name,) = network.inputs
    behind = network.last.get(name, -1) + 1
    if not behind or behind > len(network.units):
        raise _not_streamed(f"no operator reads '{name}', or it is an output itself")
    for unit in network.units[:behind]:
        if not unit.has_rows:
            raise _not_streamed(f"'{unit.name}' needs the whole of what it reads")
    return replace(network, streamed=name)


def _not_streamed(why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the input cannot come row by row: {why}",
        where="option 'input'",
        hint="leave it out, or give input='overwritten'; io='int8' (--io int8) leaves out what "
        "converts reals or bytes",
    )


def _too_small(limit: int, least: int, why: str) -> CapacityError:
    return CapacityError(
        f"an arena of {limit:,} B, and the least that was found is {least:,} B: {why}",
        where="option 'memory'",
        hint=f"give at least {least:,} B, or memory='least'",
        limit=limit,
        demand=least,
    )


class _Planner:
    def __init__(self, network: Network, whole: Whole, compiler: RowCompiler) -> None:
        self.network = network
        self.given = whole.sketch
        self.whole = whole
        self.constants = frozenset(self.given.constants)
        self.compiler = compiler
        self.costs = ChainCosts(network, compiler)
        self.room = Room(network, self.costs)
        self.reads = network.last[network.streamed] if network.streamed else -1
        self.segments = self._segments()

    def plan(self, memory: int | Literal["least"] | None) -> tuple[Assembly, Program]:
        """Return what `by_rows` does."""
        asked = self._least() if memory == "least" else memory or self.whole.program.plan.peak
        if self._quickest(asked, asked) is None:
            least = self._least()
            if memory is not None:
                raise self._refusal(asked, least)
            asked = least
        low, step, number, before = asked, 0, 0, 0
        found: dict[object, tuple[Assembly, Program]] = {}
        while number < _TRIES:
            if number == _TRIES - 2:  # spare rows go before the path does
                cuts = self._quickest(asked, low)
                assert cuts is not None
            else:
                cuts = [self.room.with_spare(each, low) for each in self._in_bands(asked, low)]
            taken = tuple(each.identity for each in cuts)
            again = taken in found
            if not again:
                made = self._assembly(cuts)
                found[taken] = made, assemble(made)
            peak = found[taken][1].plan.peak
            if peak <= asked:
                break
            step = max(peak - asked, ALIGNMENT, 2 * step * again)
            low -= step
            number += 1
            if not again and number < _TRIES - 2:
                # Fewer spare rows made the arena no smaller.
                number = _TRIES - 2 if 0 < before <= peak else number
                before = peak
            elif number == _TRIES - 1 and isinstance(memory, int):
                low = self._least()  # within a limit above that, gaps are no reason to refuse
        best = min(found.values(), key=lambda each: each[1].plan.peak)
        if not self.network.streamed and _fits(self.whole, best[1].plan.peak):
            best = self.whole.assembly, self.whole.program
        peak = best[1].plan.peak
        if isinstance(memory, int) and peak > memory:
            raise self._refusal(memory, peak)
        _log.debug("an arena of %d B", peak)
        return best

    # --- paths -------------------------------------------------------------------------------

    def _segments(self) -> dict[int, list[Segment]]:
        """Return what may be between two cuts, by the unit behind each."""
        units = self.network.units
        found: dict[int, list[Segment]] = {behind: [] for behind in range(1, len(units) + 1)}
        for first in range(len(units)):
            # An input that comes row by row is read by the first chain only.
            if first > self.reads:
                found[first + 1].append(self._single(first))
            elif first:
                continue
            alive = self.costs.alive(first)
            for behind in range(first + 1, min(first + _LONGEST, len(units)) + 1):
                if not units[behind - 1].has_rows:
                    break
                if first > self.reads or self.reads < behind:
                    found[behind].append(self._estimated(first, behind, alive))
        return found

    def _known(self, cuts: Sequence[Segment], *, compiled: bool = True) -> bool:
        """Return whether everything about these segments is known, and find out if it is not.

        Unless they are to be ``compiled``, that is all but what their kernels need.
        """
        unknown = [each for each in cuts if each.by_rows and each.chain is None]
        for each in unknown:
            chain = chain_of(self.network, each.first, each.behind, self.costs.wide)
            segments = self.segments[each.behind]
            at = segments.index(each)
            if chain is None or len(chain.stages) > _STAGES:
                del segments[at]
            else:
                segments[at] = Segment.of(chain, self.costs)
        if unknown or not compiled:
            return not unknown
        return self._made(cuts) and self._compiled(cuts)

    def _made(self, cuts: Sequence[Segment]) -> bool:
        """Return whether the kernels of units as a whole are there, and make them if not."""
        wholes = [each for each in cuts if not each.by_rows]
        calls = [call for each in wholes for call in self._calls(each.first)]
        if self.whole.is_made(calls):
            return True
        for call in calls:
            self.whole.made(call)
        for segments in self.segments.values():
            segments[:] = [each if each.by_rows else self._single(each.first) for each in segments]
        return False

    def _compiled(self, cuts: Sequence[Segment]) -> bool:
        """Return whether the kernels of these segments are there, and make them if they are not."""
        chained = [each for each in cuts if each.chain is not None]
        numbers = [number for each in chained for number in range(each.first, each.behind)]
        new = [(number, 0) for number in numbers if (number, 0) not in self.costs.rows]
        if not new:
            return True
        self.costs.rows |= self.compiler.rows(self.network, new)
        for segments in self.segments.values():
            segments[:] = [self._measured_again(each, new) for each in segments]
        return False

    def _measured_again(self, segment: Segment, new: Sequence[Band]) -> Segment:
        """Return a segment with what these kernels need."""
        own = [band for band in new if segment.first <= band[0] < segment.behind]
        if segment.chain is None or not own:
            return segment
        chain: Chain | None = segment.chain
        if any(self.costs.rows[band].wide for band in own):
            chain = chain_of(self.network, segment.first, segment.behind, self.costs.wide)
        assert chain is not None
        return Segment.of(chain, self.costs)

    def _least(self) -> int:
        """Return the bytes of the largest segment where these are fewest."""
        while True:
            cuts = self._smallest()
            if cuts is None:
                name = self.network.units[self.reads].name
                raise _not_streamed(
                    f"no chain reaches '{name}', the last reader: one has at most {_LONGEST} "
                    "operators, and all that read a tensor pad it alike"
                )
            if self._known(cuts):
                return max(each.bytes for each in cuts)

    def _smallest(self) -> list[Segment] | None:
        """Return the cuts whose largest segment is smallest; ``None`` if there are none."""
        best: list[tuple[int, float, Segment | None] | None] = [(0, 0.0, None)]
        for segments in self.segments.values():
            found: tuple[int, float, Segment | None] | None = None
            for each in segments:
                before = best[each.first]
                if before is None:
                    continue
                # Of equal ones, the quickest, whose kernels the program is likely to have.
                most, cost = max(before[0], each.bytes), before[1] + each.cost
                if found is None or (most, cost) < found[:2]:
                    found = most, cost, each
            best.append(found)
        return None if best[-1] is None else _path(best)

    def _quickest(self, limit: int, low: int, *, compiled: bool = True) -> list[Segment] | None:
        """Return the cuts with the least cost within a limit; ``None`` if there are none.

        Those come first that need the fewest bytes above ``low``: gaps in the arena need room, too.
        """
        while True:
            best: list[tuple[int, float, Segment | None] | None] = [(0, 0.0, None)]
            for segments in self.segments.values():
                found: tuple[int, float, Segment | None] | None = None
                for each in segments:
                    before = best[each.first]
                    if each.bytes > limit or before is None:
                        continue
                    above, cost = before[0] + max(each.bytes - low, 0), before[1] + each.cost
                    if found is None or (above, cost) < found[:2]:
                        found = above, cost, each
                best.append(found)
            if best[-1] is None:
                return None
            cuts = _path(best)
            if self._known(cuts, compiled=compiled):
                return cuts

    # --- segments ----------------------------------------------------------------------------

    @cached_property
    def _steps(self) -> Mapping[int, int]:
        """The number of each call's step in the program without chains, by the call's identity."""
        calls = [call for call in self.given.calls if isinstance(call, ModelCall)]
        return {id(call): number for number, call in enumerate(calls)}

    def _single(self, number: int) -> Segment:
        """Return a unit as a whole; as long as its kernels are sketches, with bytes at least."""
        calls = self._calls(number)
        pads = self._pads(self.network.units[number].calls)
        moved = sum(value.bytes for call in pads for value in call.outputs)
        needed = max(self.whole.live[self._steps[id(call)]] for call in calls)
        return Segment(number, number + 1, False, needed, ROW_COST.byte * moved)

    def _calls(self, number: int) -> list[ModelCall]:
        """Return the calls that compute a unit as a whole, its paddings first."""
        unit = self.network.units[number]
        return [*self._pads(unit.calls), *unit.calls]

    def _pads(self, calls: Sequence[ModelCall]) -> list[ModelCall]:
        pads = self.network.pads
        return [pads[name] for call in calls for name in call.inputs if name in pads]

    def _estimated(self, first: int, behind: int, alive: Sequence[str]) -> Segment:
        """Return a chain with what it takes at least."""
        least = estimate(self.network, first, behind, alive)
        cost = self.costs.of(range(first, behind), least.calls, least.copied, {})
        return Segment(first, behind, True, least.bytes, cost)

    def _in_bands(self, limit: int, low: int) -> list[Segment]:
        """Return the quickest cuts, some of whose units make several rows at once.

        If not all have the bytes for that, shorter chains may have.  Kernels are compiled only
        where what is known without them may be quicker.
        """
        best: list[Segment] = []
        for eighths in (8, 7, 6, 5):
            below = limit * eighths // 8
            found: list[Segment] = []
            for compiled in (False, True):
                cuts = self._quickest(below, min(below, low), compiled=compiled)
                if cuts is None:
                    return best
                found = self._with_bands(cuts, low, compiled=compiled)
                if best and _cost_of(found) >= _cost_of(best):
                    break
            else:
                best = found
            chains = [segment.chain for segment in found if segment.chain is not None]
            if not any(self.costs.lost(*band) for chain in chains for band in bands_of(chain)):
                break
        return best

    def _with_bands(self, cuts: Sequence[Segment], limit: int, *, compiled: bool) -> list[Segment]:
        """Return cuts whose units make several rows at once, where that fits and pays."""
        while True:
            found = [self.room.in_bands(segment, limit) for segment in cuts]
            chains = [segment.chain for segment in found if segment.chain is not None]
            bands = {band for chain in chains for band in bands_of(chain)}
            new = sorted(bands - set(self.costs.rows))
            if not new or not compiled:
                return found
            # Look at them again, now that the bytes of their kernels are known.
            self.costs.rows |= self.compiler.rows(self.network, new)

    # --- the program -------------------------------------------------------------------------

    def _assembly(self, cuts: Sequence[Segment]) -> Assembly:
        """Return the program of these segments."""
        network, given = self.network, self.given
        aliases = [call for call in given.calls if isinstance(call, Alias)]
        calls: list[ModelCall | Alias] = []
        there = {*network.inputs, *self.constants}
        made: list[CpuKernel] = []

        def enter(call: ModelCall) -> None:
            calls.append(call)
            there.update(value.name for value in call.outputs)
            for alias in aliases:
                if alias.source in there and alias.output.name not in there:
                    calls.append(alias)
                    there.add(alias.output.name)

        for alias in aliases:
            if alias.source in there:
                calls.append(alias)
                there.add(alias.output.name)
        for segment in cuts:
            if segment.chain is not None:
                kernel = self._kernel(segment.chain)
                made.append(kernel)
                enter(self._call(segment.chain, kernel))
                continue
            for sketch in self._calls(segment.first):
                if sketch.outputs[0].name not in there:
                    call, kernel = self.whole.made(sketch)
                    made.append(kernel)
                    enter(call)
        streamed = bool(network.streamed)
        return replace(
            given, calls=calls, cpu_kernels=tuple(dict.fromkeys(made)), streamed=streamed
        )

    def _call(self, chain: Chain, kernel: CpuKernel) -> ModelCall:
        tensors = self.network.tensors
        outputs = tuple(
            Value(name, tensors[name].shape, tensors[name].dtype) for name in chain.outputs
        )
        units = [self.network.units[number] for number in range(*chain.units)]
        macs = sum(call.macs for unit in units for call in unit.calls)
        return ModelCall(kernel.symbol, chain.inputs, outputs, macs)

    def _kernel(self, chain: Chain) -> CpuKernel:
        units = [self.network.units[number] for number in range(*chain.units)]
        rows = [self.costs.rows[band] for band in bands_of(chain)]
        named = units[0].name if len(units) == 1 else f"{units[0].name}_to_{units[-1].name}"
        wish = f"{c_identifier(named)}_rows"
        symbol = self.compiler.symbols.function_of((chain.units, "chain"), wish)
        return chain_kernel(self.network, chain, rows, symbol)

    # --- verdicts ----------------------------------------------------------------------------

    def _refusal(self, limit: int, least: int) -> CapacityError:
        cuts = self._quickest(least, least)
        assert cuts is not None
        worst = max(cuts, key=lambda each: each.bytes)
        units = self.network.units[worst.first : worst.behind]
        how = "by rows" if worst.by_rows else "as a whole"
        named, takes = f"{units[0].name} {how}", "takes"
        if len(units) > 1:
            named, takes = f"{units[0].name} to {units[-1].name} {how}", "take"
        return _too_small(limit, least, f"{named} {takes} {worst.bytes:,} B")


def _cost_of(cuts: Sequence[Segment]) -> float:
    return sum(segment.cost for segment in cuts)


def _path(best: Sequence[tuple[float, float, Segment | None] | None]) -> list[Segment]:
    """Return the segments of the path to the last unit, each of which `best` has by its end."""
    cuts: list[Segment] = []
    at = len(best) - 1
    while at:
        entry = best[at]
        assert entry is not None and entry[2] is not None
        cuts.append(entry[2])
        at = entry[2].first
    return cuts[::-1]
