"""The benchmark of build times: what its table says, and that a build is measured at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import build_time
from benchmarks.build_time import KINDS, Build, Measured, report

OURS, OTHER = Path("ours"), Path("other")


def _measured(wall: float, cpu: float) -> Measured:
    return Measured((wall, cpu), {"importing": (wall / 2, cpu / 2)})


def test_medians_and_ratios_of_two_checkouts() -> None:
    taken = {
        (kind, checkout): [_measured(wall * factor, 1.0 * factor) for wall in (2.0, 9.0, 4.0)]
        for kind in KINDS
        for checkout, factor in ((OURS, 1), (OTHER, 2))
    }
    lines = report("resnet8", taken, OURS).splitlines()
    assert lines[0] == "resnet8, seconds (other: other)"
    assert lines[2].split() == ["cold", "4.00", "8.00", "0.50", "1.00", "2.00", "0.50"]
    assert lines[3].split() == ["importing", "2.00", "4.00", "0.50", "0.50", "1.00", "0.50"]
    assert len(lines) == 2 + 2 * len(KINDS)


def test_one_checkout_has_no_ratio() -> None:
    lines = report("resnet8", {("cold", OURS): [_measured(4.0, 3.0)]}, OURS).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["wall", "CPU"],
        ["cold", "4.00", "3.00"],
        ["importing", "2.00", "1.50"],
    ]


@pytest.mark.slow
def test_a_build_is_measured_stage_by_stage(tmp_path: Path) -> None:
    found = build_time.measure(Build("toyadmos", "diana", 0, run=True), build_time.HERE, tmp_path)
    assert {"import tvm", "importing", "compiling C for rv32", "first run"} <= set(found.stages)
    assert 0 < sum(wall for wall, _ in found.stages.values()) < found.whole[0]
    assert list((tmp_path / "htvm" / "builds").iterdir())
