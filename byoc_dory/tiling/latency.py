"""Tiles with the lowest predicted latency, and all tiles: the reference for the integer program.

For latency, the cycle model itself is the objective.

Latency is not linear in the sizes of a tile: filling of the array and granules of the DMA are
ceilings, and overlap is a maximum.  But it mostly changes where the *number* of tiles or of blocks
changes, and hardly in between.  So the search for one layer evaluates all combinations of the few
sizes at which that happens, and then, starting from the best of them, all sizes along each
dimension (the borders' padding and the granules move the optimum by a row or two).  `candidates`
returns the tiles left after pruning, for planning several layers together.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

import numpy as np

from byoc_dory.tiling.objectives import LATENCY, Objective
from byoc_dory.tiling.problem import Axis, Solution, Tile, TilingProblem
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


TileCost: TypeAlias = Callable[[Tile], int]
"""Returns the predicted cycles of a layer with a tile."""

Prune: TypeAlias = Callable[[Tile], int | None]
"""Returns a lower bound of these if the tile is of no interest otherwise, else None."""


@dataclass(frozen=True)
class TileCandidate:
    """A tile that is worth considering.

    Attributes:
        tile: the tile's sizes.
        l1_in, l1_out, l1_weights: bytes of one copy of it.
        cycles: predicted cycles of the whole layer.
    """

    tile: Tile
    l1_in: int
    l1_out: int
    l1_weights: int
    cycles: int

    @property
    def l1_bytes(self) -> int:
        """Bytes of activations in L1, for one copy."""
        return self.l1_in + self.l1_out


def candidates(
    problem: TilingProblem, cost: TileCost, extra_tiles: Iterable[Tile] = ()
) -> tuple[TileCandidate, ...]:
    """Return the tiles that no other tile beats in both L1 bytes and cycles.

    Args:
        problem: tiling problem, including its limits.
        cost: the accelerator's cycle model.
        extra_tiles: additional tiles to consider.

    Returns:
        Ascending in cycles, so descending in L1 bytes; the first is the fastest.

    Raises:
        TilingError: no tile fits.
    """
    undominated: list[TileCandidate] = []
    # The sort is stable: among equals the first of the grid is kept, which has the larger sizes.
    every = all_candidates(problem, cost, extra_tiles)
    for candidate in sorted(every, key=lambda entry: (entry.cycles, entry.l1_bytes)):
        if not undominated or candidate.l1_bytes < undominated[-1].l1_bytes:
            undominated.append(candidate)
    return tuple(undominated)


def all_candidates(
    problem: TilingProblem, cost: TileCost, extra_tiles: Iterable[Tile] = ()
) -> tuple[TileCandidate, ...]:
    """Return every feasible tile whose sizes are all in `candidate_sizes`, and ``extra_tiles``.

    Raises:
        TilingError: no tile fits.
    """
    require_feasible(problem)
    tiles = [tile for line in grid_lines(problem) for tile in line]
    tiles += [tile for tile in extra_tiles if problem.tile_fits(tile)]
    return tuple(
        TileCandidate(tile, *problem.memory(tile), cost(tile)) for tile in dict.fromkeys(tiles)
    )


def solve_latency(
    problem: TilingProblem,
    cost: TileCost,
    extra_tiles: Iterable[Tile] = (),
    *,
    every_tile: bool = False,
    prune: Prune = lambda tile: None,
) -> Solution:
    """Return the fastest tile found; among equals the one with the largest k, then y, x and c.

    It is never slower than any of ``extra_tiles`` that fits, nor than any tile that differs in
    only one size.

    Args:
        problem: tiling problem, including its limits.
        cost: the accelerator's cycle model.
        extra_tiles: additional tiles to consider.
        every_tile: whether to evaluate all tiles, for small layers and for testing.
        prune: finds tiles that need not be evaluated if the best one is faster than their bound.

    Returns:
        ``objective`` is in cycles.  ``status`` is ``"optimal"`` if every tile was evaluated, else
        ``"feasible"`` without a gap: there is no bound for a cycle model that can only be called.

    Raises:
        TilingError: no tile fits.
    """
    start = time.perf_counter()
    require_feasible(problem)
    search = _Search(problem, cost, prune)
    if every_tile:
        best = min((Tile(*row) for row in feasible_tiles(problem).tolist()), key=search.rank)
    else:
        best = search.descend(search.start(extra_tiles))
    return Solution(
        best,
        *problem.memory(best),
        objective=search.known[best],
        objective_name=LATENCY,
        status="optimal" if every_tile else "feasible",
        gap=0.0 if every_tile else None,
        solver="exhaustive" if every_tile else "search",
        seconds=time.perf_counter() - start,
    )


# A line of the grid is abandoned when it is this much slower than the best so far, and rising.
_HOPELESS = 1.5


class _Search:
    """The tiles evaluated so far, and steps to better ones."""

    def __init__(self, problem: TilingProblem, cost: TileCost, prune: Prune) -> None:
        self.problem = problem
        self.cost = cost
        self.beaten = prune
        self.known: dict[Tile, int] = {}
        self.bounds: dict[Tile, int] = {}
        self.least = inf

    def rank(self, tile: Tile) -> tuple[float, tuple[int, int, int, int]]:
        """Return a sort key that puts the better tile first; lower bounds do for slower tiles."""
        cycles = self.known.get(tile)
        if cycles is None:
            cycles = self.bounds.get(tile)
        if cycles is None:
            cycles = self._evaluate(tile)
        return cycles, (-tile.k, -tile.y, -tile.x, -tile.c)

    def _evaluate(self, tile: Tile) -> int:
        bound = self.beaten(tile)
        if bound is not None and bound > self.least:
            self.bounds[tile] = bound
            return bound
        cycles = self.known[tile] = self.cost(tile)
        self.least = min(self.least, cycles)
        return cycles

    def start(self, extra_tiles: Iterable[Tile]) -> Tile:
        """Return the best tile of the grid and of ``extra_tiles``."""
        best: Tile | None = None
        for tile in extra_tiles:
            if self.problem.tile_fits(tile):
                best = tile if best is None else min(best, tile, key=self.rank)
        for line in grid_lines(self.problem):
            previous_cycles: float = 0
            for tile in line:
                cycles, _ = self.rank(tile)
                best = tile if best is None else min(best, tile, key=self.rank)
                if (
                    previous_cycles
                    and cycles >= previous_cycles
                    and cycles > _HOPELESS * self.known[best]
                ):
                    break
                previous_cycles = cycles
        assert best is not None
        return best

    def descend(self, best: Tile) -> Tile:
        """Improve one dimension after the other, until no size is better."""
        improving = True
        while improving:
            improving = False
            for name in ("y", "k", "x", "c"):
                found = min(self._neighbours(best, name), key=self.rank)
                if self.rank(found) < self.rank(best):
                    best, improving = found, True
        return best

    def _neighbours(self, tile: Tile, name: str) -> list[Tile]:
        """Return the feasible tiles that differ in one size, by a factor of at most 2."""
        size = getattr(tile, name)
        every = getattr(self.problem, name).sizes()
        near = every[(2 * every >= size) & (every <= 2 * size)].tolist()
        tiles = (replace(tile, **{name: value}) for value in near)
        return [other for other in tiles if self.problem.tile_fits(other)]


def grid_lines(problem: TilingProblem) -> Iterator[list[Tile]]:
    """Yield the feasible tiles of the grid in lines of descending y; large k, x and c first."""
    k_sizes, c_sizes, y_sizes, x_sizes = (
        candidate_sizes(problem, axis)[::-1].tolist() for axis in problem.axes
    )
    ys = np.array(y_sizes)
    for x, c, k in itertools.product(x_sizes, c_sizes, k_sizes):
        fitting = ys[problem.fits(k, c, ys, x)].tolist()
        if fitting:
            yield [Tile(k, c, y, x) for y in fitting]


def candidate_sizes(
    problem: TilingProblem, axis: Axis
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the sizes of one dimension that are worth evaluating, ascending.

    For each number of tiles: the smallest size that does not need more tiles, unchanged and rounded
    up to the rounding of memory and array (tiles of 32 + 16 fill an array of 16 columns, tiles of
    24 + 24 do not).  Also the smallest size that already reads the whole input.
    """
    if not axis.tiled:
        return np.array([axis.size], dtype=np.int64)
    counts = np.arange(1, axis.size + 1, dtype=np.int64)
    smallest = np.unique(-(-axis.size // counts))
    found = [_rounded(smallest, step) for step in _size_steps(problem, axis)]
    found.append(_reading_all(problem, axis))
    together = np.unique(np.concatenate(found))
    return np.append(together[together < axis.size], np.int64(axis.size))


def _reading_all(problem: TilingProblem, axis: Axis) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the smallest row (or column) count that reads the whole, contiguous input."""
    every = axis.sizes()
    if axis is problem.y:
        return every[problem.rows_in(every) >= problem.window.iy][:1]
    if axis is problem.x:
        return every[problem.columns_in(every) >= problem.window.ix][:1]
    return every[-1:]


def _size_steps(problem: TilingProblem, axis: Axis) -> set[int]:
    """Return the multiples that the sizes of a dimension are rounded up to."""
    step = axis.step
    if axis is problem.k:
        # Up to this multiple, more channels cost no memory, and hardly ever time.
        free = problem.rounding.k
        if problem.channels_follow_k:
            free = min(free, problem.rounding.c)
        return {max(step, free), max(step, free, 2), max(step, free, problem.weights.block_k)}
    if axis is problem.c:
        return {step, max(step, problem.rounding.c)}
    if axis is problem.x:
        return {step, max(step, problem.rounding.x)}
    # Pairs of rows fill granules of the DMA that are larger than a row.
    return {step, max(step, 2), max(step, problem.rounding.y)}


def _rounded(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], step: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return -(-values // step) * step
