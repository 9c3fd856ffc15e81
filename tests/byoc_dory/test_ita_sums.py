"""Sums on ITA: equal to their definition for all bytes, tiles, refusals, and where they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Add, MulShift, add_layer, matrix
from byoc_dory.options import TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.planning import expand
from byoc_dory.region import Region
from byoc_dory.soc.registry import resolve
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.tileloop.checks import check, check_places
from byoc_dory.tiling.problem import solution_of
from htvm.placement.offers import Offers
from tests.byoc_dory.program import Case
from tests.byoc_dory.snitch_cases import attention_layer, try_case
from tests.byoc_dory.test_snitch_native import check as check_native

ITA = SNITCH_ITA.accelerator("ita")


def total(rows: int, columns: int, operands: int, requant: tuple[int, int, int]) -> Add:
    mul, shift, add = requant
    source = matrix("a", rows, columns)
    layer = add_layer("t", source, source, "t", requant=MulShift((mul,), (shift,), (add,)))
    inputs = tuple(replace(source, name=f"x{number}") for number in range(operands))
    return replace(layer, inputs=inputs, output=matrix("t", rows, columns))


def rounding(rng: np.random.Generator) -> tuple[int, int, int]:
    """Any requantization of ITA: a multiplier, a shift that rounds half up, and an offset."""
    shift = int(rng.integers(0, 18))
    offset = int(rng.integers(-128, 128)) if rng.integers(2) else 0
    return int(rng.integers(0, 256)), shift, ((1 << shift) >> 1) + (offset << shift)


def all_pairs(rng: np.random.Generator, requant: tuple[int, int, int], prefix: str) -> list[Case]:
    """Two sums with the 65,536 pairs of bytes, and what a sum is by definition."""
    every = np.arange(-128, 128)
    first, second = np.repeat(every, 256), np.tile(every, 256)
    mul, shift, add = requant
    clip = (0, 127) if rng.integers(4) == 0 else (-128, 127)
    expected = np.clip(((first + second) * mul + add) >> shift, *clip)
    cases = []
    for half in (slice(None, 32768), slice(32768, None)):
        layer = replace(total(256, 128, 2, requant), clip=clip)
        region = Region(f"{prefix}{half.start}", (layer,), layer.inputs, (layer.output,))
        code = generate(region, Cost(SNITCH_ITA, TilingOptions()), region.name, "ita")
        parts = (values[half].astype(np.int8).view(np.uint8) for values in (first, second))
        cases.append(Case(code, tuple(parts), (expected[half].astype(np.int8).view(np.uint8),)))
    return cases


def test_every_pair_of_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    # Without a shift, with the largest multiplier, and drawn.
    requants = [(1, 0, 0), (255, 9, 256), *(rounding(rng) for _ in range(2))]
    cases = [
        case
        for number, requant in enumerate(requants)
        for case in all_pairs(rng, requant, f"s{number}_")
    ]
    check_native(cases, tmp_path, sanitize=False)


@pytest.mark.slow
def test_every_pair_of_bytes_with_more_multipliers(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    requants = [(0, 3, 4), *(rounding(rng) for _ in range(30))]
    cases = [case for n, each in enumerate(requants) for case in all_pairs(rng, each, f"m{n}_")]
    check_native(cases, tmp_path, sanitize=False)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("sanitize", [False, True])
def test_tiles_of_several_operands(tmp_path: Path, sanitize: bool) -> None:
    """2 to 8 operands, rows that are no whole tile, small budgets of L1."""
    cases = []
    for seed in range(8):
        rng = np.random.default_rng(seed + 100 * sanitize)
        columns = 64 * int(rng.integers(1, 3))
        layer = total(int(rng.integers(1, 200)), columns, int(rng.integers(2, 9)), rounding(rng))
        budgets = (20_000, 45_000, 80_000, None)[seed % 3 :]
        cases.append(try_case(layer, budgets, f"t{seed}", "ita", "overlapped"))
    check_native(cases, tmp_path, sanitize)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (total(5, 13, 2, (1, 1, 1)), "65 elements, no multiple of 64"),
        (total(300, 128, 2, (1, 1, 1)), "600 rows of 64 elements, more than 512"),
        (total(64, 64, 9, (1, 1, 1)), "576 summed elements"),
        (total(64, 64, 2, (256, 1, 1)), "multiplier is 256"),
        (total(64, 64, 2, (3, 4, 7)), "does not round half up"),
        (replace(total(64, 64, 2, (1, 1, 1)), clip=(-7, 9)), "clip range"),
    ],
)
def test_what_a_product_cannot_express_is_refused(layer: Add, reason: str) -> None:
    verdict = ITA.judge(SNITCH_ITA, layer)
    assert not verdict and reason in verdict.reason  # type: ignore[union-attr]


def offered(schedule: str, rewrites: bool) -> dict[str, bool]:
    target = resolve("snitch_ita")
    cost = Cost(target.soc, TilingOptions(schedule=schedule))  # type: ignore[arg-type]
    asked = Offers(target, cost, final=True, rewrites=rewrites)
    answers = asked.candidates(total(128, 128, 2, (3, 4, 8)), estimates=True)
    return {answer.name: answer.accepted for answer in answers}


def test_sums_are_offered_unless_layers_are_computed_as_they_are() -> None:
    assert offered("overlapped", True) == {"ita": True, "cluster": True, "cpu": True}
    assert not offered("overlapped", False)["ita"]
    assert not offered("published", True)["ita"]


@pytest.mark.parametrize(("schedule", "home"), [("overlapped", "ita"), ("published", "cluster")])
def test_heads_are_added_where_that_is_quicker(schedule: str, home: str) -> None:
    layer = attention_layer(np.random.default_rng(1), "mha", 128, 128, 4, joined=False)
    region = Region("r", (layer,), layer.inputs, (layer.output,), homes=("ita",))
    cost = Cost(SNITCH_ITA, TilingOptions(schedule=schedule))  # type: ignore[arg-type]
    homes = {name: found.name for name, found in expand(cost, region).homes.items()}
    assert homes.pop("mha") == home
    assert set(homes.values()) == {"ita"}


def test_operands_lie_between_each_others_rows() -> None:
    layer, options = total(128, 128, 3, (1, 0, 0)), TilingOptions()
    problem = ITA.problem(SNITCH_ITA, layer, options)
    plan = plan_alone(layer, solution_of(problem, problem.whole), "ita", problem)
    program = ITA.tile_program(SNITCH_ITA, layer, plan, options)
    check(program)
    check_places(program)
    first, second, *others = program.operands
    for wrong in (replace(second, l1=first.l1 + 32), replace(second, l1_bytes=64)):
        with pytest.raises(TileProgramError, match="'in1' do not lie between those of 'in0'"):
            check_places(replace(program, operands=(first, wrong, *others)))
