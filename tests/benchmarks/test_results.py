"""The page of results: single sections are replaced, others stay."""

from __future__ import annotations

import pytest

from benchmarks.artefact import Artefact
from benchmarks.results import page, with_sections


def test_a_section_is_replaced_by_its_heading() -> None:
    first, second = (Artefact(title, title, f"{title} = 1\n", None) for title in ("one", "two"))
    whole = page([first, second])
    newer = Artefact("two", "two", "two = 2\n", None, {"picture": None})
    assert with_sections(whole, [newer]) == page([first, newer])
    assert with_sections(whole, [first, second]) == whole
    with pytest.raises(ValueError, match="no section 'three'"):
        with_sections(whole, [Artefact("three", "three", "", None)])
