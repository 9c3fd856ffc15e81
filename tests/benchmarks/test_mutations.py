"""Mutated ONNX nodes and TFLite operators: what is read is right, everything else is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from benchmarks import built_mutations, damage, mutations, tflite_mutations
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
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")
    check(list(tflite_mutations.campaign(count, 1, interpret)))


@pytest.mark.parametrize("count", [120, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_damaged_file_ends_in_an_untyped_error(count: int) -> None:
    found = list(damage.campaign(count, 1))
    assert [item for item in found if item.result not in ("refused", "without oracle")] == []
    assert {item.result for item in found} == {"refused", "without oracle"}


@pytest.mark.parametrize("count", [14, pytest.param(170, marks=pytest.mark.slow)])
def test_no_layer_built_for_accelerators_leaves_its_bounds(count: int) -> None:
    found = list(built_mutations.campaign(count, 1, interpret))
    assert [item for item in found if item.result not in ("passed", "refused")] == []


def test_the_page_names_what_is_wrong() -> None:
    bad = Mutant(3, "conv", ("a thing changed",), "wrong", "other values")
    count = mutations.counted(iter([Mutant(2, "conv", (), "passed"), bad]))
    assert count.results == Counter({"passed": 1, "wrong": 1})
    text = mutations.page({"onnx": count}, 7)
    assert "| 1 | 0 | 0 | 1 | 0 |" in text
    assert "Of 2 mutants, 1 are wrong or crash.\n- wrong: 3 conv (a thing changed)" in text


def test_a_wrong_reader_is_seen() -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")

    class Wrong:
        def __init__(self, module, inputs) -> None:
            self.outputs = [output + 1 for output in interpret(module, inputs).outputs]

    found = list(tflite_mutations.campaign(60, 1, Wrong))
    assert any(item.result == "wrong" for item in found)
    assert all(item.result != "passed" for item in found)
