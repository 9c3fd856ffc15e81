"""The first screen of a report: what is said first, and that it fits a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byoc_dory.verdict import OperatorVerdict
from htvm.result import Causes
from htvm.tools.report.data import L2Use, LayerRow
from htvm.tools.report.explain import Explanation, explain_screen, explain_text
from htvm.tools.report.html.page import report_html
from htvm.tools.report.screen import reason_of, screen_text, slowest_group, speed_up_of
from htvm.tools.report.verdicts import Improvement, StepCost, VerdictRow

from .whole import WHOLE, deep

HOST = Causes(0, 0, 0, 0, 0, 2_000, 2_000, 0)
REFUSED = OperatorVerdict("digital", False, "the kernel is 10x4, larger than 7x7", "at most 7x7")
TAKEN = OperatorVerdict("digital", True, cycles=100)
ADVICE = Improvement(
    ("conv2d_9",), "replace the 10x4 kernel by 7x6", 900, 1_000, 100, "cpu", "digital"
)
CPU = LayerRow(
    "conv2d_9", "conv2d", "cpu", macs=50_000, cycles=2_000, causes=HOST, kind="cpu", start=1_500
)
FILLED = replace(
    WHOLE,
    summary=replace(WHOLE.summary, cycles=3_500),
    layers=(*WHOLE.layers, CPU),
    graph=(),
    verdicts=(
        VerdictRow("conv2d_0", "conv2d", "digital", (TAKEN,), 8_000),
        VerdictRow("conv2d_9", "conv2d", "cpu", (REFUSED,), 2_500),
    ),
    advice=(ADVICE,),
)


def test_the_screen_says_first_what_a_newcomer_asks() -> None:
    screen = screen_text(FILLED, 100, "more: --all")
    assert screen.startswith(
        "tiny on diana: 0.01 ms, 74,286 inferences/s (3,500 cycles at 260 MHz)"
    )
    for said in (
        "3.0x over one CPU core (10,500 cycles, estimated)",
        "83.7 % of the MACs, in 28.6 % of the cycles",
        "SQNR 27.2 dB, up to 7 steps off the source, same decision 96.0 %",
        "conv2d_9",
        "CPU, not digital: the kernel is 10x4, larger than 7x7",
        "advice: conv2d_9: replace the 10x4 kernel by 7x6: -900 cycles (predicted)",
    ):
        assert said in screen
    assert screen.endswith("\n\nmore: --all")
    assert len(screen.splitlines()) <= 16


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "report", [WHOLE, FILLED, deep(300, 5, 4)], ids=["whole", "filled", "deep"]
)
def test_no_line_is_wider_than_the_terminal(report: object, width: int) -> None:
    lines = screen_text(report, width, "x" * 300).splitlines()  # type: ignore[arg-type]
    assert max(map(len, lines)) <= max(width, 60)
    assert len(lines) <= 20


def test_a_core_whose_instructions_are_counted_is_told_as_much() -> None:
    memory = L2Use(3_000, 7_000, 500, 300, limit=1_000, io=200, flash_limit=20_000)
    summary = replace(
        WHOLE.summary, target="cortex_m4", cycles=None, instructions=4_000, memory=memory,
        clock_hz=100_000_000, estimated_cycles=(5_000, 6_000),
    )  # fmt: skip
    layers = tuple(
        LayerRow(name, "dense", "cpu", macs=macs, kind="cpu", instructions=count)
        for name, macs, count in (("dense_0", 1_000, 1_000), ("dense_1", 2_000, 3_000))
    )
    advice = (Improvement(("a", "b", "c"), "less", 9, 10, 1, "cpu", "cpu", counted="instructions"),)
    report = replace(
        WHOLE, summary=summary, layers=layers, verdicts=(), advice=advice, l1=(), timeline=(),
        maps=(), energy=None,
    )  # fmt: skip
    screen = screen_text(report)
    assert screen.startswith("tiny on cortex_m4: 4,000 instructions (emulated: no cycles)\n")
    for said in (
        "0.05 to 0.06 ms at 100 MHz (core's manual), about 16,667 inferences/s",
        "flash 10,000 of 20,000 B, 50.0 %; RAM 1,000 of 1,000 B, 100.0 %",
        "  dense_1  75.0 %  CPU: 1.50 instructions per MAC\n",
        "  advice: a and 2 more: less: -9 instructions (predicted)",
    ):
        assert said in screen
    page = report_html(report)
    for said in ("Where the instructions go", "0.05 to 0.06 ms", "flash fits", ">1.50<"):
        assert said in page


def test_a_headline_is_never_cut() -> None:
    summary = replace(FILLED.summary, network="a_network_with_a_long_name")
    first, second, *_ = screen_text(replace(FILLED, summary=summary), 80).splitlines()
    assert first.endswith(" inferences/s") and second == "    (3,500 cycles at 260 MHz)"


def test_a_speed_up_that_cannot_be_estimated_is_measured() -> None:
    unknown = replace(FILLED.verdicts[1], cpu_cycles=None)
    screen = screen_text(replace(FILLED, verdicts=(FILLED.verdicts[0], unknown)))
    assert "speed-up     htvm compare measures it (no estimate for conv2d)" in screen


def test_a_build_that_has_not_run_says_so() -> None:
    summary = replace(WHOLE.summary, cycles=None)
    rows = tuple(replace(row, cycles=None, causes=None) for row in WHOLE.layers)
    screen = screen_text(replace(WHOLE, summary=summary, layers=rows))
    assert screen.startswith("tiny on diana: built, not run yet\n")


def test_an_explanation_says_whether_its_cycles_are_predicted() -> None:
    def first(basis: str) -> str:
        steps = (StepCost(("conv2d_9",), "digital", "layer", 10_000, basis),)
        found = Explanation(FILLED.verdicts, (), 10_000, steps)
        return explain_screen(found).splitlines()[0]

    assert first("predicted").endswith("; 10,000 cycles (predicted)")
    assert first("measured").endswith("; 10,000 cycles")


def test_without_cycles_nothing_is_said_of_them() -> None:
    summary = replace(WHOLE.summary, cycles=None, platform="host")
    layers = tuple(replace(row, cycles=None, causes=None) for row in WHOLE.layers)
    screen = screen_text(replace(FILLED, summary=summary, layers=layers))
    assert "no cycles, this platform counts none" in screen
    assert "slowest" not in screen and "speed-up" not in screen and "inferences/s" not in screen
    assert "L2 " in screen


def test_a_step_is_explained_by_who_refused_it_or_by_what_it_does() -> None:
    assert reason_of(CPU, FILLED.verdicts) == "CPU, not digital: " + REFUSED.reason
    assert reason_of(replace(CPU, name="a + conv2d_9"), FILLED.verdicts).endswith(REFUSED.reason)
    able = (VerdictRow("conv2d_9", "conv2d", "cpu", (TAKEN,)),)
    assert reason_of(CPU, able) == "CPU, though digital could: the policy chose so"
    assert reason_of(CPU, ()) == "CPU: 0.04 cycles per MAC"
    assert reason_of(replace(CPU, macs=0), ()) == "CPU"
    assert reason_of(replace(CPU, kind="prologue"), ()).startswith("CPU: converts the input")
    causes = Causes(60, 0, 30, 0, 0, 10, 10, 0)
    there = replace(CPU, accelerator="digital", kind="layer", causes=causes)
    assert reason_of(there, ()) == "digital: 60 % computing, 30 % starting the core"


def test_a_speed_up_needs_an_estimate_of_every_operator_and_an_accelerator() -> None:
    found = speed_up_of(FILLED)
    assert found is not None and found.baseline == 10_500 and found.times == 3.0
    unknown = replace(FILLED.verdicts[1], cpu_cycles=None)
    assert speed_up_of(replace(FILLED, verdicts=(FILLED.verdicts[0], unknown))) is None
    assert speed_up_of(replace(FILLED, verdicts=FILLED.verdicts[1:])) is None
    assert speed_up_of(replace(FILLED, verdicts=())) is None


def test_the_kind_of_layer_that_is_out_of_proportion_is_named() -> None:
    def rows(*values: tuple[str, int, int]) -> list[LayerRow]:
        return [
            LayerRow(f"{op}_{i}", op, "digital", macs=macs, cycles=cycles)
            for i, (op, macs, cycles) in enumerate(values)
        ]

    proportionate = rows(("conv2d", 50, 50), ("conv2d", 50, 50))
    assert slowest_group(proportionate, 100) is None
    single = rows(("depthwise", 10, 80), ("conv2d", 90, 20))
    assert slowest_group(single, 100) is None
    second = rows(("conv2d", 0, 0), ("depthwise", 10, 80))[1]
    group = slowest_group([*single, second], 180)
    assert group is not None and (group.op, group.layers) == ("depthwise", 2)
    assert round(group.cycles, 2) == 0.89 and round(group.macs, 2) == 0.18
    assert slowest_group(rows(("softmax", 0, 9), ("softmax", 0, 9)), 18) is None
    parts = [
        LayerRow(f"depthwise_0{part}", "depthwise", "digital", macs=5, cycles=40, part=part)
        for part in (".r0", ".r1")
    ]
    conv2d = single[1]
    assert slowest_group([conv2d, *parts], 100) is None
    assert slowest_group([conv2d, *parts, second], 180) == replace(group, layers=2)


def test_the_page_has_reasons_and_advice() -> None:
    page = report_html(FILLED)
    assert "CPU, not digital: the kernel is 10x4, larger than 7x7" in page
    assert "replace the 10x4 kernel by 7x6: -900 cycles (predicted)" in page
    assert "3.0x" in page and "over one CPU core" in page


def test_an_interactive_session_shows_the_first_screen() -> None:
    assert repr(FILLED) == screen_text(FILLED)
    assert len(str(FILLED)) > len(repr(FILLED))


def test_the_explanation_fits_a_terminal_without_its_table() -> None:
    found = Explanation(FILLED.verdicts, FILLED.advice, 10_000)
    screen = explain_screen(found, 60)
    assert screen.startswith("2 operators: 1 on digital, 1 on cpu")
    assert "digital: at most 7x7" in screen and "replace the 10x4 kernel by" in screen
    assert max(map(len, screen.splitlines())) <= 60
    assert "est. on one CPU core" in explain_text(found)
    assert explain_screen(Explanation(())) == "no operators"
