"""What README, tutorial and guides show is what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.outputs import PAGES, QUOTING, changes, rewritten
from tests.docs.test_guides import GUIDES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in GUIDES])
def test_a_page_shows_what_comes_out(page: str, tmp_path: Path) -> None:
    found = changes(ROOT / page, tmp_path)
    assert not found, f"python -m tests.docs.outputs {page}\n" + "\n".join(found)


@pytest.mark.parametrize("page", QUOTING)
def test_a_page_shows_the_figures_of_the_tables(page: str, tmp_path: Path) -> None:
    assert not changes(ROOT / page, tmp_path), f"python -m tests.docs.outputs {page}"


def test_blocks_are_replaced(tmp_path: Path) -> None:
    page = "a\n```python\nx = 1\nprint(x)\n```\nb\n```text\nold\n```\n```text\nkept\n```\n"
    assert rewritten(page, tmp_path) == page.replace("old", "1")


def test_tables_are_replaced(tmp_path: Path) -> None:
    page = "<!-- python: print('| 2 |') -->\n| old |\n| older |\n\n| kept |\n"
    assert rewritten(page, tmp_path) == "<!-- python: print('| 2 |') -->\n| 2 |\n\n| kept |\n"


def test_what_no_longer_comes_out_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n```text\n0\n```\n")
    assert changes(page, tmp_path)[-3:] == ["-0", "+1", " ```"]
