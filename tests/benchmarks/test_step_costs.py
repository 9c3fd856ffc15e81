"""The contract of costs: 10 % in the sum, 25 % in each step of at least 1 %."""

from __future__ import annotations

import pytest

from benchmarks.step_costs import Line


@pytest.mark.parametrize(
    ("said", "worst", "holds"),
    [(1090, 0.2, True), (910, -0.24, True), (1110, 0.0, False), (890, 0.0, False),
     (1000, 0.26, False), (1000, -0.3, False)],
)  # fmt: skip
def test_what_is_within_the_contract(said: int, worst: float, holds: bool) -> None:
    assert Line(said, 1000, worst, "step").holds == holds
