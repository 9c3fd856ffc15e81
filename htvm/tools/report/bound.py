"""What a run would take at least if its units worked at the same time, and who waits for whom.

Two things bound any schedule of a program's steps, each as a whole, from below: the cycles of the
busiest unit, and the longest chain of steps of which each reads what the one before computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.tools.report.table import count, percent

if TYPE_CHECKING:
    from htvm.activity import Interval
    from htvm.tools.report.data import ReportData


@dataclass(frozen=True)
class Bound:
    """A lower bound of the cycles of a run with the same kernels, and what it loses to it.

    Attributes:
        cycles: of the run.
        busiest: name of the unit with most busy cycles.
        busy: its busy cycles.
        chain: indices of the steps of the longest chain, in their order.
        chain_cycles: cycles of these steps.
        waiting: unit -> cycles in which the busiest one waits while this one works: accelerators
            first, then the DMA without them; "host" are those in which no device works.
    """

    cycles: int
    busiest: str
    busy: int
    chain: tuple[int, ...]
    chain_cycles: int
    waiting: dict[str, int]

    @property
    def least(self) -> int:
        """Cycles that no schedule of the steps takes less than."""
        return max(self.busy, self.chain_cycles)

    @property
    def gap(self) -> int:
        """Cycles above the bound."""
        return self.cycles - self.least


def bound_of(report: ReportData) -> Bound | None:
    """Return the bound of a report's run; None without the cycles of all steps."""
    cycles, units = report.summary.cycles, report.summary.units
    took = [row.cycles for row in report.layers if row.cycles is not None]
    if cycles is None or not units or len(took) != len(report.layers) or not report.reads:
        return None
    chain = _longest_chain(report.reads, took)
    # Harts are charged to their kernels and transfers.
    devices = [unit for unit in units if unit.charged is not None]
    busiest = max(devices, key=lambda unit: unit.cycles)
    names = [unit.name for unit in devices if unit.charged and unit.name not in ("host", "dma")]
    return Bound(
        cycles=cycles,
        busiest=busiest.name,
        busy=busiest.cycles,
        chain=chain,
        chain_cycles=sum(took[step] for step in chain),
        waiting=_waiting(report.timeline, busiest.name, [*names, "dma"], cycles),
    )


# In timelines, the unit of the cycles in which the host polls.
_POLLS = "waiting"


def _waiting(
    timeline: Sequence[Interval], busiest: str, units: Sequence[str], cycles: int
) -> dict[str, int]:
    """Return for whom the busiest unit waits: the first of these that works, else the host."""
    changes = sorted(
        (at, number, one.unit)
        for one in timeline
        if one.unit in (*units, _POLLS)
        for at, number in ((min(one.start, cycles), 1), (min(one.end, cycles), -1))
    )
    waiting: Counter[str] = Counter()
    working: Counter[str] = Counter()
    before = 0
    for at, number, unit in (*changes, (cycles, 0, "")):
        if working[_POLLS] if busiest == "host" else not working[busiest]:
            waiting[next((each for each in units if working[each]), "host")] += at - before
        working[unit] += number
        before = at
    return {unit: count for unit, count in waiting.items() if count}


def _longest_chain(reads: tuple[tuple[int, ...], ...], cycles: list[int]) -> tuple[int, ...]:
    """Return the steps of the chain that takes most cycles."""
    ends: list[int] = []
    before: list[int] = []
    for step, earlier in enumerate(reads):
        last = max(earlier, key=lambda each: ends[each], default=-1)
        before.append(last)
        ends.append(cycles[step] + (ends[last] if last >= 0 else 0))
    step, chain = max(range(len(ends)), key=lambda each: ends[each], default=-1), []
    while step >= 0:
        chain.append(step)
        step = before[step]
    return tuple(reversed(chain))


def bound_text(report: ReportData) -> str:
    """Return the bound, and what the busiest unit waits for; empty without a run."""
    bound = bound_of(report)
    if bound is None:
        return ""
    lines = [
        f"these steps, all units at once: at least {count(bound.least)} cycles, "
        f"{percent(bound.least, bound.cycles)} % of the run",
        f"  the busiest unit, {bound.busiest}, works {count(bound.busy)}; the longest chain of "
        f"steps, {count(len(bound.chain))} of {count(len(report.layers))}, takes "
        f"{count(bound.chain_cycles)}",
    ]
    parts = [
        f"between layers {count(cycles)}" if unit == "host" else f"for {unit} {count(cycles)}"
        for unit, cycles in sorted(bound.waiting.items(), key=lambda each: -each[1])
    ]
    if parts:
        lines.append(f"  {bound.busiest} waits: " + ", ".join(parts))
    return "\n".join(lines)
