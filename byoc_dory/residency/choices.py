"""The choices of a layer for joint planning: tiles, one or two buffers, resident tensors.

Only tensors with untiled rows and columns can stay: a range of channels of a whole map is
contiguous, in L1 as in L2.  While a result that stays is being written, the accelerator may
overwrite maps behind it (`surplus`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.residency.problem import Choice
from byoc_dory.residency.tensors import tensors_in_l1
from byoc_dory.tiling import (
    LATENCY,
    Objective,
    Solution,
    Tile,
    TilingProblem,
    quickest,
    shortage_of,
    solve,
)
from byoc_dory.tiling.latency import lines, sizes
from byoc_dory.tiling.problem import solution_of
from byoc_dory.tiling.shortage import require_feasible

__all__ = ["Offer", "PlanCost", "Tiler"]

PlanCost: TypeAlias = Callable[[LayerPlan], int]
"""Returns the predicted cycles of a layer under a plan (offsets in L1 do not matter)."""

# Tiles slower than the fastest by more than this factor are left out: no saving of memory is worth
# that.
_HOPELESS = 2
# Percentage of a layer's cycles that may be given up for weights without holes in L2.
_WORTH_HOLES = 5


@dataclass(frozen=True)
class Tiler:
    """The way to find tiles for one layer.

    Attributes:
        accelerator: name of the accelerator.
        problem: tiling problem of the layer with all of L1.
        cost: the accelerator's cycle model.
        objective: the heuristic that picks the tiles; ``None`` searches for the fastest.
        heuristics: the accelerator's heuristics, whose tiles are candidates in this search.
        options: options of the tiler.
    """

    accelerator: str
    problem: TilingProblem
    cost: PlanCost
    objective: Objective | None
    heuristics: tuple[Objective, ...]
    options: TilingOptions

    def plan(
        self,
        solution: Solution,
        buffers: int,
        resident_inputs: tuple[bool, ...],
        resident_output: bool,
        input_buffers: int = 0,
    ) -> LayerPlan:
        """Return a plan of the layer without offsets in L1."""
        return LayerPlan(
            self.accelerator,
            solution,
            buffers,
            resident_inputs,
            resident_output,
            (0,) * len(resident_inputs),
            0,
            input_buffers=input_buffers,
        )


class Offer:
    """The choices of one layer, and their solutions."""

    def __init__(
        self,
        tiler: Tiler,
        reads: tuple[str, ...],
        may_find: tuple[bool, ...],
        may_leave: bool,
        passing: int,
    ) -> None:
        """Find the choices.

        Args:
            tiler: tiler of the layer.
            reads: name of the tensor of each operand; two operands may be the same tensor.
            may_find: for each operand, whether it may be in L1 as a whole.
            may_leave: whether the result may stay in L1.
            passing: bytes that tensors of other layers may occupy at the same time; heuristics also
                pick a tile for the rest of L1.

        Raises:
            TilingError: no tile fits.
        """
        self.tiler = tiler
        self.solutions: dict[tuple[Tile, int], Solution] = {}
        self._passing = passing
        require_feasible(tiler.problem)
        alone = (False,) * len(may_find)
        found = self._apart(alone)
        masks = itertools.product(*((False, True) if may else (False,) for may in may_find))
        leaves = (False, True) if may_leave else (False,)
        for mask, leave in itertools.product(masks, leaves):
            # A tensor is resident for all operands that it occurs as, or for none.
            consistent = len(set(zip(reads, mask, strict=True))) == len(set(reads))
            if consistent and (leave or any(mask)):
                found += self._resident(mask, leave)
        self.choices = tuple(found)

    def solution(self, choice: Choice) -> Solution:
        """Return the tile of a choice, with the tiler's information about it."""
        known = self.solutions.get((choice.tile, choice.buffers))
        if known is not None:
            return known
        return replace(
            solution_of(self.tiler.problem, choice.tile),
            objective=choice.cycles,
            objective_name=LATENCY,
            solver="joint",
        )

    def _choice(
        self, tile: Tile, buffers: int, resident_inputs: tuple[bool, ...], resident_output: bool
    ) -> Choice | None:
        """Return the choice, or ``None`` if it does not fit."""
        tiler = self.tiler
        once = 1 if buffers > 1 and tiler.problem.inputs_once else 0
        for input_buffers in sorted({0, once}):
            taken = tensors_in_l1(
                tiler.problem,
                tile,
                buffers,
                resident_inputs,
                resident_output,
                tiler.options.loop_order,
                input_buffers,
            ).bytes
            if taken <= tiler.problem.l1_limit:
                break
        else:
            return None
        solution = solution_of(tiler.problem, tile)
        plan = tiler.plan(solution, buffers, resident_inputs, resident_output, input_buffers)
        cycles = tiler.cost(plan)
        return Choice(tile, buffers, resident_inputs, resident_output, taken, cycles, input_buffers)

    # ------------------------------------------------------------------ nothing resident

    def _apart(self, alone: tuple[bool, ...]) -> list[Choice]:
        """Return choices without residents, with one and two buffers."""
        found: list[Choice] = []
        for buffers in (1, 2):
            known: dict[Tile, Choice | None] = {}

            def of(
                tile: Tile, buffers: int = buffers, known: dict[Tile, Choice | None] = known
            ) -> Choice | None:
                if tile not in known:
                    known[tile] = self._choice(tile, buffers, alone, False)
                return known[tile]

            if self.tiler.objective is None:
                self._search(buffers, of)
            else:
                for tile in self._picked(self.tiler.objective, buffers):
                    of(tile)
            found += [choice for choice in known.values() if choice is not None]
        if self.tiler.objective is None:
            found = self._filling(found)
        return _undominated(found)

    def _filling(self, found: list[Choice]) -> list[Choice]:
        """Return choices whose weights fill L2 without holes, unless they cost more than a little.

        If latency was requested by name, L2 is not taken into account.
        """
        if self.tiler.options.objective == LATENCY:
            return found
        filling = [choice for choice in found if self.tiler.problem.fills_blocks(choice.tile)]
        if not filling:
            return found
        least, quickest = (min(choice.cycles for choice in some) for some in (filling, found))
        return filling if least * 100 <= quickest * (100 + _WORTH_HOLES) else found

    def _search(self, buffers: int, of: Callable[[Tile], Choice | None]) -> None:
        """Yield the fastest tile, and the smaller ones of the grid that are not much slower."""
        problem = self.tiler.problem

        def cycles(tile: Tile) -> int:
            choice = of(tile)
            assert choice is not None, tile
            return choice.cycles

        share = replace(problem, l1_limit=_share(problem, problem.l1_limit, buffers))
        best: int | None = None
        if shortage_of(share) is None:
            options = self.tiler.options
            best = quickest(share, cycles, self.tiler.heuristics, options).objective
        # If only one tile of the input is moved, two buffers of the output may fit although two of
        # both do not: the grid covers all of L1.
        for line in lines(problem):
            before: int | None = None
            for tile in line:
                choice = of(tile)
                if choice is None:
                    continue
                now = choice.cycles
                best = now if best is None else min(best, now)
                if before is not None and now >= before and now > _HOPELESS * best:
                    break
                before = now

    # ------------------------------------------------------------------ residents

    def _resident(self, mask: tuple[bool, ...], leave: bool) -> list[Choice]:
        """Return choices with these residents: whole maps, ranges of channels."""
        found = []
        every = all(mask) and leave and not self.tiler.problem.weights.in_l1
        for tile in self._whole_maps():
            for buffers in (1,) if every or tile.k >= self.tiler.problem.k.size else (1, 2):
                choice = self._choice(tile, buffers, mask, leave)
                if choice is not None:
                    found.append(choice)
        return _undominated(found)

    def _whole_maps(self) -> list[Tile]:
        """Return tiles of whole maps that fit the weight memory, the largest first."""
        problem = self.tiler.problem
        tiles = [replace(problem.whole, k=k) for k in sizes(problem, problem.k)[::-1].tolist()]
        fitting = [
            tile
            for tile in tiles
            if (problem.weights.in_l1 or problem.memory(tile)[2] <= problem.weights.limit)
            and problem.fills_blocks(tile)
        ]
        # Heuristics do not apply to maps that do not move: use as few tiles as possible.
        return fitting if self.tiler.objective is None else fitting[:1]

    # ------------------------------------------------------------------ heuristics

    def _picked(self, objective: Objective, buffers: int) -> Iterator[Tile]:
        """Yield the tiles that a heuristic picks for the L1 that other tensors leave."""
        problem = self.tiler.problem
        for taken in sorted({0, self._passing}):
            left = replace(problem, l1_limit=_share(problem, problem.l1_limit - taken, buffers))
            if shortage_of(left) is not None:
                return
            solution = solve(left, objective, self.tiler.options)
            self.solutions.setdefault((solution.tile, buffers), solution)
            yield solution.tile


def _share(problem: TilingProblem, limit: int, buffers: int) -> int:
    """The L1 bytes for one copy of a tile, given the number of buffers and what exists once."""
    return (limit - problem.fixed_bytes) // buffers + problem.fixed_bytes


def _undominated(choices: Iterable[Choice]) -> list[Choice]:
    """Return the choices that no other beats in both bytes and cycles, the fastest first."""
    ranked = sorted(
        choices,
        key=lambda c: (
            c.cycles, c.bytes, c.buffers, -c.tile.k, -c.tile.y, -c.tile.x, -c.tile.c
        ),
    )  # fmt: skip
    kept: list[Choice] = []
    for choice in ranked:
        if not kept or choice.bytes < kept[-1].bytes:
            kept.append(choice)
    return kept
