"""The page of results has what the benchmarks wrote."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import page

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def test_the_page_has_the_committed_texts() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m benchmarks.results --only NAME"
