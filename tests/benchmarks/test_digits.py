"""The digits benchmark: what it says of figures, and what they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import digits
from benchmarks.digits import Row

FLOAT = Row("digits", "float, onnxruntime", "", 444, 450)
DIGITAL = Row("digits", "retargeted", "diana.digital", 443, 450, 32.0, 60_000, 0.23)
MIXED = Row("digits_ternary", "retargeted", "diana.mixed", 438, 450, 27.0, 56_000, 0.22, 2)


def test_goals_are_reached_or_missed() -> None:
    assert all("reached" in said for said in digits._goals([FLOAT, DIGITAL, MIXED]))
    worse = [replace(FLOAT, right=440), replace(DIGITAL, right=438), replace(MIXED, right=430)]
    assert all("MISSED" in said for said in digits._goals(worse))


@pytest.mark.slow
def test_the_digits_are_recognised_in_every_form(tmp_path: Path) -> None:
    artefact = digits.run(tmp_path)
    assert not [said for said in artefact.data["goals"] if "reached" not in said]
    data = json.loads((tmp_path / "digits.json").read_text(encoding="utf-8"))
    assert len(data["rows"]) == len(digits.BUILDS) + 2
    assert all(row["images"] == 450 for row in data["rows"])
