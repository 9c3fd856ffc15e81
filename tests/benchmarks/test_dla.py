"""The published claims about the accelerator hold for executed programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import dla
from benchmarks.dla_runs import SCENARIOS, execute, workload

RESULTS = Path(__file__).parents[2] / "docs" / "results"

SHEET = {
    ("native", 262_144, 64, "output"): 9.10,
    ("native", 1024, 64, "output"): 9.55,
    ("native", 262_144, 64, "input"): 12.77,
    ("native", 262_144, 128, "output"): 4.99,
    ("native", 1024, 128, "output"): 5.44,
    ("native", 262_144, 128, "input"): 8.86,
    ("emulated", 262_144, 64, "output"): 26.15,
}
"""Mcycles of the derived model."""


@pytest.mark.slow
def test_claims_hold_and_fused_designs_equal_the_model() -> None:
    found = dla.bars({name: workload(dla.NETWORK, name) for name in SCENARIOS})
    assert len(found) == 28
    for fused in (False, True):
        assert all(true for _, _, true in dla.claims(found, fused=fused))
    executed = {
        (bar.depthwise, bar.kib, bar.pes, bar.parallel): round(bar.fused.computing / 1e6, 2)
        for bar in found
    }
    assert {key: executed[key] for key in SHEET} == SHEET
    written = json.loads((RESULTS / "dla.json").read_text(encoding="utf-8"))
    assert [entry["split"]["CONV"] for entry in written] == [
        bar.split.segments()["CONV"] for bar in found
    ]


def test_a_small_network_is_measured() -> None:
    """Cycles of split pipelines are those of fused ones and their requantization."""
    work = workload("ds_cnn", "native")
    split = execute(work, dla.design_of("native", 512, 64, "output", fused=False))
    fused = execute(work, dla.design_of("native", 512, 64, "output", fused=True))
    segments = split.segments()
    assert split.computing == fused.computing + segments["REQUANT"]
    assert segments["REQUANT"] > 0 == fused.segments()["REQUANT"]
    assert 0.9 < fused.utilisation(64) <= 1.0
