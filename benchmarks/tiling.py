"""Ways of tiling compared: latency of the tiles they choose, over that of the quickest tiles.

Published: accelerator-aware tiling is up to 6.2x faster than tiling that only fills the memory
(HTVM, DAC 2023, IV-A); the layers and budgets of that figure are not.  Ours are those of
`benchmarks.tiling_layers`, wherever a layer has to be tiled and can be.  Cycles are those of the
project's cycle model of the digital core, one layer at a time: under the published schedule
(single-buffered), and under the overlapped one, each objective asked for by name (where none is,
the planner gives up to 5 % of a layer's latency for weights that fill L2 without holes).
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, computed
from benchmarks.tiling_layers import BUDGETS, SHAPES, Shape
from byoc_dory.cost import Cost
from byoc_dory.explore import Sweep, explore_layer
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import Tile, TilingProblem, quickest, shortage_of
from byoc_dory.tiling.latency import best_tiles
from htvm.progress import Progress
from htvm.shown import optional
from htvm.tools.report.sweep_figures import below
from htvm.tools.report.table import Column, Table, text

__all__ = ["WAYS", "Case", "made_of", "run", "tried"]

CORE = DIANA.accelerator("digital")

# DAC 2023, IV-A.
PUBLISHED_SPEED_UP = 6.2

WAYS = {
    "none": "memory only (hardware-agnostic)",
    "paper-pe": "Eq. 3-4 as printed",
    "paper": "Eq. 3-5 as printed",
    "array": "following the array",
    "latency": "latency",
}
"""Objectives, and what they are called here."""


@dataclass(frozen=True)
class Case:
    """A layer under a budget, the tile of each way and its cycles, and whether it must be tiled."""

    shape: Shape
    budget: int
    tiles: dict[str, Tile]
    cycles: dict[str, int]
    tiled: bool

    @property
    def quickest(self) -> int:
        """Cycles of the quickest tile."""
        return min(self.cycles.values())

    def over_quickest(self, way: str) -> float:
        """Latency over that of the quickest tile."""
        return self.cycles[way] / self.quickest


def tried(shape: Shape, budget: int) -> Case | None:
    """Every way of tiling a layer under the published schedule; None where no tile fits."""
    layer = shape.layer()
    problem = CORE.tiling_problem(DIANA, layer, TilingOptions(budget, schedule="published"))
    if shortage_of(problem) is not None:
        return None
    tiles = chosen(layer, problem)
    cost = cycles(layer)
    found = {way: cost(tile) for way, tile in tiles.items()}
    return Case(shape, budget, tiles, found, not problem.tile_fits(problem.whole))


def overlapped(shape: Shape, budget: int) -> Case | None:
    """The same under the overlapped schedule, as the region's planner would do it."""
    sweep = Sweep(tuple(WAYS), l1_budgets=(budget,), options=TilingOptions(schedule="overlapped"))
    tiles, found = {}, {}
    for row in explore_layer(DIANA, CORE, shape.layer(), sweep):
        if row.tile is None or row.cycles is None:
            return None
        tiles[row.objective], found[row.objective] = row.tile, row.cycles
    problem = CORE.tiling_problem(DIANA, shape.layer(), TilingOptions(budget))
    return Case(shape, budget, tiles, found, not problem.tile_fits(problem.whole))


SCHEDULES = {"published": tried, "overlapped": overlapped}


def cycles(layer: Layer) -> Callable[[Tile], int]:
    """The cycle model of a layer."""
    return partial(Cost(DIANA, TilingOptions(schedule="published")).tile_cycles, CORE, layer)


def chosen(layer: Layer, problem: TilingProblem) -> dict[str, Tile]:
    """The tile of each way."""
    heuristics = [CORE.objectives[way] for way in WAYS if way in CORE.objectives]
    tiles = best_tiles(problem, heuristics)
    best = quickest(problem, cycles(layer), heuristics, TilingOptions())
    return {**{entry.name: tile for entry, tile in zip(heuristics, tiles, strict=True)},
            "latency": best.tile}  # fmt: skip


def made_of() -> Iterator[RowSource]:
    """The tiles of each layer, and their cycles."""
    for schedule in SCHEDULES:
        for shape in SHAPES:
            yield computed(f"{shape.name}, {schedule}", partial(_cases, shape, schedule))


