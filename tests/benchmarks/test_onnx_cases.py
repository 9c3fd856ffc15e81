"""The node cases of the package onnx: none is wrong, none crashes, and the page says which pass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from benchmarks import onnx_cases
from tests.reference.interpreter import interpret

PAGE = Path(__file__).parents[2] / "docs" / "onnx-cases.md"
EVERYDAY = (
    "test_max_example",
    "test_softmax_axis_0",
    "test_reduce_l2_keep_dims_random",
    "test_elu",
    "test_split_equal_parts_2d",
    "test_layer_normalization_4d_axis1",
    "test_mish",
)


@pytest.mark.parametrize("name", EVERYDAY)
def test_some_cases_are_computed_as_the_standard_says(name: str) -> None:
    found = [case for case in onnx_cases.cases() if case.name == name]
    if not found:
        pytest.skip(f"onnx {onnx.__version__} has no case {name}")
    results = {onnx_cases.run(found[0], form, interpret).result for form in onnx_cases.FORMS}
    assert "passed" in results
    assert not results & {"wrong", "crashed"}


@pytest.mark.slow
def test_no_case_is_wrong_and_the_page_says_what_passes() -> None:
    found = list(onnx_cases.outcomes(interpret))
    bad = [item for item in found if item.result in ("wrong", "crashed")]
    assert bad == []
    best = {item.case for item in found if item.result == "passed"}
    assert len(best) >= 250
    if onnx.__version__ == "1.23.2":
        assert onnx_cases.table(found) == PAGE.read_text(encoding="utf-8")
    assert Counter(item.result for item in found)["passed"] > 500
