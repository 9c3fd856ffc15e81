"""The comparison with estimators: causes add up, ours are executed, the page says so."""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path

import pytest

from benchmarks.estimators.cases import DESIGNS, LAYERS, Shape
from benchmarks.estimators.compare import scalesim_difference, zigzag_difference
from benchmarks.estimators.ours import Executed, executed
from benchmarks.estimators.page import page

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
LAYER = Shape("small", C=10, K=6, oy=4, ox=5, f=3)


def test_twenty_designs_and_layers_without_padding() -> None:
    assert len(set(DESIGNS)) == 20
    assert [(shape.iy, shape.ix) for shape in LAYERS[:2]] == [(34, 34), (33, 33)]


@pytest.mark.parametrize("pes", [(1, 1), (3, 4), (16, 8)])
def test_ours_is_what_the_simulator_executes(pes: tuple[int, int]) -> None:
    (found,) = executed(pes, (LAYER,))
    assert found.computing == 20 * 9 * ceil(10 / pes[0]) * ceil(6 / pes[1])
    assert found.transfers > 0


def test_taps_and_filling_explain_a_systolic_array() -> None:
    ours = Executed(20 * 9 * 4 * 2, 99)  # 3 rows, 4 columns
    folds = 30 * 2  # 90 taps and channels on 3 rows
    theirs = folds * (20 + 2 * 3 + 4 - 2) - 1
    found = scalesim_difference((3, 4), (LAYER,), (ours,), (theirs,))
    assert found.causes == {"taps in rows": 20 * (60 - 72), "filling": 60 * 8 - 1}
    assert found.left_over == 0
    wrong = scalesim_difference((3, 4), (LAYER,), (ours,), (theirs + 5,))
    assert wrong.left_over == 5


def test_transfers_stalls_and_array_explain_zigzag() -> None:
    found = zigzag_difference((3, 4), (Executed(100, 30),), ((100.0, 20.0, 7.0, 3.0),))
    assert (found.ours, found.theirs, found.left_over) == (130, 130, 0)
    assert found.percent == 0
    text = page([found], [found])
    assert "| 3 x 4 | 130 | 130 | +0.0 % | +0 | +20 | +10 | -30 | 0 |" in text


def test_nothing_is_left_over_on_the_committed_page() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d+ x \d+ ", line)]
    assert len(rows) == 40
    assert all(row.endswith("| 0 |") for row in rows)
