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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import CapacityError, UnsupportedError
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.cores import ROW_COST
from htvm.aot.chains.chain import Chain, chain_of
from htvm.aot.chains.costs import ChainCosts
from htvm.aot.chains.emit import chain_kernel
from htvm.aot.chains.estimate import estimate, rounded
from htvm.aot.chains.network import Network, network_of
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

_BAND = 5
"""Rows at once at most."""

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


@dataclass(frozen=True, eq=False)
class _Segment:
    """Consecutive units that are computed together.

    Attributes:
        first, behind: numbers of the first unit and of the one behind the last.
        by_rows: whether they advance together; otherwise it is a unit as a whole.
        bytes: of the arena while it runs.
        cost: estimated instructions beyond those of the products.
        chain: how they advance; while that is ``None``, its bytes and cost may be too low.
    """

    first: int
    behind: int
    by_rows: bool
    bytes: int
    cost: float
    chain: Chain | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from others: its ends, the rows at once, and the room in its strips."""
        if self.chain is None:
            return self.first, self.behind, (), ()
        rooms = tuple(strip.rows for strip in self.chain.strips.values())
        return self.first, self.behind, tuple(self.chain.bands.items()), rooms


class _Planner:
    def __init__(self, network: Network, whole: Whole, compiler: RowCompiler) -> None:
        self.network = network
        self.given = whole.sketch
        self.whole = whole
        self.constants = frozenset(self.given.constants)
        self.compiler = compiler
        self.costs = ChainCosts(network, compiler)
        self.banded: dict[object, Chain | None] = {}  # by the ends and bands of a chain
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
        low, step = asked, 0
        found: dict[object, tuple[Assembly, Program]] = {}
        for number in range(_TRIES):
            if number == _TRIES - 2:  # spare rows go before the path does
                cuts = self._quickest(asked, low)
                assert cuts is not None
            else:
                cuts = [self._with_spare(each, low) for each in self._in_bands(asked, low)]
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
            if number == _TRIES - 2 and isinstance(memory, int):
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

    def _segments(self) -> dict[int, list[_Segment]]:
        """Return what may be between two cuts, by the unit behind each."""
        units = self.network.units
        found: dict[int, list[_Segment]] = {behind: [] for behind in range(1, len(units) + 1)}
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

    def _known(self, cuts: Sequence[_Segment]) -> bool:
        """Return whether everything about these segments is known, and find out if it is not."""
        unknown = [each for each in cuts if each.by_rows and each.chain is None]
        for each in unknown:
            chain = chain_of(self.network, each.first, each.behind, self._wide)
            segments = self.segments[each.behind]
            at = segments.index(each)
            if chain is None or len(chain.stages) > _STAGES:
                del segments[at]
            else:
                segments[at] = self._chained(chain)
        return not unknown and self._made(cuts) and self._compiled(cuts)

    def _made(self, cuts: Sequence[_Segment]) -> bool:
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

    @property
    def _wide(self) -> dict[str, int]:
        """By name of a unit, the bytes of the pixels that it reads with channels of zeros."""
        units = self.network.units
        known = self.costs.rows.items()
        return {units[number].name: rows.wide for (number, _), rows in known if rows.wide}

    def _compiled(self, cuts: Sequence[_Segment]) -> bool:
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

    def _measured_again(self, segment: _Segment, new: Sequence[Band]) -> _Segment:
        """Return a segment with what these kernels need."""
        own = [band for band in new if segment.first <= band[0] < segment.behind]
        if segment.chain is None or not own:
            return segment
        chain: Chain | None = segment.chain
        if any(self.costs.rows[band].wide for band in own):
            chain = chain_of(self.network, segment.first, segment.behind, self._wide)
        assert chain is not None
        return self._chained(chain)

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

    def _smallest(self) -> list[_Segment] | None:
        """Return the cuts whose largest segment is smallest; ``None`` if there are none."""
        best: list[tuple[int, int, _Segment | None] | None] = [(0, 0, None)]
        for segments in self.segments.values():
            found: tuple[int, int, _Segment | None] | None = None
            for each in segments:
                before = best[each.first]
                if before is None:
                    continue
                # Of equal ones, those with fewer units that kernels must be compiled for.
                most = max(before[0], each.bytes)
                count = before[1] + (each.behind - each.first if each.by_rows else 0)
                if found is None or (most, count) < found[:2]:
                    found = most, count, each
            best.append(found)
        return None if best[-1] is None else _path(best)

    def _quickest(self, limit: int, low: int) -> list[_Segment] | None:
        """Return the cuts with the least cost within a limit; ``None`` if there are none.

        Those come first that need the fewest bytes above ``low``: gaps in the arena need room, too.
        """
        while True:
            best: list[tuple[int, float, _Segment | None] | None] = [(0, 0.0, None)]
            for segments in self.segments.values():
                found: tuple[int, float, _Segment | None] | None = None
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
            if self._known(cuts):
                return cuts

    # --- segments ----------------------------------------------------------------------------

    @cached_property
    def _steps(self) -> Mapping[int, int]:
        """The number of each call's step in the program without chains, by the call's identity."""
        calls = [call for call in self.given.calls if isinstance(call, ModelCall)]
        return {id(call): number for number, call in enumerate(calls)}

    def _single(self, number: int) -> _Segment:
        """Return a unit as a whole; as long as its kernels are sketches, with bytes at least."""
        calls = self._calls(number)
        pads = self._pads(self.network.units[number].calls)
        moved = sum(value.bytes for call in pads for value in call.outputs)
        needed = max(self.whole.live[self._steps[id(call)]] for call in calls)
        return _Segment(number, number + 1, False, needed, ROW_COST.byte * moved)

    def _calls(self, number: int) -> list[ModelCall]:
        """Return the calls that compute a unit as a whole, its paddings first."""
        unit = self.network.units[number]
        return [*self._pads(unit.calls), *unit.calls]

    def _pads(self, calls: Sequence[ModelCall]) -> list[ModelCall]:
        pads = self.network.pads
        return [pads[name] for call in calls for name in call.inputs if name in pads]

    def _estimated(self, first: int, behind: int, alive: Sequence[str]) -> _Segment:
        """Return a chain with what it takes at least."""
        least = estimate(self.network, first, behind, alive)
        cost = self.costs.of(range(first, behind), least.calls, least.copied, {})
        return _Segment(first, behind, True, least.bytes, cost)

    def _chained(self, chain: Chain) -> _Segment:
        costs = self.costs
        return _Segment(*chain.units, True, costs.bytes_of(chain), costs.of_chain(chain), chain)

    def _in_bands(self, limit: int, low: int) -> list[_Segment]:
        """Return the quickest cuts, some of whose units make several rows at once.

        If not all have the bytes for that, shorter chains may have.
        """
        ways: dict[object, list[_Segment]] = {}
        for eighths in (8, 7, 6, 5):
            below = limit * eighths // 8
            cuts = self._quickest(below, min(below, low))
            if cuts is None:
                break
            ends = tuple(segment.identity for segment in cuts)
            if ends in ways:
                continue
            ways[ends] = [self._with_bands(segment, low) for segment in cuts]
            chains = [segment.chain for segment in ways[ends] if segment.chain is not None]
            if not any(self.costs.lost(*band) for chain in chains for band in _bands_of(chain)):
                break
        return min(ways.values(), key=lambda cuts: sum(segment.cost for segment in cuts))

    def _with_bands(self, segment: _Segment, limit: int) -> _Segment:
        """Return a chain whose units make several rows at once, where that fits and pays."""
        refused: set[Band] = set()
        while segment.chain is not None:
            best: tuple[float, Band, _Segment] | None = None
            for band in self._bands(segment.chain):
                if band in refused:
                    continue
                wider = self._banded(segment.chain, band)
                saved = 0.0 if wider is None else segment.cost - wider.cost
                if wider is None or wider.bytes > limit or saved <= 0:
                    refused.add(band)
                    continue
                gain = saved / max(wider.bytes - segment.bytes, 1)
                if best is None or gain > best[0]:
                    best = gain, band, wider
            if best is None:
                break
            _, band, wider = best
            if band in self.costs.rows:
                segment = wider
            else:  # look at it again, now that the bytes of its kernels are known
                self.costs.rows |= self.compiler.rows(self.network, [band])
        return segment

    def _bands(self, chain: Chain) -> Iterator[Band]:
        """Yield the units that lose something by themselves, and more rows at once."""
        for number in range(*chain.units):
            unit, now = self.network.units[number], chain.bands.get(number, 0)
            tensor = self.network.tensors[unit.result]
            lost = self.costs.lost(number, now)
            for rows in range(now + 1, min(_BAND, tensor.rows) + 1):
                if tensor.rows % rows or unit.of_sums is not None or unit.name in self._wide:
                    continue
                if lost > self.costs.lost(number, rows):
                    yield number, rows

    def _banded(self, chain: Chain, band: Band) -> _Segment | None:
        """Return a chain one of whose units makes more rows at once; ``None`` if it cannot."""
        bands = {**chain.bands, band[0]: band[1]}
        key = chain.units, tuple(sorted(bands.items()))
        if key not in self.banded:
            self.banded[key] = chain_of(self.network, *chain.units, self._wide, bands)
        wider = self.banded[key]
        return None if wider is None else self._chained(wider)

    def _with_spare(self, segment: _Segment, limit: int) -> _Segment:
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

    # --- the program -------------------------------------------------------------------------

    def _assembly(self, cuts: Sequence[_Segment]) -> Assembly:
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
        rows = [self.costs.rows[band] for band in _bands_of(chain)]
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


def _bands_of(chain: Chain) -> list[Band]:
    """Return a chain's units, and the rows that each makes at once."""
    return [(number, chain.bands.get(number, 0)) for number in range(*chain.units)]


def _path(best: Sequence[tuple[float, float, _Segment | None] | None]) -> list[_Segment]:
    """Return the segments of the path to the last unit, each of which `best` has by its end."""
    cuts: list[_Segment] = []
    at = len(best) - 1
    while at:
        entry = best[at]
        assert entry is not None and entry[2] is not None
        cuts.append(entry[2])
        at = entry[2].first
    return cuts[::-1]
