"""ExecuTorch beside ours: the page is of the committed data, and what is asked of the sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.executorch.__main__ import NETWORKS, Row, table
from benchmarks.executorch.firmware import Sources
from byoc_dory.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"


def test_the_committed_page_is_of_the_committed_data() -> None:
    data = json.loads((DOCS / "results" / "executorch.json").read_text("utf-8"))
    rows = [Row(**row) for row in data["rows"]]
    assert table(rows) in (DOCS / "executorch.md").read_text("utf-8")
    assert [row.network for row in rows[::2]] == list(NETWORKS)
    assert {row.by for row in rows[::2]} == {"this project"}


def test_what_is_worse_is_marked() -> None:
    ours = Row("net", "this project", 0, 10, 90, 50, 40, 300)
    theirs = Row("net", "ExecuTorch", 1, 10, 100, 100, 60, 200)
    cells = table([ours, theirs]).splitlines()[-1].split(" | ")
    assert cells[1:6] == ["0 of 10", "1 of 10", "90", "100", "90%"]
    assert cells[-3:] == ["300 *", "200", "150% |"]


def test_missing_sources_are_named(tmp_path: Path) -> None:
    (tmp_path / "executorch@1").mkdir()
    with pytest.raises(InputError, match="no folder cmsis_nn or cmsis_nn@VERSION"):
        Sources.below(tmp_path)
