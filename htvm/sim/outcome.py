"""Turning the raw results of a run into the user's `RunResult`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htvm.result import LayerResult, RunResult
from htvm.sim.causes import EventLog

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.steps import Step
    from htvm.sim.runner import RawResult


def outcome(raw: RawResult, steps: Sequence[Step], soc: Soc) -> RunResult:
    """Return the outputs of a run, and its cycles by cause.

    Args:
        raw: the raw results of the run.
        steps: steps of the program.
        soc: the SoC, whose clock converts cycles to milliseconds.
    """
    timeline = EventLog(raw.events)
    spans: Sequence[tuple[int, int] | None] = raw.spans or [None] * len(steps)
    counts: Sequence[tuple[int, int] | None] = raw.step_instructions or [None] * len(steps)
    layers = tuple(
        LayerResult(
            step.layer,
            step.accelerator,
            step.kind,
            None if span is None else span[1] - span[0],
            step.predicted_cycles,
            step.macs,
            None if span is None else timeline.causes(*span),
            None if span is None else span[0],
            None if count is None else count[1] - count[0],
        )
        for step, span, count in zip(steps, spans, counts, strict=True)
    )
    return RunResult(
        outputs=list(raw.outputs),
        cycles=raw.cycles,
        latency_ms=None if raw.cycles is None else soc.cycles_to_ms(raw.cycles),
        layers=layers,
        stack_bytes=raw.stack_used,
        units=timeline.busy(),
        causes=None if raw.cycles is None else timeline.causes(0, raw.cycles),
        timeline=() if raw.cycles is None else timeline.intervals(),
        instructions=raw.instructions,
        estimated_cycles=raw.estimated_cycles,
    )
