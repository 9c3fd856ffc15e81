"""The page: self-contained, well-formed, complete, and readable for networks of any size."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from htvm.activity import Interval
from htvm.tools.plots.lanes import Lane, coarse, lanes_of
from htvm.tools.report.data import Unit
from htvm.tools.report.html import report_html
from htvm.tools.report.parts import NetworkNode
from htvm.tools.report.types import Report
from tests.report.whole import WHOLE, deep

_VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}
_SVG = "{http://www.w3.org/2000/svg}"


class _Page(HTMLParser):
    """Checks that elements nest, and keeps what the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                self.links.append(value or "")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def without_run(report: Report) -> Report:
    """The report of the same build on a platform that counts no cycles."""
    summary = replace(report.summary, platform="host", cycles=None, units=(), causes=None)
    rows = tuple(
        replace(row, cycles=None, causes=None, start=None, energy_uj=None) for row in report.layers
    )
    return replace(report, summary=summary, layers=rows, timeline=(), energy=None)


def bare(report: Report) -> Report:
    """Only what every report has."""
    return Report(report.summary, report.layers)


CASES = {
    "whole": WHOLE,
    "no run": without_run(WHOLE),
    "bare": bare(WHOLE),
    "nothing": bare(replace(without_run(WHOLE), layers=())),
    "deep": deep(3, 7, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_page_is_self_contained_and_well_formed(case: str) -> None:
    text = report_html(CASES[case])
    page = _Page(text)
    assert page.links == [] and "@import" not in text and "url(" not in text
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(NaN|nan|inf|None|Undefined)\b", text)
    for figure in re.findall(r"<svg.*?</svg>", text, re.S):
        root = ET.fromstring(figure)
        for element in root.iter():
            assert element.tag.startswith(_SVG)


@pytest.mark.parametrize("case", CASES)
def test_widths_and_places_are_inside_their_rows(case: str) -> None:
    text = report_html(CASES[case])
    for style in re.findall(r'style="([^"]+)"', text):
        sizes = dict(part.split(":") for part in style.split(";"))
        numbers = {name: float(value.rstrip("%")) for name, value in sizes.items()}
        assert all(0 <= value <= 100.001 for value in numbers.values()), style
        assert numbers.get("left", 0) + numbers.get("width", 0) <= 100.001, style
        assert numbers.get("bottom", 0) + numbers.get("height", 0) <= 100.001, style


def test_page_shows_every_step_and_what_is_known_of_it() -> None:
    page = _Page(report_html(WHOLE))
    for said in (
        "1,500", "0.01 ms", "conv2d_0", "softmax_0 <b>\"&'", "3x32x32 → 16x32x32, 3x3",
        "16,3,32,32", "2 ×2", "256,000", "256.00", "100.0", "980", "-2.0", "+25.0", "0.096",
        "3,072", "16,384", "496", "24,576", "of 66.7 % of the cycles", "noise of 0.5 steps",
        "htvm report tiny.onnx", "ab" * 32, "cd" * 32, "target = diana", "SQNR", "27.2", "96.0 %",
        "layers on accelerators (1): median error 2.0 %, worst conv2d_0 (-2.0 %)",
        "derived from published average powers", "digital: 24.96 mW (public code: ODiMO)",
    ):  # fmt: skip
        assert said in page.text, said
    assert page.tags.count("svg") == 5  # host, DMA, core, roofline, network
    assert "b" not in [tag for tag in page.tags if tag == "i"]


def test_bars_add_up() -> None:
    text = report_html(WHOLE)
    whole = re.search(r'<div class="tall">(.*?)</div>', text, re.S)
    assert whole is not None
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", whole[1])]
    assert len(widths) == 5 and sum(widths) == pytest.approx(100, abs=0.001)


def test_without_cycles_the_page_says_why() -> None:
    text = _Page(report_html(without_run(WHOLE))).text
    assert "no cycles: this platform counts none" in text
    assert "Across: steps in execution order" in text and "host alone" not in text
    summary = replace(without_run(WHOLE).summary, platform="rv32")
    assert "not run yet" in report_html(replace(without_run(WHOLE), summary=summary))


def test_a_build_that_does_not_fit_says_by_how_much() -> None:
    memory = replace(WHOLE.summary.memory, limit=100_000)
    text = _Page(report_html(replace(WHOLE, summary=replace(WHOLE.summary, memory=memory)))).text
    assert "L2 overflows" in text and "4,384 B too many" in text


def test_long_runs_stay_readable_and_small() -> None:
    report = deep(24, 20, 60)
    assert len(report.timeline) > 100_000
    text = report_html(report)
    assert len(text) < 5_000_000
    assert all(row.name in text for row in report.layers)
    page = _Page(text)
    assert {"host", "dma", "core0-8", "ita"} <= set(page.words)
    assert "apart are drawn as one" in page.text


def _lanes(report: Report) -> tuple[Lane, ...]:
    return lanes_of(report.timeline, report.summary.cycles)


def test_lanes_are_the_intervals_and_the_host_has_the_rest() -> None:
    host, dma, core = _lanes(WHOLE)
    assert (host.name, host.spans) == ("host", ((0, 100), (950, 1_500)))
    assert (dma.name, dma.spans) == ("dma", ((20, 120), (960, 1_000)))
    assert (core.name, core.spans) == ("digital", ((110, 960),))
    joined, gap = coarse((host, dma, core), 3)
    assert [len(lane.spans) for lane in joined] == [1, 1, 1] and gap >= 850
    same, gap = coarse((host, dma, core), 5)
    assert same == (host, dma, core) and gap == 0


def test_cores_drawn_as_one_are_busy_on_average() -> None:
    # Two cores that work 100 cycles each, one after the other: each is busy a tenth of 1,500.
    times = (Interval("core1", 0, 150), Interval("core2", 150, 300))
    page = report_html(replace(WHOLE, timeline=times))
    assert "<b>core1-2</b><span>10.0 % busy</span>" in page


def test_accelerators_that_work_at_the_same_time_are_no_parts_of_a_whole() -> None:
    several = "more than 100 %"
    assert several not in report_html(WHOLE) and 'class="tall units"' in report_html(WHOLE)
    units = (*WHOLE.summary.units, Unit("analog", 700, "array", 700))
    page = report_html(replace(WHOLE, summary=replace(WHOLE.summary, units=units)))
    assert several in page and 'class="tall units"' not in page


def test_edges_to_another_line_pass_beside_the_boxes_above_their_end() -> None:
    chain = [NetworkNode(f"a{i}", "add", "cpu", (f"a{i - 1}",)) for i in range(10)]
    below = [NetworkNode(name, "add", "cpu", ("a9",)) for name in ("b", "c")]
    page = report_html(replace(WHOLE, graph=(*chain, *below)))
    ends = re.findall(r'class="edge" d="M\d+ \d+h10V\d+([^"]*)"', page)
    assert len(ends) == 2 and ends[0].startswith("H71V") and re.fullmatch(r"H8V\d+H18", ends[1])


def test_what_touches_or_overlaps_is_one_span() -> None:
    times = ((110, 500), (400, 450), (500, 960), (961, 970), (980, 980))
    report = replace(WHOLE, timeline=tuple(Interval("digital", *each) for each in times))
    host, core = _lanes(report)
    assert core.spans == ((110, 960), (961, 970)) and core.busy == 859
    assert host.spans == ((0, 1_500),)


def test_cores_come_last_in_the_order_of_their_numbers() -> None:
    names = [lane.name for lane in _lanes(deep(1, 2, 1))]
    assert names == ["host", "dma", "ita", *(f"core{i}" for i in range(9))]


def test_a_host_that_is_a_core_in_a_kernel_has_no_work_of_its_own() -> None:
    times = (
        Interval("cluster", 300, 700),
        Interval("core0", 300, 650),
        Interval("waiting", 0, 100),
    )
    host, cluster, core = _lanes(replace(WHOLE, timeline=times))
    assert host.spans == ((100, 300), (700, 1_500))
    assert (cluster.name, cluster.busy, core.name, core.busy) == ("cluster", 400, "core0", 350)


def test_a_controller_goes_on_beside_a_kernel() -> None:
    times = (
        Interval("cluster", 300, 700),
        Interval("core1", 300, 650),
        Interval("waiting", 600, 700),
    )
    host, cluster, _ = _lanes(replace(WHOLE, timeline=times))
    assert host.spans == ((0, 600), (700, 1_500)) and cluster.busy == 400
