"""The integer program against enumeration of all tiles."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.layers import Shift, Tensor, conv2d_layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import (
    Axis,
    Fill,
    Heuristic,
    Objective,
    Size,
    Tile,
    TilingProblem,
    Whole,
    solve,
    solve_exhaustive,
)
from byoc_dory.tiling.milp import solve_milp
from byoc_dory.tiling.problem import FixedBytes, InputWindow, Rounding, TileWeights
from tests.byoc_dory.layers import OPS, random_layer

CORE = DIANA.accelerator("digital")
OBJECTIVES = CORE.objectives
NODES = 20_000


def brute_force(problem: TilingProblem, objective: Objective) -> tuple[int, Tile] | None:
    """Best objective and preferred tile by plain loops over plain formulas."""
    best: tuple[int, tuple[int, ...]] | None = None
    ranges = [
        [v for v in range(1, axis.size + 1) if axis.allows(v)]
        for axis in (problem.k, problem.y, problem.x, problem.c)
    ]
    for k, y, x, c in itertools.product(*ranges):
        iy = (
            problem.window.iy
            if y == problem.y.size
            else problem.window.stride[0] * (y - 1) + problem.window.fy
        )
        ix = problem.window.ix
        if x != problem.x.size:
            ix = problem.window.stride[1] * (x - 1) + problem.window.fx + problem.window.crop
        iy, ix = min(iy, problem.window.iy), min(ix, problem.window.ix)
        channels = k if problem.channels_follow_k else c
        up = lambda value, step: (value + step - 1) // step * step  # noqa: E731
        rows_in, rows_out = up(iy, problem.rounding.y), up(y, problem.rounding.y)
        used_in = (
            problem.copies * up(channels, problem.rounding.c) * rows_in * up(ix, problem.rounding.x)
        )
        maps = up(k, problem.rounding.k) + problem.rounding.extra_maps
        used_out = maps * rows_out * up(x, problem.rounding.x)
        used_out *= 1 if c == problem.c.size else 4
        used_w = problem.weights.fixed + up(k, problem.rounding.k) // problem.rounding.k * (
            c * problem.weights.channel + problem.weights.block
        )
        once = sum(problem.fixed.operands) + problem.fixed.scratch + problem.fixed.slack
        once += x * problem.fixed.column
        in_l1 = used_in + used_out + (used_w if problem.weights.in_l1 else 0)
        if problem.buffering * in_l1 + once > problem.l1_limit:
            continue
        if not problem.weights.in_l1 and problem.buffering * used_w > problem.weights.limit:
            continue
        value = objective.alpha * (used_in + used_out + used_w)
        for heuristic in objective.heuristics:
            value += heuristic.weight * int(heuristic.quantity.value(problem, (k, c, y, x)))
        candidate = (value, (k, y, x, c))
        if best is None or candidate > best:
            best = candidate
    if best is None:
        return None
    k, y, x, c = best[1]
    return best[0], Tile(k, c, y, x)


def check(problem: TilingProblem, objective: Objective) -> str:
    """MILP and enumeration agree in value, in the tile, and in whether there is one."""
    try:
        expected = solve_exhaustive(problem, objective)
    except TilingError:
        with pytest.raises(TilingError):
            solve_milp(problem, objective, NODES)
        return "infeasible"
    found = solve_milp(problem, objective, NODES)
    assert found.status == "optimal" and found.gap == 0
    assert problem.tile_fits(found.tile)
    assert found.objective == expected.objective == objective.of(problem, found.tile)
    assert found.tile == expected.tile
    assert (found.l1_in, found.l1_out, found.l1_weights) == problem.memory(found.tile)
    return "tiled" if found.tile != problem.whole else "whole"


@pytest.mark.rotating(5)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("part", range(4))
def test_diana_layers(op: str, part: int) -> None:
    """20 layers each: 320 in all, budgets from hopeless to ample, all objectives in turn."""
    outcomes = []
    for seed in range(20 * part, 20 * part + 20):
        rng = np.random.default_rng([seed, OPS.index(op), 7])
        layer = random_layer(rng, op)
        # A dense layer's tiles are a few hundred bytes, everything else's thousands.
        low, high = (40, 150) if op == "dense" else (300, 60_000)
        budget = int(np.exp(rng.uniform(np.log(low), np.log(high))))
        problem = CORE.tiling_problem(DIANA, layer, TilingOptions(budget, schedule="published"))
        objective = list(OBJECTIVES.values())[seed % len(OBJECTIVES)]
        outcomes.append(check(problem, objective))
    assert outcomes.count("tiled") >= (1 if op == "dense" else 3)


def general_problem(rng: np.random.Generator) -> TilingProblem:
    """Problems DIANA does not have: c tiled with int32 partial sums, double buffering, weights and
    whole operands in L1."""

    def axis(high: int) -> Axis:
        step = int(rng.choice([1, 2, 4, 8]))
        return Axis(int(rng.integers(1, high)), bool(rng.random() < 0.85), step)

    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    fy, fx = (int(v) for v in rng.integers(1, 6, 2))
    y, x = axis(12), axis(12)
    # Inputs smaller than the outputs would need (padding) let tiles cover them early.
    slack = rng.integers(-8, 3, 2)
    follow = bool(rng.random() < 0.2)
    return TilingProblem(
        name="general",
        k=axis(24),
        c=Axis(1, False) if follow else axis(20),
        y=y,
        x=x,
        window=InputWindow(
            iy=max(1, int(stride[0] * (y.size - 1) + fy + slack[0])),
            ix=max(1, int(stride[1] * (x.size - 1) + fx + slack[1])),
            fy=fy,
            fx=fx,
            stride=stride,
            crop=int(rng.integers(0, 4)),
        ),
        l1_limit=int(np.exp(rng.uniform(np.log(100), np.log(60_000)))),
        weights=TileWeights(
            limit=int(np.exp(rng.uniform(np.log(300), np.log(30_000)))),
            channel=int(rng.integers(0, 40)),
            block=int(rng.integers(0, 40)),
            fixed=int(rng.integers(0, 40)),
            in_l1=bool(rng.random() < 0.4),
        ),
        channels_follow_k=follow,
        copies=int(rng.integers(1, 3)),
        rounding=Rounding(
            k=int(rng.choice([1, 4, 16])),
            c=int(rng.choice([1, 16])),
            x=int(rng.choice([1, 4, 16])),
            extra_maps=int(rng.choice([0, 15])),
            y=int(rng.choice([1, 1, 4, 16])),
        ),
        buffering=int(rng.integers(1, 3)),
        fixed=FixedBytes(
            operands=tuple(int(v) for v in rng.integers(0, 200, int(rng.integers(0, 3)))),
            scratch=int(rng.choice([0, 64])),
            slack=int(rng.choice([0, 48])),
        ),
    )


def random_objective(rng: np.random.Generator) -> Objective:
    dims = ("k", "c", "y", "x", "iy", "ix")
    choices = (
        lambda: Size(str(rng.choice(dims))),
        lambda: Fill(str(rng.choice(dims)), int(rng.choice([4, 16])), bool(rng.random() < 0.5)),
        lambda: Whole(tuple(str(d) for d in rng.permutation(["k", "c", "y", "x"])[:2])),
    )
    return Objective(
        "random",
        tuple(
            Heuristic(f"h{n}", choices[int(rng.integers(3))](), int(rng.integers(-200, 2000)))
            for n in range(int(rng.integers(0, 4)))
        ),
        alpha=int(rng.integers(0, 3)),
    )


@pytest.mark.parametrize("part", range(5))
def test_general_problems(part: int) -> None:
    """20 problems each against plain loops, negative weights included."""
    outcomes = set()
    for seed in range(20 * part, 20 * part + 20):
        rng = np.random.default_rng([seed, 99])
        problem, objective = general_problem(rng), random_objective(rng)
        expected = brute_force(problem, objective)
        outcomes.add(check(problem, objective))
        if expected is not None:
            found = solve_exhaustive(problem, objective)
            assert (found.objective, found.tile) == expected
    assert "tiled" in outcomes


@pytest.mark.parametrize("op", OPS)
def test_shortcut_gives_the_solvers_answer(op: str) -> None:
    """Where the whole layer is proved optimal without a search, the search agrees."""
    proved = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, OPS.index(op), 3])
        layer = random_layer(rng, op)
        for objective in OBJECTIVES.values():
            problem = CORE.tiling_problem(
                DIANA, layer, TilingOptions(256_000, schedule="published")
            )
            quick = solve(problem, objective, TilingOptions())
            if quick.solver != "whole layer":
                continue
            proved += 1
            slow = solve_exhaustive(problem, objective)
            assert (quick.tile, quick.objective) == (slow.tile, slow.objective)
            if seed < 2:
                milp = solve_milp(problem, objective, NODES)
                assert (quick.tile, quick.objective) == (milp.tile, milp.objective)
    assert proved >= 10


def test_shortcut_is_not_taken_where_tiling_scores_higher() -> None:
    """An objective that prefers multiples of 16 to the whole must go to the solver."""
    layer = random_layer(np.random.default_rng(1), "conv2d")
    problem = CORE.tiling_problem(DIANA, layer, TilingOptions(256_000, schedule="published"))
    literal = Objective("literal", (Heuristic("k", Fill("k", 16), 10**9),))
    if (layer.K - 1) % 16 == 15 or layer.K < 16:
        pytest.fail("pick a layer whose K is no multiple of 16")
    solution = solve(problem, literal, TilingOptions())
    assert solution.solver == "milp"
    assert solution.tile.k % 16 == 0 and solution.tile.k < layer.K


def test_two_solves_agree() -> None:
    layer = random_layer(np.random.default_rng(8), "conv2d")
    problem = CORE.tiling_problem(DIANA, layer, TilingOptions(9_000, schedule="published"))
    first = solve_milp(problem, OBJECTIVES["array"], NODES)
    second = solve_milp(problem, OBJECTIVES["array"], NODES)
    assert first == second


def test_node_limit_ends_the_search_deterministically() -> None:
    """At a limit there is either a checked tile with a stated gap, or a typed error."""
    rng = np.random.default_rng(11)
    outcomes = set()
    for _ in range(12):
        layer = random_layer(rng, "conv2d", largest=60)
        problem = CORE.tiling_problem(DIANA, layer, TilingOptions(15_000, schedule="published"))
        if problem.tile_fits(problem.whole) or not problem.tile_fits(problem.smallest):
            continue
        for nodes in (0, 1):
            results = []
            for _ in range(2):
                try:
                    solution = solve_milp(problem, OBJECTIVES["none"], nodes)
                    assert problem.tile_fits(solution.tile)
                    assert (solution.status == "optimal") == (solution.gap == 0)
                    results.append((solution.tile, solution.status, solution.gap))
                except TilingError as error:
                    assert "node limit" in error.hint and f"{nodes} nodes" in error.what
                    results.append(str(error))
            assert results[0] == results[1]
            outcomes.add(results[0][1] if isinstance(results[0], tuple) else "none")
    assert "none" in outcomes or "feasible" in outcomes


def test_large_layers() -> None:
    """Dimensions of hundreds keep the program exact."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        k, c, y, x = (int(rng.integers(100, 400)) for _ in range(4))
        weight = np.zeros((k, c, 1, 1), np.int8)
        layer = conv2d_layer("l", Tensor("x", (c, y, x)), "y", weight, None, requant=Shift(1))
        check(
            CORE.tiling_problem(DIANA, layer, TilingOptions(256_000, schedule="published")),
            OBJECTIVES["array"],
        )
        check(
            CORE.tiling_problem(DIANA, layer, TilingOptions(256_000, schedule="published")),
            OBJECTIVES["none"],
        )


@pytest.mark.rotating(3)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [8, 9, 10])
def test_every_budget_of_a_small_layer(stride: int, size: int) -> None:
    """Each tile's own demand as the limit: the halo's edges are where a program goes wrong."""
    axes = {"k": Axis(1, False), "c": Axis(1, False), "y": Axis(6), "x": Axis(5)}
    window = InputWindow(size, size + 1, 3, 4, (stride, stride))
    weights = TileWeights(limit=10)
    ample = TilingProblem("edge", **axes, window=window, l1_limit=10**6, weights=weights)
    demands = {
        sum(ample.memory(Tile(1, 1, y, x))[:2])
        for y in ample.y.sizes().tolist()
        for x in ample.x.sizes().tolist()
    }
    for limit in sorted(demands):
        problem = replace(ample, l1_limit=limit)
        check(problem, OBJECTIVES["none"])
        assert solve_exhaustive(problem, OBJECTIVES["none"]).l1_in <= limit
