"""The tiler: how long it takes, and how far its tiles are from the quickest ones.

Layers of the four MLPerf Tiny networks (DS-CNN with HTVM's 7x5 filter) under small L1 budgets, and
random layers.  "Over optimum" is the predicted latency of the tile an objective chooses, divided by
that of the quickest tile; the quickest is found by trying all sizes at which the number of tiles
changes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from byoc_dory.layer import Layer
from byoc_dory.soc.accelerator import DigitalCore
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.heuristics import OBJECTIVES
from byoc_dory.tiling import Tile, TilingProblem, solve_exhaustive, solve_milp
from byoc_dory.tiling.exhaustive import feasible_tiles
from htvm.report.table import Column, Table, text
from tests.byoc_dory.layers import NETWORKS, random_layer

BUDGETS = (64_000, 32_000, 16_000, 8_000, 4_000)
RANDOM = (("conv2d", 60), ("depthwise", 20), ("add", 10))
NODES = 20_000

_core = DIANA.accelerator("digital")
assert isinstance(_core, DigitalCore)
CORE: DigitalCore = _core


@dataclass(frozen=True)
class Case:
    """A layer that has to be tiled, and the cycles of its quickest tile."""

    layer: Layer
    problem: TilingProblem
    best: int


def cycles(layer: Layer, tile: Tile) -> int:
    """Predicted cycles of a layer in that tile."""
    return CORE.cost(layer, tile, DIANA)


def quickest(layer: Layer, problem: TilingProblem) -> int:
    """Predicted cycles of the quickest tile among those where the number of tiles changes."""
    tiles = feasible_tiles(problem)
    keep = np.ones(len(tiles), bool)
    for column, size, step in (
        (0, problem.k.size, problem.round_k),
        (2, problem.y.size, 1),
        (3, problem.x.size, problem.x.step),
    ):
        # The smallest size (in steps) that needs as few tiles, or the whole dimension.
        chosen = tiles[:, column]
        count = -(-size // chosen)
        smallest = round_up(round_up(size, count) // count, step)
        keep &= (chosen == smallest) | (chosen == size)
    return min(cycles(layer, Tile(*map(int, row))) for row in tiles[keep])


def cases() -> Iterator[Case]:
    """Network layers under each budget, then random layers with a budget below their demand."""
    for build in NETWORKS.values():
        seen = set()
        for layer in build():
            for budget in BUDGETS:
                problem = CORE.tiling_problem(layer, DIANA, budget)
                if problem.key() not in seen and tiled(problem):
                    yield Case(layer, problem, quickest(layer, problem))
                seen.add(problem.key())
    rng = np.random.default_rng(1)
    for op, count in RANDOM:
        for _ in range(count):
            layer = random_layer(rng, op, largest=64)
            ample = CORE.tiling_problem(layer, DIANA, DIANA.memory("L1").size)
            low, high = (sum(ample.memory(tile)[:2]) for tile in (ample.smallest, ample.whole))
            budget = int(math.exp(rng.uniform(math.log(low), math.log(max(low, high)))))
            problem = CORE.tiling_problem(layer, DIANA, budget)
            if tiled(problem):
                yield Case(layer, problem, quickest(layer, problem))


def tiled(problem: TilingProblem) -> bool:
    """Whether the layer has to be tiled, and can be."""
    return not problem.tile_fits(problem.whole) and problem.tile_fits(problem.smallest)


def times() -> Table:
    """Processor seconds of the integer program, each distinct layer once, as in a build."""
    rows = []
    for name, build in NETWORKS.items():
        layers = build()
        for budget in BUDGETS:
            problems = {}
            for layer in layers:
                problem = CORE.tiling_problem(layer, DIANA, budget)
                if problem.tile_fits(problem.smallest):
                    problems[problem.key()] = problem
            spent = []
            for problem in problems.values():
                start = time.process_time()
                solve_milp(problem, OBJECTIVES["array"], NODES)
                spent.append(1000 * (time.process_time() - start))
            if spent:
                numbers = (sum(spent), sum(spent) / len(spent), max(spent))
                milliseconds = (f"{number:.0f}" for number in numbers)
                rows.append((name, f"{budget:,}", str(len(spent)), *milliseconds))
    columns = ("network", "L1 B", "distinct layers", "ms in all", "mean", "worst")
    return Table(
        tuple(Column(title, number > 0) for number, title in enumerate(columns)),
        tuple(rows),
        title="Time of the integer program, whole layers solved as well",
    )


def quality(chosen: list[Case]) -> Table:
    """Latency over optimum per objective and operator."""
    rows = []
    for name, objective in OBJECTIVES.items():
        found = {
            id(case): cycles(case.layer, solve_exhaustive(case.problem, objective).tile) / case.best
            for case in chosen
        }
        for op in ("all", "conv2d", "depthwise", "add"):
            ratios = [found[id(case)] for case in chosen if op == "all" or case.layer.op == op]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            rows.append((name, op, str(len(ratios)), f"{mean:.3f}", f"{max(ratios):.2f}"))
    columns = ("objective", "operator", "tiled layers", "geometric mean", "worst")
    return Table(
        tuple(Column(title, number > 1) for number, title in enumerate(columns)),
        tuple(rows),
        title="Predicted latency of the chosen tile over that of the quickest",
    )


def main() -> None:
    """Print both tables."""
    print(text(times()))
    print(text(quality(list(cases()))))


if __name__ == "__main__":
    main()
