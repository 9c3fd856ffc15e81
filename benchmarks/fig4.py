"""HTVM (DAC 2023), Fig. 4: latency of convolutions against the L1 budget, for ways of tiling.

Published: without heuristics (round markers), with Eq. 3-4 (square), with Eq. 3-5 (diamond); up to
6.2x between them; layers and budgets are in the picture alone, so those here are ours.  Taken as
printed, Eq. 3-4 reward C and ix, of which this core never tiles C, where the array unrolls K and
ox; the same idea on the array's own dimensions, and the quickest tiles, are drawn beside.  Cycles
are those of the project's cycle model of the digital core, `schedule="published"`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, computed
from benchmarks.tiling import PUBLISHED_SPEED_UP, WAYS, Case, tried
from benchmarks.tiling_layers import SAME, Shape
from byoc_dory.soc.diana.description import DIANA
from htvm.progress import Progress
from htvm.shown import optional
from htvm.tools.report.sweep_figures import below, log_axes
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

SHAPES = tuple(
    Shape(f"{c} channels, {size}x{size}", "conv2d", c, c, size, size, (3, 3), 1, SAME)
    for c, size in ((16, 32), (32, 32), (64, 32), (32, 64), (128, 16), (16, 64))
)
BUDGETS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Of L1, in kB."""

# Markers as published; the last two are not in the paper.
MARKERS = {"none": "o", "paper-pe": "s", "paper": "D", "array": "^", "latency": "x"}


def made_of() -> Iterator[RowSource]:
    """The tiles of each layer, and their cycles."""
    for shape in SHAPES:
        yield computed(shape.name, partial(_cases, shape))


def _cases(shape: Shape) -> list[Case]:
    found = [tried(shape, 1000 * budget) for budget in BUDGETS]
    return [case for case in found if case is not None]


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Draw latency against L1 budget for ways of tiling."""
    progress = progress or Progress()
    cases: dict[Shape, list[Case]] = {}
    for shape in SHAPES:
        with progress.stage(f"tiling {shape.name}"):
            cases[shape] = _cases(shape)
    tables = [text(_table(shape, found)) for shape, found in cases.items()]
    artefact = Artefact(
        "fig4",
        "Fig. 4: latency against L1 budget for ways of tiling",
        "\n\n".join([str(__doc__).strip(), text(_summary(cases)), *tables]),
        {
            "published_speed_up": PUBLISHED_SPEED_UP,
            "clock_hz": DIANA.clock_hz,
            "layers": [
                {
                    "name": shape.name,
                    "shape": shape.layer().shape_text,
                    "points": [
                        {"l1_budget": case.budget, "tiled": case.tiled, "cycles": case.cycles}
                        for case in found
                    ],
                }
                for shape, found in cases.items()
            ],
        },
        {"fig4": _figure(cases)},
    )
    write(artefact, folder)
    return artefact


def _summary(cases: dict[Shape, list[Case]]) -> Table:
    """The largest speed-up of each way over memory only."""
    ways = [way for way in WAYS if way != "none"]
    rows = []
    for shape, found in cases.items():
        ups = (max(case.cycles["none"] / case.cycles[way] for case in found) for way in ways)
        rows.append((shape.name, *(f"{up:.1f}x" for up in ups)))
    everything = [case for found in cases.values() for case in found]
    ups = (max(case.cycles["none"] / case.cycles[way] for case in everything) for way in ways)
    columns = (Column("3x3 convolution"), *(Column(WAYS[way], number=True) for way in ways))
    return Table(
        columns,
        tuple(rows),
        title=f"Largest speed-up over memory only (published: up to {PUBLISHED_SPEED_UP}x)",
        footer=("all", *(f"{up:.1f}x" for up in ups)),
    )


def _table(shape: Shape, found: Sequence[Case]) -> Table:
    columns = (Column("L1 kB", number=True), Column("tiled"))
    rows = tuple(
        (
            f"{case.budget / 1000:g}",
            "yes" if case.tiled else "no",
            *(f"{case.cycles[way]:,}" for way in WAYS),
        )
        for case in found
    )
    ways = (Column(WAYS[way], number=True) for way in WAYS)
    title = f"{shape.name}: cycles ({shape.layer().shape_text})"
    return Table((*columns, *ways), rows, title=title)


def _figure(cases: dict[Shape, list[Case]]) -> object:
    figure = optional("matplotlib.figure", "figures").Figure(
        figsize=(12, 6.5), layout="constrained"
    )
    for number, (shape, found) in enumerate(cases.items()):
        axes = figure.add_subplot(2, 3, number + 1)
        for way, marker in MARKERS.items():
            axes.plot(
                [case.budget for case in found], [case.cycles[way] for case in found],
                marker=marker, markersize=5, linewidth=1, label=WAYS[way],
            )  # fmt: skip
        log_axes(axes, [1000 * budget for budget in BUDGETS])
        untiled = [case.budget for case in found if not case.tiled]
        if untiled:
            axes.axvspan(min(untiled), 1000 * BUDGETS[-1], color="grey", alpha=0.2)
        axes.set_title(shape.name, fontsize=9)
        axes.set_ylabel("predicted cycles", fontsize=8)
        axes.tick_params(labelsize=7)
    below(figure)
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
