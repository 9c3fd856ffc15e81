"""What the cycles of a run were spent on, from the device models' own account of it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from htvm.result import Causes, Interval

__all__ = ["CLUSTER", "DMA", "HOST", "Timeline", "is_hart"]

HOST = "host"
"""Unit of the events in which the host waits."""

CLUSTER = "cluster"
"""Unit of the kernels that the host computes together with other harts: from the wake-up of these
to the barrier at which all meet."""

DMA = "dma"
"""Unit of transfers."""

_HART = re.compile(r"core[0-9]+")
"""Units of single harts, "core0" being the host within a kernel: what they do is a kernel's, or
somebody's transfer, which has an event of its own."""


class Timeline:
    """The events of a run.

    Args:
        events: as the device models wrote them down: unit, start and end in cycles; of an
            accelerator also the cycles of array and weights; so of a cluster's kernels, all of
            whose cycles are its array's.  No two of them work at the same time: a host that
            computes with its cores orders nothing.  Those of single harts ("core1" and so on) have
            no cause of their own.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._events = sorted(events, key=lambda event: event["start"])
        self._starts = [event["start"] for event in self._events]

    def causes(self, begin: int, end: int) -> Causes:
        """What the cycles from ``begin`` to ``end`` were spent on.

        Every event that starts in between must end there, too: at the end of a step of the
        program all devices are idle.
        """
        events = self._events[bisect_left(self._starts, begin) : bisect_left(self._starts, end)]
        cores = [
            event
            for event in events
            if event["unit"] not in (HOST, DMA) and not is_hart(event["unit"])
        ]
        transfers = [event for event in events if event["unit"] == DMA]
        array = sum(event["array"] for event in cores)
        weights = sum(event["weights"] for event in cores)
        busy = _covered(cores)
        either = _covered([*cores, *transfers])
        waits = [event for event in events if event["unit"] == HOST]
        kernels = [event for event in cores if event["unit"] == CLUSTER]
        waiting = _covered(waits)
        computing = _covered([*waits, *kernels]) - waiting
        return Causes(
            array=array,
            weights=weights,
            trigger=busy - array - weights,
            dma=_covered(transfers),
            dma_alone=either - busy,
            host=end - begin - waiting - computing,
            host_alone=end - begin - either,
            waiting=waiting,
            starved=_covered([*waits, *cores]) - busy,
            computing=computing,
        )

    def intervals(self) -> tuple[Interval, ...]:
        """Every event as who and when."""
        return tuple(
            Interval(
                "waiting" if event["unit"] == HOST else str(event["unit"]),
                event["start"],
                event["end"],
            )
            for event in self._events
        )

    def busy(self) -> tuple[tuple[str, int], ...]:
        """Busy cycles of each device, in the order of their names."""
        units = sorted({str(event["unit"]) for event in self._events} - {HOST})
        return tuple(
            (unit, _covered([event for event in self._events if event["unit"] == unit]))
            for unit in units
        )


def is_hart(unit: str) -> bool:
    """Whether a unit is a single hart."""
    return _HART.fullmatch(unit) is not None


def _covered(events: Sequence[Mapping[str, Any]]) -> int:
    """Cycles in which at least one of the events goes on."""
    total = last = 0
    for start, end in sorted((event["start"], event["end"]) for event in events):
        total += max(0, end - max(start, last))
        last = max(last, end)
    return total
