"""The timeline of a run: when the host, the DMA and each accelerator did what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from htvm.activity import Interval

Span: TypeAlias = tuple[int, int]
"""First cycle, and the cycle after the last."""

HOST = "host"
_WAITING = "waiting"
_CLUSTER = "cluster"
_FIRST_CORE = "core0"
_DMA = "dma"
_EQUALLY_BUSY = 0.05
"""Cores whose busy cycles differ by at most this fraction are shown as one."""


@dataclass(frozen=True)
class Lane:
    """The activity of one unit.

    Attributes:
        name: "host", "dma", an accelerator, "cluster" (kernels that all cores run), or a core.
        spans: its busy intervals, in order and disjoint.
    """

    name: str
    spans: tuple[Span, ...]

    @property
    def busy(self) -> int:
        """Number of cycles in which it works."""
        return sum(end - start for start, end in self.spans)


def lanes_of(timeline: Iterable[Interval], cycles: int | None) -> tuple[Lane, ...]:
    """Return a run's lanes: the host, the DMA, then accelerators, then cores, by name.

    The host counts as working unless it waits, or runs a kernel as one of a cluster's cores.

    Args:
        timeline: the work of every device.
        cycles: of the run; without them there are no lanes.
    """
    if not cycles:
        return ()
    spans: dict[str, list[Span]] = {}
    for interval in timeline:
        spans.setdefault(interval.unit, []).append((interval.start, min(interval.end, cycles)))
    # A host that only controls the cores, and is not one of them, goes on while they run a kernel.
    kernels = spans.get(_CLUSTER, []) if _FIRST_CORE in spans else []
    elsewhere = _joined_spans([*spans.pop(_WAITING, []), *kernels])
    spans.pop(HOST, None)
    own = Lane(HOST, tuple(_gaps(elsewhere, cycles)))
    names = sorted(spans, key=lambda name: (name != _DMA, is_core(name), _natural(name)))
    return (own, *(Lane(name, tuple(_joined_spans(spans[name]))) for name in names))


def runs_of_cores(busy: Sequence[tuple[str, int]]) -> list[tuple[str, tuple[int, ...]]]:
    """Group neighbouring cores that are equally busy.

    Args:
        busy: the units' names and busy cycles.

    Returns:
        For each group its name ("core0" to "core7" are "core0-7") and the indices of its units; a
        unit that is no core is a group of its own.
    """
    groups: list[list[int]] = []
    for index, (name, cycles) in enumerate(busy):
        first = busy[groups[-1][0]] if groups else ("", 0)
        equal = abs(cycles - first[1]) <= _EQUALLY_BUSY * max(cycles, first[1])
        if groups and is_core(name) and is_core(first[0]) and equal:
            groups[-1].append(index)
        else:
            groups.append([index])
    return [
        (
            busy[group[0]][0] + (f"-{busy[group[-1]][0].lstrip('core')}" if group[1:] else ""),
            tuple(group),
        )
        for group in groups
    ]


def folded(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Return the lanes with equally busy cores as one, which is busy while any of them is."""
    folded_lanes = []
    for name, group in runs_of_cores([(lane.name, lane.busy) for lane in lanes]):
        spans = [span for index in group for span in lanes[index].spans]
        folded_lanes.append(Lane(name, tuple(_joined_spans(spans))))
    return tuple(folded_lanes)


def is_core(name: str) -> bool:
    """Whether a lane is a single core: "core0", "core1" and so on."""
    return re.fullmatch(r"core\d+", name) is not None


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts core2 before core10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def _joined_spans(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """Return the spans in order, joining those that overlap or are at most ``gap`` apart."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _gaps(spans: Sequence[Span], end: int) -> Iterable[Span]:
    """Return the gaps between the spans in 0..end."""
    at = 0
    for first, last in spans:
        if first > at:
            yield at, first
        at = last
    if at < end:
        yield at, end


def coarse(lanes: Sequence[Lane], most: int) -> tuple[tuple[Lane, ...], int]:
    """Return the lanes with at most ``most`` spans in all, and the gap in cycles that was closed.

    Gaps are closed starting with the smallest, and no more than needed (within a factor of two).
    """
    gap = 0
    while sum(len(lane.spans) for lane in lanes) > most:
        gap = max(1, 2 * gap)
        lanes = [Lane(lane.name, tuple(_joined_spans(lane.spans, gap))) for lane in lanes]
    return tuple(lanes), gap
