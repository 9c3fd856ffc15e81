"""Mutated ONNX nodes: what is read is right, everything else is refused, nothing crashes."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.mutations import campaign
from tests.reference.interpreter import interpret


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_no_mutant_is_wrong_and_none_crashes(count: int) -> None:
    found = list(campaign(count, 1, interpret))
    assert [item for item in found if item.result in ("wrong", "crashed")] == []
    counts = Counter(item.result for item in found)
    assert counts["passed"] > count // 10
    assert counts["refused"] > count // 10
