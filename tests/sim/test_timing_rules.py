"""Every timing rule of the core has a sequence with its cycles (the table: timing_rules.py)."""

from __future__ import annotations

import pytest

from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.sim.bare import assemble
from tests.sim.timing_rules import CASES, Case, program


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> dict[Case, int]:
    elf = assemble(program(), tmp_path_factory.mktemp("timing"), compiler)
    lines = run_elf(elf, compiler=compiler).output.split()
    return dict(zip(CASES, (int(line, 16) for line in lines), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(case: Case, measured: dict[Case, int]) -> None:
    assert measured[case] == case.cycles, case.assembly


def test_cases_differ() -> None:
    assert len({case.rule for case in CASES}) == len(CASES)
