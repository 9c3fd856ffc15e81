"""Ways of tiling compared: latency of the tiles they choose, over that of the quickest tiles.

Published: accelerator-aware tiling is up to 6.2x faster than tiling that only fills the memory
(HTVM, DAC 2023, IV-A); the layers and budgets of that figure are not.  Ours are those of
`benchmarks.tiling_layers`, wherever a layer has to be tiled and can be.  Cycles are those of the
project's cycle model of the digital core, one layer at a time, `schedule="published"`.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.artefact import Artefact, main, write
from benchmarks.tiling_layers import BUDGETS, SHAPES, Shape
from byoc_dory.layer import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import Tile, TilingProblem, quickest, shortage_of
from byoc_dory.tiling.exhaustive import best_tiles
from htvm.progress import Progress
from htvm.report.sweep import optional
from htvm.report.table import Column, Table, text

__all__ = ["WAYS", "Case", "run", "tried"]

CORE = DIANA.accelerator("digital")

# DAC 2023, IV-A.
PUBLISHED_SPEED_UP = 6.2

WAYS = {
    "none": "memory only (hardware-agnostic)",
    "paper-pe": "Eq. 3-4 as printed",
    "paper": "Eq. 3-5 as printed",
    "array": "following the array (default)",
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

    def over_quickest(self, way: str) -> float:
        """Latency over that of the quickest tile."""
        return self.cycles[way] / self.cycles["latency"]


def tried(shape: Shape, budget: int) -> Case | None:
    """Every way of tiling a layer; None where no tile fits."""
    layer = shape.layer()
    problem = CORE.tiling_problem(layer, DIANA, budget)
    if shortage_of(problem) is not None:
        return None
    tiles = chosen(layer, problem)
    cost = cycles(layer)
    found = {way: cost(tile) for way, tile in tiles.items()}
    return Case(shape, budget, tiles, found, not problem.tile_fits(problem.whole))


def cycles(layer: Layer) -> Callable[[Tile], int]:
    """The cycle model of a layer."""
    return partial(CORE.cost, layer, soc=DIANA, schedule="published")


def chosen(layer: Layer, problem: TilingProblem) -> dict[str, Tile]:
    """The tile of each way."""
    heuristics = [CORE.objectives[way] for way in WAYS if way in CORE.objectives]
    tiles = best_tiles(problem, heuristics)
    best = quickest(problem, cycles(layer), heuristics, TilingOptions())
    return {**{entry.name: tile for entry, tile in zip(heuristics, tiles, strict=True)},
            "latency": best.tile}  # fmt: skip


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Compare ways of tiling on the digital core of DIANA."""
    progress = progress or Progress()
    cases: list[Case] = []
    for shape in SHAPES:
        with progress.stage(f"tiling {shape.name}"):
            found = [tried(shape, budget) for budget in BUDGETS]
            cases += [case for case in found if case is not None and case.tiled]
    artefact = Artefact(
        "tiling",
        "Ways of tiling: predicted latency over that of the quickest tile",
        "\n\n".join([str(__doc__).strip(), text(_summary(cases)), _said(cases), text(_all(cases))]),
        {
            "published_speed_up": PUBLISHED_SPEED_UP,
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
        },
        {"tiling": _figure(cases)},
    )
    write(artefact, folder)
    return artefact


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


def _summary(cases: Sequence[Case]) -> Table:
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
    return Table(tuple(Column(title, number != 2 and number > 0) for number, title in
                       enumerate(columns)), tuple(rows))  # fmt: skip


def _said(cases: Sequence[Case]) -> str:
    convs = [case for case in cases if case.shape.op == "conv2d"]
    lost = sum(case.over_quickest(way) < 1 for case in cases for way in WAYS)
    return (
        f"Largest speed-up over memory only, convolutions: {_speed_up(convs, 'array'):.1f}x "
        f"following the array, {_speed_up(convs, 'paper'):.1f}x as printed, "
        f"{_speed_up(convs, 'latency'):.1f}x latency; published: up to {PUBLISHED_SPEED_UP}x.\n"
        f"Cases in which latency loses to another way: {lost}."
    )


def _all(cases: Sequence[Case]) -> Table:
    columns = (Column("layer"), Column("L1 kB", number=True), Column("quickest", number=True))
    ways = [way for way in WAYS if way != "latency"]
    rows = tuple(
        (
            case.shape.name,
            f"{case.budget / 1000:g}",
            f"{case.cycles['latency']:,}",
            *(f"{case.over_quickest(way):.2f}" for way in ways),
        )
        for case in cases
    )
    return Table((*columns, *(Column(way, number=True) for way in ways)), rows,
                 title="Cycles of the quickest tile, and the others over it")  # fmt: skip


def _figure(cases: Sequence[Case]) -> object:
    """Each way's ratios, sorted: how many cases are within which factor of the quickest."""
    figure = optional("matplotlib.figure", "figures").Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    share = [100 * (number + 1) / len(cases) for number in range(len(cases))]
    for way, title in WAYS.items():
        ratios = sorted(case.over_quickest(way) for case in cases)
        axes.step(ratios, share, where="post", label=title)
    axes.axvline(PUBLISHED_SPEED_UP, color="grey", linestyle=":", label="published: up to 6.2x")
    axes.set_xscale("log")
    axes.set_xlabel("latency over that of the quickest tile")
    axes.set_ylabel("% of layers and budgets")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
