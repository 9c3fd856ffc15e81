"""The pages for readers: their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CHANGELOG.md", "benchmarks/README.md", *sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md")
    if "examples" not in path.parts  # pages of packages, whose paths begin at their own roots
))  # fmt: skip
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    links = _LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    """Of what looks like a path from the root; `docs/results` is what ``make bench`` writes."""
    text = (ROOT / page).read_text(encoding="utf-8")
    rooms = "htvm|patterns|byoc_dory|runtime_c|tests|benchmarks|docs"
    named = set(re.findall(rf"`((?:{rooms})/[\w/.]+)`", text))
    named = {name for name in named if not name.startswith("docs/results")}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_architecture_is_read_in_one_sitting() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 5000
