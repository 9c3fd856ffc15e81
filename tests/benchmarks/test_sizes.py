"""Fit, run, compile and the compiler's own tool state the same sizes, and the page has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.sizes import CC, NETWORKS, Stated, disagreements, stated, table
from tests.tools import tool

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "fit.md"


@pytest.mark.parametrize("cc", [None, CC], ids=["clang", "gcc"])
@pytest.mark.parametrize(
    "network",
    [
        name if name == "zoo:toyadmos" else pytest.param(name, marks=pytest.mark.slow)
        for name in NETWORKS
    ],
)
def test_all_state_the_same(network: str, cc: str | None) -> None:
    tool(CC)
    found = stated(network, cc)
    assert disagreements([found]) == []
    assert (CC in found.compiler) == (cc is not None)


def test_what_differs_is_named() -> None:
    row = Stated("net", "cc", (1, 1, 1, 1), (2, 2, 2, 2))
    assert disagreements([row]) == []
    wrong = [replace(row, ram=(1, 1, 3, 1)), replace(row, flash=(5, 2, 2, 2))]
    assert disagreements(wrong) == ["RAM of net by cc: [1, 3]", "flash of net by cc: [2, 5]"]
    assert "| net | cc | 1 | 1 | 1 | 1 | 2 | 2 | 2 | 2 |" in table([row])


def test_the_page_has_all_networks() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| clang" in line]
    assert [line.split(" | ")[0].strip("| ") for line in rows] == [
        name.removeprefix("zoo:") for name in NETWORKS
    ]
