"""Mutated ONNX nodes and TFLite operators: what is read is right, everything else is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from benchmarks import mutations, tflite_mutations
from benchmarks.mutant import Mutant
from tests.reference.interpreter import interpret


def check(found: Sequence[Mutant]) -> None:
    assert [item for item in found if item.result in ("wrong", "crashed")] == []
    counts = Counter(item.result for item in found)
    assert counts["passed"] > len(found) // 10
    assert counts["refused"] > len(found) // 10


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_no_onnx_mutant_is_wrong_and_none_crashes(count: int) -> None:
    check(list(mutations.campaign(count, 1, interpret)))


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_tflite_mutant_is_wrong_and_none_crashes(count: int) -> None:
    pytest.importorskip("tflite_micro", reason="the package tflite-micro is not installed")
    check(list(tflite_mutations.campaign(count, 1, interpret)))


def test_a_wrong_reader_is_seen() -> None:
    pytest.importorskip("tflite_micro", reason="the package tflite-micro is not installed")

    class Wrong:
        def __init__(self, module, inputs) -> None:
            self.outputs = [output + 1 for output in interpret(module, inputs).outputs]

    found = list(tflite_mutations.campaign(20, 1, Wrong))
    assert any(item.result == "wrong" for item in found)
    assert all(item.result != "passed" for item in found)
