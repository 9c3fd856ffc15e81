"""Tiles of least latency against enumeration and against those of the heuristics; their time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError, TilingError
from byoc_dory.layers import Layer, Shift, Tensor, conv2d_layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.region import Region
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import (
    Axis,
    Tile,
    TileCost,
    TilingProblem,
    candidates,
    quickest,
    shortage_of,
    solve_latency,
)
from byoc_dory.tiling.latency import all_candidates, candidate_sizes, feasible_tiles
from byoc_dory.tiling.problem import InputWindow, Rounding, TileWeights, solution_of
from byoc_dory.tiling.shortage import require_feasible
from tests.byoc_dory.analog import random_analog_layer
from tests.byoc_dory.layers import NETWORKS, OPS, random_layer
from tests.stopwatch import yardsticks

CORE = DIANA.accelerator("digital")


def published(budget: int | None, objective: str, **rest: Any) -> TilingOptions:
    return TilingOptions(budget, objective, schedule="published", **rest)


def cycles_of(layer: Layer) -> TileCost:
    cost = Cost(DIANA, TilingOptions(schedule="published"))
    return lambda tile: cost.tile_cycles(CORE, layer, tile)


def small_case(seed: int, op: str) -> tuple[Layer, TilingProblem] | None:
    """A layer whose tiles can all be looked at, under a budget; None if no tile fits."""
    rng = np.random.default_rng([seed, OPS.index(op), 17])
    layer = random_layer(rng, op, largest=18)
    low, high = (40, 150) if op == "dense" else (500, 12_000)
    budget = int(np.exp(rng.uniform(np.log(low), np.log(high))))
    problem = CORE.tiling_problem(DIANA, layer, TilingOptions(budget, schedule="published"))
    try:
        require_feasible(problem)
    except TilingError:
        return None
    return layer, problem


def double_buffered(layer: Layer, problem: TilingProblem) -> tuple[TilingProblem, TileCost]:
    """Two copies of every tile in the same L1, and the cycles of transfers beside the core."""
    twice = replace(problem, buffering=2)
    options = TilingOptions(schedule="overlapped")

    def cost(tile: Tile) -> int:
        plan = replace(plan_alone(layer, solution_of(twice, tile), CORE.name), buffers=2)
        return CORE.plan_cost(DIANA, layer, plan, options)

    return twice, cost


@pytest.mark.rotating(2)
@pytest.mark.parametrize("overlap", [False, True], ids=["blocking", "overlapped"])
@pytest.mark.parametrize("op", OPS)
def test_search_equals_enumeration_of_all_tiles(op: str, overlap: bool) -> None:
    """On small layers the search finds the fewest cycles that any tile has."""
    tiled = 0
    for seed in range(14):
        case = small_case(seed, op)
        if case is None:
            continue
        layer, problem = case
        cost = cycles_of(layer)
        if overlap:
            problem, cost = double_buffered(layer, problem)
            if shortage_of(problem) is not None:
                continue
        found = solve_latency(problem, cost)
        every = solve_latency(problem, cost, every_tile=True)
        assert found.objective == every.objective, (layer.shape_text, found.tile, every.tile)
        assert found.objective == cost(found.tile)
        assert (every.status, every.gap, every.solver) == ("optimal", 0.0, "exhaustive")
        assert (found.status, found.gap, found.solver) == ("feasible", None, "search")
        tiled += found.tile != problem.whole
    assert tiled >= (1 if op == "dense" else 3)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), op=st.sampled_from(OPS))
def test_never_slower_than_a_candidate_or_a_heuristic(seed: int, op: str) -> None:
    case = small_case(seed, op)
    if case is None:
        return
    layer, problem = case
    cost = cycles_of(layer)
    found = quickest(problem, cost, CORE.objectives.values())
    assert problem.tile_fits(found.tile)
    assert (found.l1_in, found.l1_out, found.l1_weights) == problem.memory(found.tile)
    assert found.objective == cost(found.tile)
    assert found.objective <= min(entry.cycles for entry in all_candidates(problem, cost))
    for name in CORE.objectives:
        options = published(problem.l1_limit, name, solver="exhaustive")
        assert found.objective <= cost(Cost(DIANA, options).best_tile(CORE, layer).tile), name


@pytest.mark.rotating(4)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("budget", [4_000, 16_000, 256_000])
def test_networks_never_lose_to_a_heuristic(network: str, budget: int) -> None:
    seen = set()
    for layer in NETWORKS[network]():
        if layer.geometry in seen:
            continue
        seen.add(layer.geometry)
        try:
            best = Cost(DIANA, published(budget, "latency")).best_tile(CORE, layer)
        except TilingError:
            continue
        cost = cycles_of(layer)
        assert best.objective == cost(best.tile)
        for name in CORE.objectives:
            options = published(budget, name, solver="exhaustive")
            assert best.objective <= cost(Cost(DIANA, options).best_tile(CORE, layer).tile)


def test_a_heuristics_tile_is_taken_where_it_is_quicker() -> None:
    """A cycle model that only one odd tile pleases: the search cannot know, the heuristic does."""
    axis = Axis(100)
    problem = TilingProblem(
        "odd",
        k=axis,
        c=Axis(1, False),
        y=axis,
        x=axis,
        window=InputWindow(iy=100, ix=100, fy=1, fx=1, stride=(1, 1)),
        l1_limit=10**7,
        weights=TileWeights(limit=10**7),
    )
    treasure = Tile(37, 1, 41, 43)
    cost = lambda tile: 1 if tile == treasure else 1000 + tile.k  # noqa: E731
    assert solve_latency(problem, cost).objective > 1
    assert solve_latency(problem, cost, [treasure]).tile == treasure
    # One that does not fit is no candidate.
    outside = Tile(101, 1, 1, 1)
    assert solve_latency(problem, cost, [outside]).tile != outside


def test_ties_go_to_large_k_then_y_x_c() -> None:
    axis = Axis(12)
    problem = TilingProblem(
        "flat",
        k=axis,
        c=axis,
        y=axis,
        x=axis,
        window=InputWindow(iy=12, ix=12, fy=1, fx=1, stride=(1, 1)),
        l1_limit=300,
        weights=TileWeights(limit=10**6),
    )
    tiles = feasible_tiles(problem)
    expected = max((k, y, x, c) for k, c, y, x in tiles.tolist())
    found = solve_latency(problem, lambda tile: 7).tile
    assert (found.k, found.y, found.x, found.c) == expected
    found = solve_latency(problem, lambda tile: 7, every_tile=True).tile
    assert (found.k, found.y, found.x, found.c) == expected


@pytest.mark.parametrize("op", OPS)
def test_candidates_are_the_pareto_front_of_the_grid(op: str) -> None:
    for seed in range(6):
        case = small_case(seed, op)
        if case is None:
            continue
        layer, problem = case
        cost = cycles_of(layer)
        front, every = candidates(problem, cost), all_candidates(problem, cost)
        assert set(front) <= set(every)
        for one in every:
            assert problem.tile_fits(one.tile) and one.cycles == cost(one.tile)
            assert any(
                kept.cycles <= one.cycles and kept.l1_bytes <= one.l1_bytes for kept in front
            )
        for left, right in zip(front, front[1:], strict=False):
            assert left.cycles < right.cycles and left.l1_bytes > right.l1_bytes


def test_sizes_of_a_dimension() -> None:
    problem = TilingProblem(
        "sizes",
        k=Axis(40),
        c=Axis(1, False),
        y=Axis(10),
        x=Axis(48, step=4),
        window=InputWindow(iy=10, ix=48, fy=3, fx=3, stride=(1, 1)),
        l1_limit=10**6,
        weights=TileWeights(limit=10**6),
        rounding=Rounding(k=16, x=16),
    )
    assert candidate_sizes(problem, problem.k).tolist() == [16, 32, 40]
    assert candidate_sizes(problem, problem.c).tolist() == [1]
    # 24 + 24 is two tiles, 32 + 16 fills 16 columns.
    assert candidate_sizes(problem, problem.x).tolist() == [4, 8, 12, 16, 24, 32, 48]
    # 8 rows and the halo are the whole input.
    assert candidate_sizes(problem, problem.y).tolist() == [1, 2, 3, 4, 5, 6, 8, 10]


def test_layers_that_differ_in_padding_alone_are_planned_apart() -> None:
    """Equal tiling problems, other cycles: a solution must not be shared."""
    weight = np.ones((20, 6, 3, 3), np.int8)
    layers = [
        conv2d_layer(
            f"pad{top}", Tensor("x", (6, 16, 16)), f"y{top}", weight, None,
            pad=(top, 1, 2 - top, 1), requant=Shift(4),
        )
        for top in (0, 1, 2)
    ]  # fmt: skip
    keys = {
        CORE.tiling_problem(DIANA, layer, TilingOptions(3_000, schedule="published")).key()
        for layer in layers
    }
    assert len(keys) == 1
    options = published(3_000, "latency")
    ends = tuple(layer.output for layer in layers)
    code = generate(Region("r", tuple(layers), layers[0].inputs, ends), Cost(DIANA, options), "p")
    solutions = [kernel.solution for kernel in code.kernels if kernel.layer is not None]
    assert len({solution.objective for solution in solutions}) > 1
    for layer, solution in zip(layers, solutions, strict=True):
        assert solution.objective == Cost(DIANA, TilingOptions(schedule="published")).tile_cycles(
            CORE, layer, solution.tile
        )


def test_unknown_objectives_are_told_about_latency() -> None:
    layer = NETWORKS["resnet8"]()[0]
    with pytest.raises(TargetError, match="latency"):
        Cost(DIANA, published(None, "speed")).best_tile(CORE, layer)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("network", NETWORKS)
def test_tiling_a_network_takes_seconds_at_most(network: str) -> None:
    """Every distinct layer, heuristics' tiles included; about half a second for the largest."""
    layers = {layer.geometry: layer for layer in NETWORKS[network]()}
    options = published(None, "latency")
    _, spent = yardsticks(
        lambda: [Cost(DIANA, options).best_tile(CORE, layer) for layer in layers.values()]
    )
    assert spent < 150


def test_another_accelerator() -> None:
    """Nothing here knows the digital core: the analog one's tiles are found as well."""
    core = DIANA.accelerator("analog")
    tiled = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 53])
        layer = random_analog_layer(rng, "l", largest=14)
        problem = core.tiling_problem(
            DIANA, layer, TilingOptions(int(rng.integers(1_000, 20_000)), schedule="published")
        )
        if shortage_of(problem) is not None:
            continue

        def cost(tile: Tile, layer: Layer = layer) -> int:
            return Cost(DIANA, TilingOptions(schedule="published")).tile_cycles(core, layer, tile)

        found = solve_latency(problem, cost)
        assert found.objective == solve_latency(problem, cost, every_tile=True).objective
        tiled += found.tile != problem.whole
    assert tiled >= 3
