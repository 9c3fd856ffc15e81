"""What README, tutorial and guides show is what comes out."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.docs.outputs import rewritten

DOCS = Path(__file__).parents[2] / "docs"
QUICK = ("comparison.md", "contract.md", "guides/relax-to-c.md")
PAGES = (
    "../README.md",
    "tutorial.md",
    "bring-your-own-soc.md",
    "guides/first-report.md",
    "guides/verify.md",
    "guides/boards.md",
    "guides/export.md",
    "guides/from-microtvm.md",
    "guides/from-tvmc.md",
    "guides/own-pipeline.md",
    "guides/quantize.md",
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_comes_out(page: str, tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    today = rewritten(text, tmp_path)
    changes = difflib.unified_diff(text.splitlines(), today.splitlines(), "shown", "today", "", "")
    assert today == text, f"python -m tests.docs.outputs docs/{page}\n" + "\n".join(changes)


@pytest.mark.parametrize("page", QUICK)
def test_a_page_shows_the_figures_of_the_tables(page: str, tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert rewritten(text, tmp_path) == text, f"python -m tests.docs.outputs docs/{page}"


def test_blocks_are_replaced(tmp_path: Path) -> None:
    page = "a\n```python\nx = 1\nprint(x)\n```\nb\n```text\nold\n```\n```text\nkept\n```\n"
    assert rewritten(page, tmp_path) == page.replace("old", "1")


def test_tables_are_replaced(tmp_path: Path) -> None:
    page = "<!-- python: print('| 2 |') -->\n| old |\n| older |\n\n| kept |\n"
    assert rewritten(page, tmp_path) == "<!-- python: print('| 2 |') -->\n| 2 |\n\n| kept |\n"
