"""The report of one build: one row per step, the cycles by cause, and the use of memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from htvm.result import Causes
from htvm.tools.report.bound import bound_text
from htvm.tools.report.data import L1Use, L2Use, LayerRow, ReportData, SqnrRow, Summary
from htvm.tools.report.estimated import accesses_text, estimates_table
from htvm.tools.report.screen import cost_lines
from htvm.tools.report.table import (
    Column,
    Table,
    count,
    csv_text,
    milliseconds,
    percent,
    ratio,
    short_source,
    table_of,
    text,
    wrapped,
)

if TYPE_CHECKING:
    from htvm.tools.report.data import LayerRow


_WORST = 3  # number of layers named as those that lost the most


def layer_table(report: ReportData) -> Table:
    """Return the table of steps, in execution order, with a total below.

    Where it has a width, the last columns are left out; JSON and CSV have every field.
    """
    total = report.summary.cycles
    macs = sum(row.macs for row in report.layers)
    predicted = [row.predicted_cycles for row in report.layers]
    known = sum(value for value in predicted if value is not None)
    footer = (
        "total",
        "",
        "",
        count(macs),
        count(total),
        # A sum over some of the rows would look like a prediction of the whole.
        count(known) if predicted and None not in predicted else "",
        "",
        ratio(macs, total),
        count(report.summary.instructions),
        ratio(report.summary.instructions, macs),
        "",
        "",
    )
    return table_of(
        report.layers,
        (Column("layer", wraps=True), lambda row: row.label),
        (Column("runs on"), lambda row: row.accelerator),
        (Column("shape", wraps=True), lambda row: row.shape),
        (Column("MACs", number=True), lambda row: row.macs or None),
        (Column("cycles", number=True), lambda row: row.cycles),
        (Column("predicted", number=True, spare=True), lambda row: row.predicted_cycles),
        (Column("%", number=True), lambda row: percent(row.cycles, total)),
        (
            Column("MAC/cycle", number=True, spare=True),
            lambda row: ratio(row.macs or None, row.cycles),
        ),
        (Column("instructions", number=True), lambda row: row.instructions),
        (Column("per MAC", number=True, spare=True), lambda row: ratio(row.instructions, row.macs)),
        (Column("uJ", number=True, spare=True), lambda row: ratio(row.energy_uj, 1)),
        (Column("tile (kcyx)", spare=True), lambda row: row.tile),
        footer=footer,
    )


def memory_text(memory: L2Use) -> str:
    """Return lines on the use of L2, and of memories with weights of their own."""
    if memory.flash_limit is not None:
        return "\n".join([*_flash_and_ram(memory), *_arena_lines(memory)])
    parts = (
        f"code {count(memory.code)} + constants {count(memory.constants)} + "
        f"arena {count(memory.arena)} + {_stack(memory)}"
        + (f" + inputs and outputs {count(memory.io)}" if memory.io else "")
    )
    limit = "" if memory.limit is None else f" of {count(memory.limit)}"
    line = f"L2: {count(memory.total)}{limit} B = {parts} B"
    for name, size, whole in memory.apart:
        line += f"\n{name}: {count(size)} of {count(whole)} B = weights"
    return "\n".join([line, *_arena_lines(memory)])


def _stack(memory: L2Use) -> str:
    used = "" if memory.stack_used is None else f" ({count(memory.stack_used)} used)"
    return f"stack {count(memory.stack)}{used}"


def _flash_and_ram(memory: L2Use) -> list[str]:
    by = f", by {memory.compiler}" if memory.compiler else ""
    limit = "" if memory.limit is None else f" of {count(memory.limit)}"
    return [
        f"flash: {count(memory.flash)} of {count(memory.flash_limit)} B = "
        f"code {count(memory.code)} + constants {count(memory.constants)} B{by}",
        f"RAM: {count(memory.total)}{limit} B = arena {count(memory.arena)} + "
        f"{_stack(memory)} + inputs and outputs {count(memory.io)} B",
    ]


def _arena_lines(memory: L2Use) -> list[str]:
    if memory.arena_bound is None:
        return []
    gap = memory.arena - memory.arena_bound
    proof = "no plan is smaller" if gap == 0 else f"the plan takes {count(gap)} B more"
    return [f"arena: at least {count(memory.arena_bound)} B are needed, {proof}"]


def l1_text(uses: Sequence[L1Use]) -> str:
    """A line on L1 for each region with resident tensors, and one for all others together."""
    lines = []
    for use in uses:
        if not use.resident:
            continue
        saved = (
            f"L1 in {use.region}: {count(use.peak)} of {count(use.limit)} B; "
            f"{len(use.resident)} of {use.layers} results stay there, "
            f"{count(use.cycles)} cycles predicted instead of {count(use.apart)}"
        )
        lines.append(saved + (f", at most {100 * use.gap:.1f} % from the best" if use.gap else ""))
    others = [use for use in uses if not use.resident]
    if others:
        where = "L1 elsewhere" if lines else "L1"
        peak, limit = max(use.peak for use in others), min(use.limit for use in others)
        lines.append(f"{where}: {count(peak)} of {count(limit)} B, nothing stays between layers")
    return "\n".join(lines)


def units_text(summary: Summary, width: int | None = None) -> str:
    """Return one line per unit of the SoC on what it did; empty without a run."""
    if not summary.units:
        return ""
    table = table_of(
        summary.units,
        (Column("unit"), lambda unit: unit.name),
        (Column("busy cycles", number=True), lambda unit: unit.cycles),
        (Column("charged", number=True), lambda unit: unit.charged),
        (Column("%", number=True), lambda unit: percent(unit.charged, summary.cycles)),
        (Column("doing", wraps=True), lambda unit: unit.what),
    )
    head = (
        "units work in parallel: a cycle is charged to every accelerator that works then;\n"
        "if none does, to the DMA if it works, else to the host"
    )
    return f"{head}\n\n{text(table, width)}"


def causes_table(report: ReportData) -> Table:
    """Return the cycles by cause of each step on an accelerator, with the whole run below.

    Tiles are marked if they are double-buffered; tensors that stay in L1 are not moved.
    """
    whole = report.summary.causes
    cause_cycles = [count(getattr(whole, cause)) for cause in _CAUSES] if whole is not None else []
    rows = (row for row in report.layers if row.causes and row.causes.cores + row.causes.dma)
    return table_of(
        rows,
        (Column("layer", wraps=True), lambda row: row.name),
        *((column, _cause_cycles(cause)) for cause, column in _CAUSES.items()),
        (Column("tiles", number=True, spare=True), _tiles),
        (Column("in L1", spare=True), lambda row: row.resident),
        title="cycles by cause: array + weights + trigger + DMA alone + host alone = cycles",
        footer=("the whole run", *cause_cycles, "", "") if cause_cycles else (),
    )


_CAUSES = {
    "cycles": Column("cycles", number=True),
    "array": Column("array", number=True),
    "weights": Column("weights", number=True),
    "trigger": Column("trigger", number=True),
    "dma_alone": Column("DMA alone", number=True),
    "host_alone": Column("host alone", number=True),
    "dma": Column("DMA busy", number=True, spare=True),
    "waiting": Column("waiting", number=True, spare=True),
}


def _cause_cycles(cause: str) -> Callable[[LayerRow], int | None]:
    """Return the cycles of a cause, of a step that has causes."""
    return lambda row: getattr(row.causes, cause)


def overlap_text(causes: Causes | None) -> str:
    """Say how many transfer cycles are hidden, and what the host waits for; empty without any."""
    if causes is None or not causes.dma:
        return ""
    return (
        f"DMA: in {count(causes.dma_hidden)} of its {count(causes.dma)} cycles an accelerator works"
        f"\nhost: waits {count(causes.waiting - causes.starved)} cycles for an accelerator, "
        f"{count(causes.starved)} for transfers"
    )


def _tiles(row: LayerRow) -> str:
    return count(row.tiles) + (" x2" if row.double_buffered else "")


def energy_text(report: ReportData) -> str:
    """Return the energy and its sources; empty without energy."""
    energy = report.energy
    if energy is None:
        return ""
    share = percent(energy.cycles, report.summary.cycles)
    whole = share == "100.0"  # except between steps
    lines = [
        f"energy: {energy.microjoules:.2f} uJ for {share} % of the cycles, "
        + ("" if whole else "of the rest no power is known; ")
        + "derived from",
        *(f"  {power}" for power in energy.powers),
    ]
    return "\n".join(lines)


def _headline(report: ReportData) -> str:
    summary = report.summary
    line = f"{summary.network} for {summary.target}, platform {summary.platform}"
    if summary.policy:
        line += f", policy {summary.policy}, schedule {summary.schedule}"
    if summary.instructions is not None:
        return f"{line}: {count(summary.instructions)} instructions (no cycles: an emulator ran it)"
    if summary.cycles is None:
        return f"{line}: no cycles, {report.no_cycles}"
    return (
        f"{line}: {count(summary.cycles)} cycles = "
        f"{milliseconds(summary.latency_ms)} ms at {summary.clock_hz / 1e6:g} MHz"
    )


def _sqnr_text(report: ReportData, width: int | None) -> str:
    """Return the loss of accuracy due to retargeting; empty if the scheme was not changed."""
    labelled = "" if report.decisions is None else str(report.decisions)
    if report.output_sqnr_db is None and not report.sqnr:
        return labelled
    rows = [*report.sqnr]
    if report.output_sqnr_db is not None:
        rows.append(SqnrRow("output", report.output_sqnr_db))
    title = (
        "retargeted to the accelerator's number scheme: signal to quantization noise (SQNR) against"
        "\nthe source model (output: before a softmax)"
    )
    if report.measured_on:
        title += f", measured on {report.measured_on}"
    table = table_of(
        rows,
        (Column("layer"), lambda row: row.layer),
        (Column("SQNR dB", number=True), lambda row: f"{row.sqnr_db:.1f}"),
        (Column("source", wraps=True), lambda row: short_source(row.source)),
        title=title,
    )
    lines = [text(table, width)]
    worst = sorted(report.sqnr, key=lambda row: row.sqnr_db)[:_WORST]
    lines += ["worst: " + ", ".join(f"{row.layer} ({row.sqnr_db:.1f} dB)" for row in worst)]
    if report.output_largest is not None:
        lines.append(f"largest difference at the outputs: {report.output_largest} steps")
    if report.same_decision is not None:
        lines.append(f"same decision as the source: {100 * report.same_decision:.1f} %")
    return "\n".join([*lines, *filter(None, [labelled])])


def report_text(report: ReportData, width: int | None = None) -> str:
    """Return the whole report as text.

    Args:
        report: the report.
        width: characters per line: tables leave columns out that do not fit, and lines are
            wrapped; no limit by default.
    """
    parts = [
        _headline(report),
        "\n".join(cost_lines(report) if width is None else cost_lines(report, width)),
        text(layer_table(report), width),
        text(causes_table(report), width) if causes_table(report).rows else "",
        overlap_text(report.summary.causes),
        text(estimates_table(report), width) if report.estimates else "",
        accesses_text(report),
        units_text(report.summary, width),
        bound_text(report),
        accuracy_text(report.layers),
        energy_text(report),
        memory_text(report.summary.memory),
        l1_text(report.l1),
        _sqnr_text(report, width),
        "\n".join(report.summary.notes),
    ]
    shown = "\n\n".join(part for part in parts if part)
    return shown if width is None else "\n".join(wrapped(shown.split("\n"), width))


def report_csv(report: ReportData) -> str:
    """Return the steps as CSV, one column per field of `LayerRow` and of its causes."""
    names = [field.name for field in dataclasses.fields(LayerRow) if field.name != "causes"]
    causes = [field.name for field in dataclasses.fields(Causes)]
    rows = (
        [getattr(row, name) for name in names]
        + [None if row.causes is None else getattr(row.causes, name) for name in causes]
        for row in report.layers
    )
    return csv_text([*names, *causes], rows)


def error_of(row: LayerRow) -> float | None:
    """Return the prediction's error as a fraction of the simulated cycles; None without either."""
    if row.predicted_cycles is None or not row.cycles:
        return None
    return row.predicted_cycles / row.cycles - 1


def accuracy_text(rows: Sequence[LayerRow]) -> str:
    """Return the errors of the predictions in a few lines; empty if nothing can be compared.

    The median is that of the absolute errors; the worst error is positive if the prediction is too
    high.  Steps on accelerators and the host's conversions for them are listed separately: tiles
    are chosen by the predictions of the former.
    """
    layers = [row for row in rows if row.kind == "layer"]
    others = [row for row in rows if row.kind != "layer"]
    parts = []
    for what, steps in (("layers on accelerators", layers), ("conversions", others)):
        errors = [(error, row.label) for row in steps if (error := error_of(row)) is not None]
        if errors:
            worst, name = max(errors, key=lambda entry: abs(entry[0]))
            typical = median(abs(error) for error, _ in errors)
            parts.append(
                f"  {what} ({len(errors)}): median error {100 * typical:.1f} %, "
                f"worst {name} ({100 * worst:+.1f} %)"
            )
    return "\n".join(["predicted against simulated cycles:", *parts]) if parts else ""
