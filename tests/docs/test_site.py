"""The site of the documentation: it builds without a warning, and fetches nothing."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from htvm.tools.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
# What a browser loads by itself: not links, which a reader follows.
_LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]+src=.?(https?:[^\s\"'>]+)|<link[^>]+href=.?(https?:[^\s\"'>]+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    yield folder


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = (site / "index.html").read_text(encoding="utf-8")
    folders = ("", "guides", "reference", "socs")
    pages = [page for folder in folders for page in (ROOT / "docs" / folder).glob("*.md")]
    names = [page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in pages]
    assert [name for name in names if f'href="{name}"' not in shown] == []


def test_every_notebook_is_a_page(site: Path) -> None:
    shown = (site / "index.html").read_text(encoding="utf-8")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f'href="notebooks/{path.stem}.html"' in shown, path.name
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = next("".join(c["source"]) for c in cells if c["cell_type"] == "code").splitlines()[0]
        page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert code in re.sub(r"<[^>]+>", "", html.unescape(page)), path.name


def test_nothing_is_fetched(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert _LOADED.findall(page.read_text(encoding="utf-8")) == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(.?https?:|@import", sheet.read_text(encoding="utf-8")), (
            sheet.name
        )


def test_a_page_on_a_disk_searches(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium or google-chrome")
    address = f"{(site / 'guides/fit.html').as_uri()}?q=halo"
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}",
        "--virtual-time-budget=10000", "--dump-dom", address,
    ]  # fmt: skip
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "md-search-result__item" in page


def test_pages_that_the_code_writes_are_whole(site: Path) -> None:
    verbs = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f"Usage: htvm {verb}" not in verbs] == []
    rules = (site / "reference" / "targets.html").read_text(encoding="utf-8")
    for words in ("The kernel is at most 7x7", "The weights are -1, 0 and 1", "snitch_ita.cluster"):
        assert words in rules
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in ("htvm.build", "htvm.load", "htvm.explore", "TilingOptions", "HtvmError"):
        assert name in python


def test_searches_prefer_guides_to_long_lists(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    weights = {entry["location"].split("#")[0]: entry.get("boost", 1) for entry in index["docs"]}
    assert weights["guides/boards.html"] > weights["architecture.html"] > weights["results.html"]
    assert weights["bring-your-own-soc.html"] > weights["reference/targets.html"]
