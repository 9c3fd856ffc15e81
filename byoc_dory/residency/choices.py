"""The choices of a layer for joint planning: tiles, one or two buffers, resident tensors.

Only tensors with untiled rows and columns can stay: a range of channels of a whole map is
contiguous, in L1 as in L2.  The exception are layouts with ranges of rows that are contiguous
(`TilingProblem.rows_apart`).  While a result that stays is being written, the accelerator may
overwrite maps behind it (`surplus`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import inf

from byoc_dory.errors import TilingError
from byoc_dory.residency.problem import Choice
from byoc_dory.residency.tensors import tensors_in_l1
from byoc_dory.residency.tiler import Tiler
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
from byoc_dory.tiling.latency import candidate_sizes, grid_lines
from byoc_dory.tiling.problem import solution_of
from byoc_dory.tiling.shortage import require_feasible

# Tiles slower than the fastest by more than this factor are left out: no saving of memory is worth
# that.
_HOPELESS = 2
# Percentage of a layer's cycles that may be given up for weights without holes in L2.
_WORTH_HOLES = 5


class LayerChoices:
    """The choices of one layer, and their solutions."""

    def __init__(
        self,
        tiler: Tiler,
        input_names: tuple[str, ...],
        may_find: tuple[bool, ...],
        may_leave: bool,
        passing_bytes: int,
        always_resident: tuple[bool, ...] = (),
        in_one_tile: bool = False,
    ) -> None:
        """Check that there are choices; they are found when they are needed.

        Args:
            tiler: tiler of the layer.
            input_names: name of the tensor of each operand; two operands may be the same tensor.
            may_find: for each operand, whether it may be in L1 as a whole.
            may_leave: whether the result may stay in L1.
            passing_bytes: bytes that tensors of other layers may occupy at the same time;
                heuristics also pick a tile for the rest of L1.
            always_resident: for each operand, whether it is in L1 as a whole in any case; empty for
                none.
            in_one_tile: whether the only tile is the whole layer.

        Raises:
            TilingError: no tile fits.
        """
        self.tiler = tiler
        self.solutions: dict[tuple[Tile, int], Solution] = {}
        self._passing_bytes = passing_bytes
        self._input_names, self._may_find, self._may_leave = input_names, may_find, may_leave
        self._in_one_tile = in_one_tile
        require_feasible(tiler.problem)
        self._always_resident = always_resident or (False,) * len(may_find)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All choices, those without residents first.

        Raises:
            TilingError: no tile fits beside inputs that are kept in L1.
        """
        always_resident, input_names = self._always_resident, self._input_names
        choices = (
            [] if any(always_resident) else self._without_residents((False,) * len(always_resident))
        )
        masks = itertools.product(
            *(
                (True,) if is_held else (False, True) if may else (False,)
                for is_held, may in zip(always_resident, self._may_find, strict=True)
            )
        )
        leaves = (False, True) if self._may_leave else (False,)
        for mask, leave in itertools.product(masks, leaves):
            # A tensor is resident for all operands that it occurs as, or for none.
            consistent = len(set(zip(input_names, mask, strict=True))) == len(set(input_names))
            if consistent and (leave or any(mask)):
                choices += self.with_residents(mask, leave)
        # A plan needs a choice in which the result may leave.
        leaving = [choice for choice in choices if not choice.resident_output]
        if not any(choice.resident_inputs == always_resident for choice in leaving):
            raise TilingError(
                "no tile fits L1 beside the inputs that are kept there",
                where=f"layer '{self.tiler.problem.name}'",
                hint="keep fewer inputs in L1",
            )
        return tuple(choices)

    def solution(self, choice: Choice) -> Solution:
        """Return the tile of a choice, with the tiler's information about it."""
        solution = self.solutions.get((choice.tile, choice.buffers))
        if solution is not None:
            return solution
        return replace(
            solution_of(self.tiler.problem, choice.tile),
            objective=choice.cycles,
            objective_name=LATENCY,
            solver="joint",
        )

    def choice(
        self, tile: Tile, buffers: int, resident_inputs: tuple[bool, ...], resident_output: bool
    ) -> Choice | None:
        """Return the choice, or ``None`` if it does not fit."""
        tiler = self.tiler
        l1_bytes, input_buffers = self.l1_bytes(tile, buffers, resident_inputs, resident_output)
        if l1_bytes > tiler.problem.l1_limit:
            return None
        solution = solution_of(tiler.problem, tile)
        plan = tiler.plan(solution, buffers, resident_inputs, resident_output, input_buffers)
        cycles = tiler.cost(plan)
        return Choice(
            tile, buffers, resident_inputs, resident_output, l1_bytes, cycles, input_buffers
        )

    def l1_bytes(
        self, tile: Tile, buffers: int, resident_inputs: tuple[bool, ...], resident_output: bool
    ) -> tuple[int, int]:
        """Return the bytes of L1, and the number of input buffers if fewer are needed to fit."""
        problem, order = self.tiler.problem, self.tiler.options.loop_order
        residents = (resident_inputs, resident_output)
        size = tensors_in_l1(problem, tile, buffers, *residents, order).bytes
        if size <= problem.l1_limit or buffers == 1 or not problem.inputs_once:
            return size, 0
        return tensors_in_l1(problem, tile, buffers, *residents, order, 1).bytes, 1

    # ------------------------------------------------------------------ nothing resident

    def _without_residents(self, no_residents: tuple[bool, ...]) -> list[Choice]:
        """Return choices without residents, with one and two buffers."""
        if self._in_one_tile:
            return self.with_residents(no_residents, False)
        choices: list[Choice] = []
        if self.tiler.objective is None:
            for buffers in (1, 2):
                choices += _Search(self, buffers, no_residents, choices).run()
            return _undominated(self._filling_blocks(choices))
        for buffers in (1, 2):
            for tile in dict.fromkeys(self._heuristic_tiles(self.tiler.objective, buffers)):
                choice = self.choice(tile, buffers, no_residents, False)
                choices += [choice] if choice is not None else []
        return _undominated(choices)

    def fills(self, choice: Choice) -> bool:
        """Whether the weights of a choice leave no holes in L2."""
        return self.tiler.problem.fills_blocks(choice.tile)

    def _filling_blocks(self, choices: list[Choice]) -> list[Choice]:
        """Return choices whose weights fill L2 without holes, unless they cost more than a little.

        If latency was requested by name, L2 is not taken into account.
        """
        if self.tiler.options.objective == LATENCY:
            return choices
        filling = list(filter(self.fills, choices))
        if not filling:
            return choices
        least, quickest = (min(choice.cycles for choice in some) for some in (filling, choices))
        return filling if least * 100 <= quickest * (100 + _WORTH_HOLES) else choices

    # ------------------------------------------------------------------ residents

    def with_residents(self, mask: tuple[bool, ...], leave: bool) -> list[Choice]:
        """Return choices with these residents: whole maps, ranges of channels or of rows.

        Args:
            mask: for each operand, whether it is in L1 as a whole.
            leave: whether the result stays in L1.
        """
        choices = []
        every = all(mask) and leave and not self.tiler.problem.weights.in_l1
        whole = self.tiler.problem.whole
        for tile in (*self._whole_maps(), *self._whole_rows()):
            single = tile.k >= whole.k and tile.y >= whole.y
            for buffers in (1,) if every or single else (1, 2):
                choice = self.choice(tile, buffers, mask, leave)
                if choice is not None:
                    choices.append(choice)
        return _undominated(choices)

    def _whole_maps(self) -> list[Tile]:
        """Return tiles of whole maps that fit the weight memory, the largest first."""
        problem = self.tiler.problem
        sizes = (
            [problem.whole.k]
            if self._in_one_tile
            else candidate_sizes(problem, problem.k)[::-1].tolist()
        )
        tiles = [replace(problem.whole, k=k) for k in sizes]
        fitting = [
            tile
            for tile in tiles
            if (problem.weights.in_l1 or problem.memory(tile)[2] <= problem.weights.limit)
            and problem.fills_blocks(tile)
        ]
        # Heuristics do not apply to maps that do not move: use as few tiles as possible.
        return fitting if self.tiler.objective is None else fitting[:1]

    def _whole_rows(self) -> list[Tile]:
        """Return tiles of ranges of rows with all channels, the largest first."""
        problem = self.tiler.problem
        if not problem.rows_apart or self.tiler.objective is not None or self._in_one_tile:
            return []
        rows = candidate_sizes(problem, problem.y)[::-1].tolist()
        return [replace(problem.whole, y=y) for y in rows if y < problem.y.size]

    # ------------------------------------------------------------------ heuristics

    def _heuristic_tiles(self, objective: Objective, buffers: int) -> Iterator[Tile]:
        """Yield the tiles that a heuristic picks for the L1 that other tensors leave."""
        problem = self.tiler.problem
        for other_bytes in sorted({0, self._passing_bytes}):
            remaining = replace(
                problem, l1_limit=_bytes_per_copy(problem, problem.l1_limit - other_bytes, buffers)
            )
            if shortage_of(remaining) is not None:
                return
            solution = solve(remaining, objective, self.tiler.options)
            self.solutions.setdefault((solution.tile, buffers), solution)
            yield solution.tile


