"""Enumerating all tiles of a layer: the reference for the integer program."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from byoc_dory.tiling.objectives import Objective
from byoc_dory.tiling.problem import Solution, Tile, TilingProblem
from byoc_dory.tiling.shortage import require_feasible


def feasible_tiles(problem: TilingProblem) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return all feasible tiles, one row (k, c, y, x) each, ascending in (k, y, x, c).

    Raises:
        TilingError: no tile is feasible.
    """
    require_feasible(problem)
    k, y, x, c = np.meshgrid(
        *(axis.sizes() for axis in (problem.k, problem.y, problem.x, problem.c)), indexing="ij"
    )
    tiles = np.stack([axis.ravel() for axis in (k, c, y, x)], axis=1)
    return tiles[problem.fits(*tiles.T)]


def best_tiles(problem: TilingProblem, objectives: Iterable[Objective]) -> tuple[Tile, ...]:
    """The best tile of each objective; among equals the one with the largest k, then y, x, c.

    Raises:
        TilingError: no tile fits.
    """
    tiles = feasible_tiles(problem)
    best = []
    for objective in objectives:
        values = np.asarray(objective.value(problem, *tiles.T))
        row = len(values) - 1 - int(np.argmax(values[::-1]))
        best.append(Tile(*(int(size) for size in tiles[row])))
    return tuple(best)


def solve_exhaustive(problem: TilingProblem, objective: Objective) -> Solution:
    """Return the best tile; among equals the one with the largest k, then y, x and c.

    Raises:
        TilingError: no tile fits.
    """
    start = time.perf_counter()
    (best,) = best_tiles(problem, [objective])
    return Solution(
        best,
        *problem.memory(best),
        objective=objective.of(problem, best),
        objective_name=objective.name,
        status="optimal",
        gap=0.0,
        solver="exhaustive",
        seconds=time.perf_counter() - start,
    )
