"""Results in notebooks: rows as plain values, as a data frame, as HTML, as figures."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from htvm.errors import InputError
from htvm.tools.report.types import Report
from tests.report.test_page import without_run
from tests.report.whole import WHOLE

BARE = without_run(WHOLE)


class _Cells(HTMLParser):
    """The texts of all cells, and the tags that are open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.rows and self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_records_are_the_fields_of_the_rows() -> None:
    records = WHOLE.records
    assert len(records) == len(WHOLE.layers)
    for record, row in zip(records, WHOLE.layers, strict=True):
        assert record["name"] == row.name and record["cycles"] == row.cycles
        if row.causes is not None:
            assert record["causes.array"] == row.causes.array


def test_frames_have_the_records() -> None:
    frame = WHOLE.frame
    assert list(frame["cycles"].dropna()) == [
        r.cycles for r in WHOLE.layers if r.cycles is not None
    ]


@pytest.mark.parametrize("report", [WHOLE, BARE])
def test_a_report_is_html_with_a_row_for_each_step(report: Report) -> None:
    page = _Cells(report._repr_html_())
    assert page.open == [] and len(page.rows) == 1 + len(report.layers)
    assert page.rows[0][0] == "name"
    assert [row[0] for row in page.rows[1:]] == [row.name for row in report.layers]


def test_names_cannot_break_the_html() -> None:
    layers = tuple(replace(row, name="</td><script>") for row in WHOLE.layers)
    page = _Cells(replace(WHOLE, layers=layers)._repr_html_())
    assert page.open == [] and page.rows[1][0] == "</td><script>"


def test_long_tables_are_cut_and_say_so() -> None:
    many = replace(WHOLE, layers=WHOLE.layers * 100)
    page = many._repr_html_()
    assert f"{len(many.layers) - 60} more rows" in page


@pytest.mark.parametrize("part", ["timeline", "layers", "memory", "roofline"])
def test_figures(part: str) -> None:
    assert getattr(WHOLE, f"plot_{part}")().axes
    if part in ("layers", "roofline"):
        with pytest.raises(InputError, match=f"no {part} to plot"):
            getattr(BARE, f"plot_{part}")()
