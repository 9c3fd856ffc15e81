"""The timeline as a trace that Perfetto and Chrome show (JSON trace event format)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from htvm.tools.plots.bars import CAUSES
from htvm.tools.plots.lanes import lanes_of

if TYPE_CHECKING:
    from htvm.tools.report.data import LayerRow, ReportData

_PROCESS = 1
_STEPS = 0


def report_trace(report: ReportData) -> str:
    """The run as trace events: a thread for the steps, the host, the DMA and each accelerator.

    Spans have the name of the step they belong to; counters say how many bytes of each memory are
    in use.  Times are in microseconds of the SoC's clock, as the format requires; ``args`` have
    cycles.  Without a run the trace has no events, and ``otherData`` says so.
    """
    summary = report.summary
    microseconds = 1e6 / summary.clock_hz
    events = [_named("process_name", 0, f"{summary.network} on {summary.target}")]
    events.append(_named("thread_name", _STEPS, "steps"))

    def add(thread: int, name: str, start: int, cycles: int, **args: Any) -> None:
        events.append(
            {
                "name": name, "ph": "X", "pid": _PROCESS, "tid": thread,
                "ts": start * microseconds, "dur": cycles * microseconds,
                "args": {"start": start, "cycles": cycles, **args},
            }
        )  # fmt: skip

    for row in report.layers:
        if row.start is not None and row.cycles is not None:
            add(_STEPS, row.label, row.start, row.cycles, **_facts(row))
    steps = [
        (row.start, row.start + row.cycles, row.label)
        for row in report.layers
        if row.start is not None and row.cycles
    ]
    for thread, lane in enumerate(lanes_of(report.timeline, summary.cycles), start=1):
        events.append(_named("thread_name", thread, lane.name))
        events.append(_named("thread_sort_index", thread, thread))
        for start, end in lane.spans:
            add(thread, _step_at(steps, start) or lane.name, start, end - start)
    events += _memory(report, microseconds)
    other: dict[str, Any] = {"clock_hz": summary.clock_hz, "cycles": summary.cycles}
    if summary.cycles is None:
        other["why"] = report.no_cycles
    return json.dumps(
        {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}, allow_nan=False
    )


def _facts(row: LayerRow) -> dict[str, Any]:
    """Return what is known of a step: where, shape, tile, bytes, cycles by cause."""
    known: dict[str, Any] = {
        "op": row.op,
        "runs_on": row.accelerator,
        "shape": row.shape,
        "tile k,c,y,x": row.tile,
        "tiles": row.tiles,
        "MACs": row.macs or None,
        "bytes from L2": row.l2_read,
        "bytes to L2": row.l2_written,
        "bytes of weights": row.l2_weights,
        "bytes of L1": row.l1_bytes,
    }
    if row.causes is not None:
        known |= {title: getattr(row.causes, field) for field, (title, _) in CAUSES.items()}
    return {name: value for name, value in known.items() if value not in (None, "")}


def _step_at(steps: Sequence[tuple[int, int, str]], cycle: int) -> str:
    """Return the name of the step in which a cycle lies; empty between steps.

    Args:
        steps: first cycle, cycle after the last, and name of each, in order.
        cycle: the cycle.
    """
    number = bisect_right(steps, cycle, key=lambda step: step[0]) - 1
    return steps[number][2] if number >= 0 and cycle < steps[number][1] else ""


def _memory(report: ReportData, microseconds: float) -> Iterator[dict[str, Any]]:
    """Count the bytes in use of each memory, from step to step."""
    for entry in report.maps:
        for index, row in enumerate(report.layers):
            if row.start is None:
                continue
            used = sum(each.bytes for each in entry.blocks if each.first <= index <= each.last)
            yield {
                "name": f"{entry.memory}: bytes in use", "ph": "C", "pid": _PROCESS,
                "ts": row.start * microseconds, "args": {"bytes": used},
            }  # fmt: skip


def _named(kind: str, thread: int, value: str | int) -> dict[str, Any]:
    key = "sort_index" if kind.endswith("index") else "name"
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {key: value}}
