"""What chains of rows on accelerators would save."""

from __future__ import annotations

import pytest

import htvm
from benchmarks.accelerator_chains import saving_of
from byoc_dory.options import TilingOptions
from htvm import zoo


def _saving(network: str, target: str, kib: int) -> tuple[int, int, tuple[str, ...]]:
    tiling = TilingOptions(l1_budget=kib * 1024)
    compiled = htvm.build(zoo.build(network), target, tiling=tiling).compiled
    found = saving_of(compiled.regions, compiled.cost)
    assert found.proven
    return found.cycles, found.with_chains, found.chains


@pytest.mark.slow
def test_chains_save_where_l1_is_short() -> None:
    cycles, with_chains, chains = _saving("ds_cnn", "siracusa", 16)
    assert with_chains < cycles
    assert chains


@pytest.mark.slow
def test_no_chains_where_rows_of_a_map_are_apart() -> None:
    cycles, with_chains, chains = _saving("ds_cnn_7x5", "diana.digital", 16)
    assert with_chains <= cycles
    assert not chains
