"""What is said where no tile fits: limit, demand, the smallest demand, levers."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.tiling import Axis, Tile, TilingProblem, shortage_of, solve_exhaustive
from byoc_dory.tiling.objectives import Objective
from byoc_dory.tiling.problem import InputWindow, Rounding, TileWeights
from tests.byoc_dory.snitch_cases import attention_layer
from tests.byoc_dory.test_tiling_milp import general_problem

CONV = TilingProblem(
    "conv",
    k=Axis(32),
    c=Axis(8, False),
    y=Axis(10),
    x=Axis(12, False),
    window=InputWindow(iy=10, ix=12, fy=3, fx=3, stride=(1, 1)),
    l1_limit=400,
    weights=TileWeights(limit=4_000, channel=144, block=64),
    rounding=Rounding(k=16),
)


def test_all_four_are_said() -> None:
    found = shortage_of(CONV)
    assert found is not None
    # One row: 8 channels of 3 x 12 in, 16 maps of 12 out; the whole: 8 and 32 of 120.
    assert (found.memory, found.limit, found.smallest) == ("L1", 400, 8 * 36 + 16 * 12)
    assert found.demand == 40 * 120
    assert found.tile == Tile(1, 8, 1, 12)
    message = str(found.error())
    for part in (
        "limit is 400 B", "needs 480 B of L1", "input 288, output 192",
        "whole layer would need 4800 B", "raise the L1 budget to 480 B or more",
        "fewer input channels than 8", "narrower input than 12 columns",
        "smaller kernel than 3x3", "leave the layer to the CPU", "layer 'conv'",
    ):  # fmt: skip
        assert part in message, part


def test_the_budget_it_asks_for_is_enough() -> None:
    found = shortage_of(CONV)
    assert found is not None
    assert shortage_of(replace(CONV, l1_limit=found.smallest)) is None
    assert shortage_of(replace(CONV, l1_limit=found.smallest - 1)) is not None


def test_copies_are_counted_and_named() -> None:
    found = shortage_of(replace(CONV, buffering=2, l1_limit=900))
    assert found is not None and found.smallest == 960 and found.demand == 9600
    assert "2 copies of input 288" in found.parts
    assert any("published" in lever for lever in found.levers)


def test_weights() -> None:
    found = shortage_of(replace(CONV, weights=replace(CONV.weights, limit=1_000)))
    assert found is not None
    # One block of 16: 8 channels of 144 B, 64 B of bias; the whole has two.
    assert (found.memory, found.smallest, found.demand) == ("weight memory", 1216, 2432)
    assert not any("budget" in lever or "narrower" in lever for lever in found.levers)


def test_partial_sums_may_need_more_than_whole_channels() -> None:
    """While c is tiled outputs are int32: the tile of least demand has all channels."""
    sums = TilingProblem(
        "sums",
        k=Axis(1, False),
        c=Axis(4),
        y=Axis(1, False),
        x=Axis(1, False),
        window=InputWindow(iy=1, ix=1, fy=1, fx=1, stride=(1, 1)),
        l1_limit=4,
        weights=TileWeights(limit=10),
    )
    found = shortage_of(sums)
    # c=1: 1 + 4 bytes; c=4: 4 + 1.
    assert found is not None and found.smallest == 5
    assert shortage_of(replace(sums, l1_limit=5)) is None


@pytest.mark.parametrize("part", range(4))
def test_there_is_a_shortage_exactly_where_no_tile_fits(part: int) -> None:
    lacking = 0
    for seed in range(50 * part, 50 * part + 50):
        problem = general_problem(np.random.default_rng([seed, 41]))
        small = replace(
            problem,
            l1_limit=problem.l1_limit // 20,
            weights=replace(problem.weights, limit=400),
        )
        grid = np.meshgrid(*(axis.sizes() for axis in small.axes), indexing="ij")
        fits = bool(small.fits(*grid).any())
        found = shortage_of(small)
        assert (found is None) == fits
        if found is None:
            continue
        lacking += 1
        assert found.smallest > found.limit
        with pytest.raises(TilingError, match=str(found.smallest)):
            solve_exhaustive(small, Objective("none"))
        if found.memory == "L1":
            assert shortage_of(replace(small, l1_limit=found.smallest)) is None
    assert 5 < lacking < 50


def test_attention_needs_the_memory_of_its_largest_part() -> None:
    layer = attention_layer(np.random.default_rng(0), "l", 64, 128, 2, joined=True)
    ita, options = SNITCH_ITA.accelerator("ita"), TilingOptions()
    problems = [
        SNITCH_ITA.accelerator(name).problem(SNITCH_ITA, part, options)
        for part, name in ita.expand(SNITCH_ITA, layer)
    ]
    whole = ita.problem(SNITCH_ITA, layer, options)
    *parts, needed = (
        problem.l1_bytes(*astuple(problem.smallest)) for problem in (*problems, whole)
    )
    assert min(parts) < max(parts) == needed
