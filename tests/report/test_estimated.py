"""Estimates of programs that an accelerator's own compiler planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from htvm.tools.report.estimated import accesses_text, estimates_table, slowest_lines
from htvm.tools.report.loading import load
from htvm.tools.report.parts import Estimate, MemoryAccess
from htvm.tools.report.screen import screen_text
from tests.report.whole import WHOLE

ESTIMATED = replace(
    WHOLE,
    estimates=(
        Estimate("dense_<0>", "npu", 100, (("flash", 100),)),
        Estimate("conv2d_1", "npu", 900, (("MACs", 600), ("flash", 300)), (("flash", 550),)),
    ),
    accesses=(MemoryAccess("flash", 650, 5_200, 0), MemoryAccess("SRAM", 80, 640, 320)),
)


def test_each_layer_has_what_binds_it() -> None:
    table = estimates_table(ESTIMATED)
    titles = [column.title for column in table.columns[3:]]
    assert titles == ["bound by", "flash", "MACs", "flash accessed"]
    assert table.rows[1] == ("conv2d_1", "900", "90.0", "MACs", "300", "600", "550")
    assert table.footer == ("total", "1,000", "", "", "400", "600", "550")
    assert slowest_lines(ESTIMATED)[1] == "  conv2d_1   90.0 %  bound by 67 % MACs, 33 % flash"
    said = accesses_text(ESTIMATED).splitlines()
    assert said[0] == "flash: 5,200 B read, 0 B written in 650 cycles, 65.0 % of all"


def test_reports_show_and_keep_them(tmp_path: Path) -> None:
    assert "conv2d_1   90.0 %" in screen_text(ESTIMATED)
    assert "bound by" in str(ESTIMATED) and "bound by" not in str(WHOLE)
    ESTIMATED.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Estimated cycles by cause" in page and "dense_&lt;0&gt;" in page
    ESTIMATED.save(tmp_path / "report.json")
    assert load(tmp_path / "report.json") == ESTIMATED


def test_reports_without_them_say_nothing() -> None:
    assert slowest_lines(WHOLE) == [] and accesses_text(WHOLE) == ""
    assert "estimated for" not in str(WHOLE)
