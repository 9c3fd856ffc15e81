"""A report of a build, with the measurements of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from htvm.tools.facts.energy import accelerators_of, energy_of, step_energy
from htvm.tools.facts.units import units_of
from htvm.tools.report.types import LayerRow, Report

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.result import LayerResult, RunResult


def with_run(report: Report, result: RunResult, soc: Soc) -> Report:
    """Return a report with the measurements of a run of the same build.

    Args:
        report: the report, without a run.
        result: the result of the run.
        soc: the SoC that it ran on.
    """
    used = accelerators_of(report.layers)
    rows = tuple(
        _row(row, measured, soc, used)
        for row, measured in zip(report.layers, result.layers, strict=True)
    )
    memory = report.summary.memory
    if result.stack_bytes is not None:
        memory = replace(memory, stack_used=result.stack_bytes)
    summary = replace(
        report.summary,
        memory=memory,
        notes=(*_estimate_notes(soc, result), *report.summary.notes),
        cycles=result.cycles,
        instructions=result.instructions,
        estimated_cycles=result.estimated_cycles,
        units=units_of(soc, result),
        causes=result.causes,
    )
    return replace(
        report,
        summary=summary,
        layers=rows,
        timeline=result.timeline,
        energy=energy_of(soc, rows),
    )


def _estimate_notes(soc: Soc, result: RunResult) -> tuple[str, ...]:
    """Return how many cycles the manual of a core gives for the instructions of a run."""
    core = soc.host.arm
    if core is None or result.instructions is None:
        return ()
    if core.cycles is None:
        return (f"No estimate of cycles: none are published for each instruction of {core.cpu}.",)
    if result.estimated_cycles is None:  # of a machine that counts, but does not tell which
        return ()
    low, high = result.estimated_cycles
    times = [1000.0 * number / soc.clock_hz for number in (low, high)]
    return (
        f"Estimate, not measured: {low:,} to {high:,} cycles, {times[0]:.2f} to {times[1]:.2f} ms "
        f"at {soc.clock_hz / 1e6:g} MHz ({core.cycles.source}; memory without wait states).",
    )


def _row(row: LayerRow, measured: LayerResult, soc: Soc, used: tuple[str, ...]) -> LayerRow:
    energy = step_energy(soc, row.accelerator, row.kind, measured.cycles, used)
    return replace(
        row,
        cycles=measured.cycles,
        causes=measured.causes,
        instructions=measured.instructions,
        start=measured.start,
        energy_uj=None if energy is None else energy[1],
    )