class _Search:
    """The search among the tiles of a layer with one number of buffers, without residents.

    Tiles that cannot be as fast as another choice in as few bytes are skipped: their least cycles
    are known if they were evaluated with another number of buffers.
    """

    def __init__(
        self,
        layer_choices: LayerChoices,
        buffers: int,
        no_residents: tuple[bool, ...],
        other_choices: Iterable[Choice],
    ) -> None:
        self.layer_choices, self.buffers, self.no_residents = layer_choices, buffers, no_residents
        self.problem = layer_choices.tiler.problem
        self.evaluated: dict[Tile, Choice | None] = {}
        # A tile that fills blocks is compared with such tiles only; see
        # `LayerChoices._filling_blocks`.
        self.rivals: dict[bool, list[Choice]] = {True: [], False: []}
        for choice in other_choices:
            self._add_rival(choice)

    def run(self) -> list[Choice]:
        """Return the fastest tile, and the smaller ones of the grid that are not much slower."""
        tiler = self.layer_choices.tiler
        problem_per_copy = replace(
            self.problem,
            l1_limit=_bytes_per_copy(self.problem, self.problem.l1_limit, self.buffers),
        )
        best_cycles = inf
        if shortage_of(problem_per_copy) is None:
            solution = quickest(
                problem_per_copy, self._cycles, tiler.heuristics, tiler.options, self._pruned
            )
            best_cycles = solution.objective
        # If only one tile of the input is moved, two buffers of the output may fit although two of
        # both do not: the grid covers all of L1.
        for line in grid_lines(self.problem):
            previous_cycles = inf
            for tile in line:
                cycles = self._pruned(tile)
                if cycles is None:
                    choice = self._choice(tile)
                    if choice is None:
                        continue
                    cycles = choice.cycles
                    best_cycles = min(best_cycles, cycles)
                if previous_cycles <= cycles and cycles > _HOPELESS * best_cycles:
                    break
                previous_cycles = cycles
        return [choice for choice in self.evaluated.values() if choice is not None]

    def _choice(self, tile: Tile) -> Choice | None:
        if tile not in self.evaluated:
            choice = self.evaluated[tile] = self.layer_choices.choice(
                tile, self.buffers, self.no_residents, False
            )
            if choice is not None:
                self._add_rival(choice)
        return self.evaluated[tile]

    def _cycles(self, tile: Tile) -> int:
        choice = self._choice(tile)
        assert choice is not None, tile
        return choice.cycles

    def _pruned(self, tile: Tile) -> int | None:
        """Return the least cycles of a tile to be skipped, else None."""
        lower_bound = self.layer_choices.tiler.cost.lower_bound(tile, self.no_residents, False)
        if not lower_bound or tile in self.evaluated:
            return None
        l1_bytes, _ = self.layer_choices.l1_bytes(tile, self.buffers, self.no_residents, False)
        rivals = self.rivals[self.problem.fills_blocks(tile)]
        return lower_bound if _is_dominated(rivals, l1_bytes, lower_bound - 1) else None

    def _add_rival(self, choice: Choice) -> None:
        for fills in {False, self.layer_choices.fills(choice)}:
            if not _is_dominated(self.rivals[fills], choice.bytes, choice.cycles):
                self.rivals[fills].append(choice)


def _bytes_per_copy(problem: TilingProblem, limit: int, buffers: int) -> int:
    """The L1 bytes for one copy of a tile, given the number of buffers and what exists once."""
    return (limit - problem.fixed_bytes) // buffers + problem.fixed_bytes


def _is_dominated(choices: Iterable[Choice], size: int, cycles: int) -> bool:
    """Whether one of the choices takes as few bytes and as few cycles."""
    return any([choice.cycles <= cycles and choice.bytes <= size for choice in choices])


def _undominated(choices: Iterable[Choice]) -> list[Choice]:
    """Return the choices that no other beats in both bytes and cycles, the fastest first."""
    ranked = sorted(
        choices,
        key=lambda c: (
            c.cycles, c.bytes, c.buffers, -c.tile.k, -c.tile.y, -c.tile.x, -c.tile.c
        ),
    )  # fmt: skip
    undominated: list[Choice] = []
    for choice in ranked:
        if not undominated or choice.bytes < undominated[-1].bytes:
            undominated.append(choice)
    return undominated
