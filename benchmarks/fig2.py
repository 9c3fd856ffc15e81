"""HTVM (DAC 2023), Fig. 2: time diagram of a network on DIANA.

The paper draws one as a sketch; here are runs of ResNet-8 on the simulated SoC, both cores by the
published rule, under both schedules: what the host, the DMA and the cores did when.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource
from benchmarks.measure import CONFIGURATIONS, row_of
from byoc_dory.options import ScheduleKind
from byoc_dory.soc.diana.description import DIANA
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.result import RunResult
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

SCHEDULES: tuple[ScheduleKind, ...] = ("published", "overlapped")
UNITS = ("host", "dma", "digital", "analog")
_COLOURS = {"host": "tab:gray", "dma": "tab:green", "digital": "tab:blue", "analog": "tab:red"}

COLUMNS = (
    Column("step"),
    Column("runs on"),
    Column("start, published", number=True),
    Column("cycles, published", number=True),
    Column("start, overlapped", number=True),
    Column("cycles, overlapped", number=True),
)


def made_of() -> Iterator[RowSource]:
    """Every program that the figure is made of."""
    for schedule in SCHEDULES:
        yield row_of("resnet8", CONFIGURATIONS[2], schedule)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Draw time diagrams of ResNet-8."""
    progress = progress or Progress()
    runs: dict[ScheduleKind, RunResult] = {}
    for schedule in SCHEDULES:
        with progress.stage(f"resnet8, {schedule}"):
            module = htvm.build(
                zoo.build("resnet8", scheme="mixed"), "diana.mixed", schedule=schedule
            )
            runs[schedule] = module.run(seeded_inputs(module.model.inputs))
    artefact = Artefact(
        "fig2",
        "Fig. 2: time diagram of ResNet-8 on both cores",
        "\n\n".join([str(__doc__).strip(), text(_table(runs))]),
        {
            "clock_hz": DIANA.clock_hz,
            "runs": {
                schedule: {
                    "cycles": found.cycles,
                    "steps": [[s.name, s.accelerator, s.start, s.cycles] for s in found.layers],
                    "busy": dict(found.units),
                }
                for schedule, found in runs.items()
            },
        },
        {"fig2": _figure(runs)},
    )
    write(artefact, folder)
    return artefact


def _table(runs: dict[ScheduleKind, RunResult]) -> Table:
    rows: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
    for schedule, found in runs.items():
        for step in found.layers:
            key = (step.name, step.kind, step.accelerator)
            rows.setdefault(key, {})[schedule] = (f"{step.start:,}", f"{step.cycles:,}")
    return Table(
        COLUMNS,
        tuple(
            (
                f"{name} ({kind})" if kind in ("prologue", "epilogue") else name,
                accelerator,
                *cells.get("published", ("", "")),
                *cells.get("overlapped", ("", "")),
            )
            for (name, kind, accelerator), cells in rows.items()
        ),
    )


def _figure(runs: dict[ScheduleKind, RunResult]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    longest = max(found.cycles or 0 for found in runs.values())
    all_axes = figure.subplots(len(runs), 1, sharex=True)
    for axes, (schedule, found) in zip(all_axes, runs.items(), strict=True):
        for height, unit in enumerate(reversed(UNITS)):
            axes.broken_barh(
                _bars(found, unit), (height - 0.4, 0.8), color=_COLOURS[unit], linewidth=0
            )
        for step in found.layers:
            if step.start is not None:
                axes.axvline(step.start, color="black", linewidth=0.2)
        axes.set_yticks(range(len(UNITS)), list(reversed(UNITS)))
        cycles = found.cycles or 0
        title = f'schedule="{schedule}": {cycles:,} cycles, {cycles * 1000 / DIANA.clock_hz:.2f} ms'
        axes.set(title=title, xlim=(0, longest))
    all_axes[-1].set_xlabel("cycles; thin lines: start of a step")
    return figure


def _bars(found: RunResult, unit: str) -> list[tuple[int, int]]:
    """(start, length) of what a unit does; the host works when it does not wait."""
    if unit != "host":
        return [(i.start, i.end - i.start) for i in found.timeline if i.unit == unit]
    bars, last = [], 0
    for interval in found.timeline:
        if interval.unit == "waiting":
            bars.append((last, max(0, interval.start - last)))
            last = max(last, interval.end)
    bars.append((last, (found.cycles or 0) - last))
    return [bar for bar in bars if bar[1] > 0]


if __name__ == "__main__":
    sys.exit(main(run))
