"""The contract of costs: 10 % in the sum, 25 % in each step of at least 1 %."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.step_costs import Line, _table


@pytest.mark.parametrize(
    ("said", "worst", "holds"),
    [(1090, 0.2, True), (910, -0.24, True), (1110, 0.0, False), (890, 0.0, False),
     (1000, 0.26, False), (1000, -0.3, False)],
)  # fmt: skip
def test_what_is_within_the_contract(said: int, worst: float, holds: bool) -> None:
    assert Line("net", "target", said, 1000, worst, "step").holds == holds


def test_what_was_published_is_within_the_contract() -> None:
    root = Path(__file__).parents[2] / "docs"
    data = json.loads((root / "results" / "step_costs.json").read_text(encoding="utf-8"))
    lines = [Line(**entry) for entry in data]
    assert len(lines) >= 16 and not any(line.failure for line in lines)
    assert all(line.holds for line in lines)
    shown = (root / "results" / "step_costs.txt").read_text(encoding="utf-8")
    assert _table(lines) in shown and shown.split("\n\n", 1)[1].strip() in (
        root / "results.md"
    ).read_text(encoding="utf-8")
