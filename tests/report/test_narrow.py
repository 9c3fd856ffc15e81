"""Reports in terminals: what is left out, wrapped and kept where a line is short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byoc_dory.soc.registry import resolve
from htvm.tools.report.fit import Change, Fit, LayerDemand, Level, MemoryItem, fit_text
from htvm.tools.report.html.page import report_html
from htvm.tools.report.layers import report_text
from htvm.tools.report.screen import screen_text
from htvm.tools.report.table import Column, Table, text, wrapped
from htvm.tools.report.target import target_data, target_text
from htvm.tools.report.verdicts import Numbers, Setting

from .whole import WHOLE

TABLE = Table(
    (Column("name"), Column("one", True, spare=True), Column("two", True, spare=True)),
    (("conv2d_0", "1,234", "5,678"),),
)
NAME = "depthwise_convolution_of_the_neck"
FIT = Fit(
    "tiny", "diana", "overlapped",
    (Level("L2", 512_000, 104_767, 104_767, 1_616, (MemoryItem("arena", 33_600, "at " + NAME),)),),
    (
        LayerDemand(
            NAME, "digital", 57_200, 304, 57_200, 256_000, "64,1,25,5", 2_368, 2_368, 2_368, 64_000
        ),
    ),
    changes=(
        Change("give it more memory", "L2", 1, 2, "yes", "planned", "which " * 20),
    ),
)  # fmt: skip


def test_spare_columns_are_left_out_where_a_line_is_short() -> None:
    for width, titles in ((None, 3), (22, 3), (21, 2), (15, 2), (14, 1)):
        assert len(text(TABLE, width).split("\n")[0].split()) == titles


def test_wrapping_keeps_long_words() -> None:
    path = "/" + "a" * 90
    assert wrapped(["see " + path, ""], 40) == ["see", f"    {path}", ""]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_answer_of_fit_is_as_wide_as_the_terminal(width: int) -> None:
    lines = fit_text(FIT, width).split("\n")
    assert max(map(len, lines)) <= width
    assert max(map(len, fit_text(FIT).split("\n"))) > 120
    assert "64,1,25,5" in "\n".join(lines) and "57,200" in "\n".join(lines)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_all_tables_of_a_report_are_as_wide_as_the_terminal(width: int) -> None:
    shown = report_text(WHOLE, width)
    assert max(map(len, shown.split("\n"))) <= width
    for row in WHOLE.layers:
        assert row.name in shown and f"{row.cycles:,}" in shown


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", ["diana", "siracusa", "snitch_ita", "cortex_m4"])
def test_a_target_is_as_wide_as_the_terminal(name: str, width: int) -> None:
    whole, shown = target_text(resolve(name)), target_text(resolve(name), width)
    assert max(map(len, shown.split("\n"))) <= width
    assert all(word in shown for word in set(whole.split()) if not word.startswith("---"))
    rules = " ".join(shown.split())
    for accelerator in target_data(resolve(name))["accelerators"]:
        assert all(rule in rules for rule in accelerator["rules"])


def test_a_large_loss_of_accuracy_is_a_warning() -> None:
    def screen(policy: str, sqnr: float, same: float) -> str:
        summary = replace(WHOLE.summary, policy=policy)
        return screen_text(
            replace(WHOLE, summary=summary, output_sqnr_db=sqnr, same_decision=same), 80
        )

    assert "WARNING" not in screen("latency", 25.0, 0.99)
    assert "--policy bitwidth keeps 8 bits" in screen("latency", 9.0, 0.99)
    assert "--policy bitwidth keeps 8 bits" in screen("latency", 25.0, 0.8)
    warned = screen("bitwidth", 25.0, 0.8)
    assert "--data FILE fits the numbers to your own inputs" in " ".join(warned.split())
    assert max(map(len, warned.split("\n"))) <= 80


def test_a_quicker_setting_is_advised() -> None:
    setting = Setting("--policy latency", 1_000, 800, ("conv2d_1",), Numbers(30.0), Numbers(9.0))
    shown = " ".join(screen_text(replace(WHOLE, settings=(setting,)), 80).split())
    assert "choice: --policy latency: -200 cycles (20.0 %), LOSES ACCURACY: SQNR 9.0 dB" in shown


def test_the_page_has_the_settings() -> None:
    setting = Setting("--policy latency", 1_000, 800, ("conv2d_1",), Numbers(30.0), Numbers(9.0))
    assert "Settings that are quicker" not in report_html(WHOLE)
    page = report_html(replace(WHOLE, settings=(setting,)))
    assert "-200 cycles (20.0 % of all)" in page and "moves conv2d_1" in page


def test_commands_that_do_not_fit_a_line_have_one_each() -> None:
    hint = "all tables: --all   reasons: htvm explain " + "a" * 50
    assert screen_text(WHOLE, 80, hint).endswith(f"all tables: --all\nreasons: {hint[29:]}")
    assert screen_text(WHOLE, 100, hint).endswith(hint)
