"""The timeline as a trace that Perfetto and Chrome show (JSON trace event format)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from htvm.report.lanes import lanes_of

if TYPE_CHECKING:
    from htvm.report.data import ReportData

__all__ = ["report_trace"]

_PROCESS = 1
_STEPS = 0


def report_trace(report: ReportData) -> str:
    """The run as trace events: a thread for the steps, the host, the DMA and each accelerator.

    Times are in microseconds of the SoC's clock, as the format requires; ``args`` have cycles.
    Without a run the trace has no events, and ``otherData`` says so.
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
            add(_STEPS, row.label, row.start, row.cycles, op=row.op, runs_on=row.accelerator)
    for thread, lane in enumerate(lanes_of(report), start=1):
        events.append(_named("thread_name", thread, lane.name))
        events.append(_named("thread_sort_index", thread, thread))
        for start, end in lane.spans:
            add(thread, lane.name, start, end - start)
    other: dict[str, Any] = {"clock_hz": summary.clock_hz, "cycles": summary.cycles}
    if summary.cycles is None:
        other["why"] = report.no_cycles
    return json.dumps(
        {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}, allow_nan=False
    )


def _named(kind: str, thread: int, value: str | int) -> dict[str, Any]:
    key = "sort_index" if kind.endswith("index") else "name"
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {key: value}}
