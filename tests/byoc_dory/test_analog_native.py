"""Generated C of the analog core with the real driver and device models, on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.analog import random_analog_layer
from tests.byoc_dory.program import Case, main_program, make_case, packed, region_of

BUDGETS = (1_200, 5_000, 20_000, 256_000)


def random_cases(count: int, start: int, largest: int = 20) -> list[Case]:
    """Single-layer regions under the smallest of a few budgets that holds a tile."""
    cases = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        layer = random_analog_layer(rng, f"layer{seed}", largest)
        region = region_of(layer, f"r{seed}", ("NHWC", "NCHW")[seed % 2])
        schedule = ("published", "overlapped")[seed // 2 % 2]
        objective = ("array", "none", "paper")[seed % 3]
        for budget in BUDGETS[seed % 3 :]:
            unroll = (1, 1, 4, 8)[seed % 4]
            options = TilingOptions(budget, objective, schedule=schedule, unroll=unroll)
            try:
                cases.append(make_case(region, options, f"p{seed}", seed, "analog"))
                break
            except TilingError:
                continue
    return cases


def check(cases: list[Case], folder: Path, sanitize: bool) -> None:
    source = folder / "main.c"
    source.write_text(main_program(cases))
    program = host.build([source], [], DIANA, folder / "out", Compiler.zig(), sanitize)
    expected = packed(cases, outputs=True)
    (got,) = run_host(program, [packed(cases, outputs=False)], [len(expected)])
    at = 0
    for case in cases:
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            part = np.frombuffer(got, np.int8, values.size, at).reshape(values.shape)
            at += values.size
            np.testing.assert_array_equal(part, values, f"{case.code.name}: {tensor.name}")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return random_cases(32, 0)


def test_cases_are_worth_it(cases: list[Case]) -> None:
    """They have tiles, passes, more outputs than columns, unrolling, vectors and results."""
    programs = [kernel.program for case in cases for kernel in case.code.kernels]
    programs = [program for program in programs if program is not None]
    triggers = [program.call(next(program.order())) for program in programs]
    assert len(programs) > 28
    assert sum(program.tiles > 1 for program in programs) > 10
    assert sum(trigger.c > trigger.c_pass for trigger in triggers) > 5
    several = [axis.name for program in programs for axis in program.axes if axis.count > 1]
    assert several.count("k") > 2
    assert sum(trigger.unroll > 1 for trigger in triggers) > 2
    assert sum(trigger.vector for trigger in triggers) > 3
    spread = [np.unique(case.outputs[0]).size for case in cases if case.outputs[0].size > 500]
    assert np.median(spread) > 30


def test_equals_the_reference(cases: list[Case], tmp_path: Path) -> None:
    """All cases in one program, undefined behaviour trapped."""
    check(cases, tmp_path, sanitize=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1500, 50))
def test_many_equal_the_reference(tmp_path: Path, start: int) -> None:
    check(random_cases(50, start, 40), tmp_path, False)
