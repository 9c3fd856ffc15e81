"""The cycles of a run by cause, computed from the device models' events."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from htvm.activity import Interval
from htvm.result import Causes

HOST = "host"
"""Unit of the events during which the host waits."""

CLUSTER = "cluster"
"""Unit of the kernels that all cores compute together, from wake-up to barrier."""

FIRST_CORE = "core0"
"""Unit of the host's own share of kernels, if it is one of the cores that run them."""

DMA = "dma"
"""Unit of DMA transfers."""

_HART = re.compile(r"core[0-9]+")
"""Units of single harts; their work belongs to a kernel or to a transfer, which have own events."""


class EventLog:
    """The events of a run.

    Args:
        events: events from the device models: unit, start and end in cycles; for accelerators also
            the cycles of array and weights (a cluster's kernels count as array entirely).  Where
            two of them work at the same time, which a controller lets its cores and accelerators
            do, the cycles are charged to the one that started first.  Events of single harts
            ("core1" and so on) have no cause of their own.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._events = sorted(events, key=lambda event: event["start"])
        self._starts = [event["start"] for event in self._events]
        self._ends = list(accumulate((event["end"] for event in self._events), max))

    def causes(self, begin: int, end: int) -> Causes:
        """Return the cycles from ``begin`` to ``end`` by cause.

        Of an event that began before, or ends behind, the part in between counts: a layer may be
        started in one program step, and be waited for in another.
        """
        first, last = bisect_right(self._ends, begin), bisect_left(self._starts, end)
        events = [
            _within(event, begin, end) for event in self._events[first:last] if event["end"] > begin
        ]
        cores = [
            event
            for event in events
            if event["unit"] not in (HOST, DMA) and not is_hart(event["unit"])
        ]
        transfers = [event for event in events if event["unit"] == DMA]
        array, weights = _computing(cores)
        busy = _covered(cores)
        either = _covered([*cores, *transfers])
        waits = [event for event in events if event["unit"] == HOST]
        # A host that is one of the cores has a share of each kernel; a controller has none.
        shares = any(event["unit"] == FIRST_CORE for event in events)
        kernels = [event for event in cores if shares and event["unit"] == CLUSTER]
        covered_waits = _covered(waits)
        computing = _covered([*waits, *kernels]) - covered_waits
        return Causes(
            array=array,
            weights=weights,
            trigger=busy - array - weights,
            dma=_covered(transfers),
            dma_alone=either - busy,
            host=end - begin - covered_waits - computing,
            host_alone=end - begin - either,
            waiting=covered_waits,
            starved=_covered([*waits, *cores]) - busy,
            computing=computing,
        )

    def intervals(self) -> tuple[Interval, ...]:
        """Return every event as an interval of a unit."""
        return tuple(
            Interval(
                "waiting" if event["unit"] == HOST else str(event["unit"]),
                event["start"],
                event["end"],
            )
            for event in self._events
        )

    def busy(self) -> tuple[tuple[str, int], ...]:
        """Return the busy cycles of each device, sorted by name."""
        units = sorted({str(event["unit"]) for event in self._events} - {HOST})
        return tuple(
            (unit, _covered([event for event in self._events if event["unit"] == unit]))
            for unit in units
        )


def is_hart(unit: str) -> bool:
    """Whether a unit is a single hart."""
    return _HART.fullmatch(unit) is not None


def _within(event: Mapping[str, Any], begin: int, end: int) -> Mapping[str, Any]:
    """Return the part of an event between two cycles: of all of it, its array works first."""
    start, stop = max(event["start"], begin), min(event["end"], end)
    if (start, stop) == (event["start"], event["end"]):
        return event
    weights = event["start"] + event.get("array", 0)
    trigger = weights + event.get("weights", 0)
    return {
        **event,
        "start": start,
        "end": stop,
        "array": max(0, min(stop, weights) - start),
        "weights": max(0, min(stop, trigger) - max(start, weights)),
    }


def _computing(events: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the cycles of array and of weights, of events in the order in which they start.

    Of an event that others overlap, only cycles count in which none of them works that started
    before, as array first.
    """
    array = weights = last = 0
    for event in events:
        own = max(0, event["end"] - max(event["start"], last))
        last = max(last, event["end"])
        computed = min(event["array"], own)
        array += computed
        weights += min(event["weights"], own - computed)
    return array, weights


def _covered(events: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of cycles covered by at least one of the events."""
    total = last = 0
    for start, end in sorted((event["start"], event["end"]) for event in events):
        total += max(0, end - max(start, last))
        last = max(last, end)
    return total
