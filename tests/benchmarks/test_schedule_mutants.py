"""Mutated schedules are found, those that read what a transfer still writes among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.schedule_mutants import CASES, plans
from tests.byoc_dory.mutants import Programs
from tests.rotation import today


@pytest.mark.parametrize(
    ("name", "seed", "what"),
    [
        # Cores compute with weights of which the next ones are being loaded over.
        ("constants loaded before", 1, "c2: one buffer L1_WEIGHTS"),
        # Cores are started before their table is there, and joined when it is.
        ("cores beside ITA", 1, "norm0_rows0_start: cluster_dma_wait"),
    ],
)
def test_what_a_transfer_still_writes_is_not_read(
    name: str, seed: int, what: str, tmp_path: Path
) -> None:
    drawn, soc = CASES[name]
    programs = Programs(drawn(seed), soc, tmp_path)
    (number,) = (number for number, each in enumerate(programs.names, 1) if what in each)
    assert programs.finder(number) == "results"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_all_mutants_of_programs_are_found(name: str, tmp_path: Path) -> None:
    """Others on every commit: ``python -m benchmarks.schedule_mutants`` makes 200 from seed 0."""
    drawn, soc = CASES[name]
    programs = Programs(drawn(1 + today() % 1000), soc, tmp_path)
    missed = [each for number, each in enumerate(programs.names, 1) if not programs.finder(number)]
    assert programs.names and not missed


def test_guards_refuse_harmful_plans_alone() -> None:
    found = plans(10)
    assert found["refused"] == 10
    assert not found["missed"] and not found["harmless and refused"]