def _cases(shape: Shape, schedule: str) -> list[Case]:
    found = [SCHEDULES[schedule](shape, budget) for budget in BUDGETS]
    return [case for case in found if case is not None and case.tiled]


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Compare ways of tiling on the digital core of DIANA."""
    progress = progress or Progress()
    cases: dict[str, list[Case]] = {}
    for schedule in SCHEDULES:
        cases[schedule] = []
        for shape in SHAPES:
            with progress.stage(f"tiling {shape.name}, {schedule}"):
                cases[schedule] += _cases(shape, schedule)
    parts = [str(__doc__).strip()]
    for schedule, mine in cases.items():
        parts += [text(_summary(mine, schedule)), _said(mine)]
    parts += [text(_all(mine, schedule)) for schedule, mine in cases.items()]
    artefact = Artefact(
        "tiling",
        "Ways of tiling: predicted latency over that of the quickest tile",
        "\n\n".join(parts),
        {
            "published_speed_up": PUBLISHED_SPEED_UP,
            "schedules": {schedule: _data(mine) for schedule, mine in cases.items()},
        },
        {"tiling": _figure(cases)},
    )
    write(artefact, folder)
    return artefact


def _data(cases: Sequence[Case]) -> dict[str, object]:
    return {
        "speed_up_over_memory_only": {way: _speed_up(cases, way) for way in WAYS},
        "over_quickest": {way: _figures(cases, way) for way in WAYS},
        "cases": [
            {
                "layer": case.shape.name,
                "shape": case.shape.layer().shape_text,
                "l1_budget": case.budget,
                "tiles": {way: str(tile) for way, tile in case.tiles.items()},
                "cycles": case.cycles,
            }
            for case in cases
        ],
    }


def _figures(cases: Sequence[Case], way: str) -> dict[str, float]:
    ratios = [case.over_quickest(way) for case in cases]
    return {
        "median": statistics.median(ratios),
        "geometric_mean": math.exp(statistics.fmean(map(math.log, ratios))),
        "worst": max(ratios),
        "optimal_share": sum(ratio == 1 for ratio in ratios) / len(ratios),
    }


def _speed_up(cases: Sequence[Case], way: str) -> float:
    """The largest over memory only."""
    return max(case.cycles["none"] / case.cycles[way] for case in cases)


def _summary(cases: Sequence[Case], schedule: str) -> Table:
    rows = []
    for kind in ("all", "conv2d", "depthwise", "add", "dense"):
        mine = [case for case in cases if kind in ("all", case.shape.op)]
        for way, title in WAYS.items():
            if not mine:
                continue
            found = _figures(mine, way)
            rows.append(
                (
                    kind,
                    str(len(mine)),
                    title,
                    f"{found['median']:.2f}",
                    f"{found['geometric_mean']:.2f}",
                    f"{found['worst']:.1f}",
                    f"{100 * found['optimal_share']:.0f} %",
                    f"{_speed_up(mine, way):.1f}x",
                )
            )
    titles = ("operator", "cases", "way of tiling", "median", "geometric mean", "worst")
    columns = (*titles, "quickest itself", "largest speed-up over memory only")
    return Table(
        tuple(Column(title, number not in (0, 2)) for number, title in enumerate(columns)),
        tuple(rows),
        title=f"Latency over that of the quickest tile, {schedule} schedule",
    )


def _said(cases: Sequence[Case]) -> str:
    convs = [case for case in cases if case.shape.op == "conv2d"]
    lost = sum(case.over_quickest("latency") > 1 for case in cases)
    return (
        f"Largest speed-up over memory only, convolutions: {_speed_up(convs, 'array'):.1f}x "
        f"following the array, {_speed_up(convs, 'paper'):.1f}x as printed, "
        f"{_speed_up(convs, 'latency'):.1f}x latency; published: up to {PUBLISHED_SPEED_UP}x.\n"
        f"Cases in which latency loses to another way: {lost}."
    )


def _all(cases: Sequence[Case], schedule: str) -> Table:
    columns = (Column("layer"), Column("L1 kB", number=True), Column("quickest", number=True))
    ways = list(WAYS)
    rows = tuple(
        (
            case.shape.name,
            f"{case.budget / 1000:g}",
            f"{case.quickest:,}",
            *(f"{case.over_quickest(way):.2f}" for way in ways),
        )
        for case in cases
    )
    return Table(
        (*columns, *(Column(way, number=True) for way in ways)),
        rows,
        title=f"Cycles of the quickest tile, and all over it, {schedule} schedule",
    )


def _figure(cases: dict[str, list[Case]]) -> object:
    """Each way's ratios, sorted: how many cases are within which factor of the quickest."""
    figure = optional("matplotlib.figure", "figures").Figure(figsize=(11, 5), layout="constrained")
    for number, (schedule, mine) in enumerate(cases.items()):
        axes = figure.add_subplot(1, len(cases), number + 1)
        share = [100 * (rank + 1) / len(mine) for rank in range(len(mine))]
        for way, title in WAYS.items():
            ratios = sorted(case.over_quickest(way) for case in mine)
            axes.step(ratios, share, where="post", label=title)
        axes.axvline(PUBLISHED_SPEED_UP, color="grey", linestyle=":", label="published: up to 6.2x")
        axes.set_xscale("log")
        axes.set_title(f"{schedule} schedule", fontsize=9)
        axes.set_xlabel("latency over that of the quickest tile")
        axes.set_ylabel("% of layers and budgets")
        axes.grid(True, which="both", alpha=0.3)
    below(figure)
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
