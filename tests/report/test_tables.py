"""Reports from plain values: what must be said is said, in text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from byoc_dory.verdict import OperatorVerdict
from htvm import zoo
from htvm.result import Causes
from htvm.tools.report.compare import (
    Agreement,
    Comparison,
    ComparisonRow,
    comparison_data,
    published,
)
from htvm.tools.report.data import L1Use, L2Use, LayerRow, SqnrRow, Summary, Unit
from htvm.tools.report.explain import Explanation, explain_data, explain_screen, explain_text
from htvm.tools.report.layers import l1_text, memory_text, report_csv, units_text
from htvm.tools.report.save import report_json
from htvm.tools.report.table import Column, Table, text
from htvm.tools.report.types import Report
from htvm.tools.report.verdicts import StepCost, VerdictRow

CAUSES = Causes(
    array=20_000, weights=1_000, trigger=500, dma=6_000, dma_alone=3_000, host=4_000,
    host_alone=1_500, waiting=22_000,
)  # fmt: skip
WHOLE = Causes(
    array=20_000, weights=1_000, trigger=500, dma=6_000, dma_alone=3_000, host=238_000,
    host_alone=235_500, waiting=22_000, starved=2_500,
)  # fmt: skip
MEMORY = L2Use(50_000, 78_000, 49_152, 4_096, 512_000, 49_152)
REPORT = Report(
    Summary(
        "resnet8",
        "diana.digital",
        "rv32",
        260_000_000,
        MEMORY,
        cycles=260_000,
        units=(Unit("host", 238_000, "drivers", 130_000), Unit("digital", 65_000, "", 65_000)),
        notes=("a note",),
        causes=WHOLE,
    ),
    (
        LayerRow(
            "conv2d_0", "conv2d", "digital", "3x32x32 -> 16x32x32, 3x3", 442_368, 26_000, 25_000,
            "K16", 40_000, "conv_a", CAUSES, 4, True, "input",
        ),
        LayerRow("softmax_0", "softmax", "cpu", "12", 0, 5_200),
    ),
    (SqnrRow("conv2d_0", 30.25),),
    24.5,
)  # fmt: skip
COMPARISON = Comparison(
    "resnet8",
    12_500_000,
    260_000_000,
    (
        ComparisonRow("plain", "diana.cpu", 50_000_000, MEMORY, Agreement(8, 8, 0), exact=True),
        ComparisonRow(
            "digital", "diana.digital", 250_000, MEMORY, Agreement(8, 3, 4, 7, 25.3), exact=False
        ),
        ComparisonRow("big", "diana.cpu", failure="does not fit L2"),
    ),
    "plain",
    published(12_501_760),
    ("no SIMD",),
)


def lines_with(document: str, word: str) -> list[str]:
    return [line for line in document.splitlines() if word in line]


def test_report_says_cycles_time_and_clock() -> None:
    head = str(REPORT).splitlines()[0]
    assert "260,000 cycles = 1.00 ms at 260 MHz" in head
    assert "resnet8 for diana.digital, platform rv32" in head


def test_report_rows_and_shares() -> None:
    (row,) = lines_with(str(REPORT), "3x32x32")
    for cell in ("442,368", "26,000", "25,000", "10.0", "17.01", "K16"):
        assert cell in row.split()
    (unit,) = lines_with(str(REPORT), "drivers")
    assert "50.0" in unit.split()
    assert "a note" in str(REPORT)


def test_report_says_what_the_cycles_were_spent_on() -> None:
    row, whole = lines_with(str(REPORT), "1,000 ")
    spent = ["20,000", "1,000", "500", "3,000"]
    much = ["1,500", "6,000", "22,000", "4", "x2", "input"]
    assert row.split() == ["conv2d_0", "26,000", *spent, *much]
    assert whole.split() == ["the", "whole", "run", "260,000", *spent, "235,500", "6,000", "22,000"]
    overlap = "\n".join(
        lines_with(str(REPORT), "cycles for an accelerator") + lines_with(str(REPORT), "DMA: ")
    )
    assert "in 3,000 of its 6,000 cycles an accelerator works" in overlap
    assert "waits 19,500 cycles for an accelerator, 2,500 for transfers" in overlap
    data = json.loads(report_json(REPORT))
    assert data["layers"][0]["causes"]["dma_alone"] == 3_000
    assert data["layers"][1]["causes"] is None and data["summary"]["causes"]["host"] == 238_000
    rows = list(csv.DictReader(io.StringIO(report_csv(REPORT))))
    assert (rows[0]["weights"], rows[0]["waiting"], rows[1]["waiting"]) == ("1000", "22000", "")


def test_a_total_is_not_a_sum_of_some_predictions() -> None:
    (total,) = lines_with(str(REPORT), "total ")
    assert "25,000" not in total
    every = replace(REPORT, layers=REPORT.layers[:1])
    assert "25,000" in lines_with(str(every), "total ")[0]


def test_report_says_how_l2_is_used_and_how_good_the_plan_is() -> None:
    document = str(REPORT)
    assert "181,248 of 512,000 B" in document
    assert "no plan is smaller" in document
    worse = replace(MEMORY, arena_bound=49_000)
    gap = str(replace(REPORT, summary=replace(REPORT.summary, memory=worse)))
    assert "takes 152 B more" in gap and "no plan is smaller" not in gap


def test_report_says_what_retargeting_cost_only_if_it_happened() -> None:
    assert "30.2" in str(REPORT) and "24.5" in str(REPORT)
    assert "SQNR" not in str(replace(REPORT, sqnr=(), output_sqnr_db=None))
    rows = [replace(REPORT.sqnr[0], layer=f"layer_{i}", sqnr_db=40.0 - i) for i in range(5)]
    said = str(replace(REPORT, sqnr=tuple(rows), measured_on="24 inputs", same_decision=0.875))
    assert "measured on 24 inputs" in said
    assert "worst: layer_4 (36.0 dB), layer_3 (37.0 dB), layer_2 (38.0 dB)" in said
    assert "same decision as the source: 87.5 %" in said


def test_report_before_a_run_has_no_cycles() -> None:
    summary = replace(REPORT.summary, cycles=None, units=(), causes=None)
    layers = tuple(replace(row, cycles=None, causes=None) for row in REPORT.layers)
    document = str(replace(REPORT, summary=summary, layers=layers))
    assert "no cycles" in document
    assert "260,000" not in document and "26,000" not in document


def test_report_json_and_csv_carry_all_rows() -> None:
    data = json.loads(report_json(REPORT))
    assert data["summary"]["latency_ms"] == 1.0
    assert data["summary"]["memory"]["total"] == 181_248
    assert [row["name"] for row in data["layers"]] == ["conv2d_0", "softmax_0"]
    rows = list(csv.DictReader(io.StringIO(report_csv(REPORT))))
    assert rows[0]["cycles"] == "26000" and rows[1]["predicted_cycles"] == ""


def test_comparison_names_baseline_clock_and_published_figures() -> None:
    document = str(COMPARISON)
    assert "times at 260 MHz" in document
    assert "speed-up: over plain, one core, 4.00 cycles per MAC" in document
    (row,) = lines_with(document, "digital ")[:1]
    assert "200.0x" in row.split() and "0.96" in row.split() and "NO" in row.split()
    (said,) = lines_with(document, "top-1 ")
    assert said.startswith("  digital  ")
    assert "top-1 7 of 8, differs by up to 4 quantized steps, SQNR 25.3 dB" in said
    cpu, digital = lines_with(document, "published: ")
    assert "134.11" in cpu and "1.19" in digital and "112.7x" in digital
    assert "Table I" in document and "no SIMD" in document
    assert "does not fit L2" in document


def test_comparison_without_published_figures_claims_none() -> None:
    document = str(replace(COMPARISON, published=()))
    assert "published" not in document


def test_no_speed_up_over_a_baseline_that_did_not_run() -> None:
    rows = (replace(COMPARISON.rows[0], cycles=None, failure="does not fit L2"),)
    broken = replace(COMPARISON, rows=rows + COMPARISON.rows[1:], published=())
    assert broken.speed_up(broken.rows[1]) is None
    assert "200.0x" not in str(broken)


def test_comparison_as_data() -> None:
    data = json.loads(json.dumps(comparison_data(COMPARISON)))
    rows = data["rows"]
    assert [row["speed_up"] for row in rows] == [1.0, 200.0, None]
    assert [row["memory"] and row["memory"]["total"] for row in rows] == [181_248, 181_248, None]
    parts = ("code", "constants", "arena", "stack", "io")
    assert sum(rows[0]["memory"][part] for part in parts) == 181_248
    assert data["published"][1]["latency_ms"] == 1.19
    assert "Table I" in data["published"][1]["source"]


def test_every_network_of_the_zoo_has_published_figures() -> None:
    for name in zoo.names():
        cpu, digital = published(zoo.sketch(name).macs)
        assert digital.latency_ms is not None and "Table I" in digital.source
        assert (cpu.latency_ms is None) == (name == "mobilenet_v1")
        assert bool(cpu.remark) == (name == "ds_cnn")


def test_published_figures_are_of_that_network_and_soc() -> None:
    assert published(12_501_760, "diana.cpu")
    assert not published(12_501_760, "generic.cpu")
    assert not published(714_000_000)
    assert published(7_490_176)[0].latency_ms is None
    assert "out of memory" in str(replace(COMPARISON, published=published(7_490_176)))


TAKEN = OperatorVerdict("digital", True, cycles=1234)
REFUSED = OperatorVerdict("digital", False, "stride is 3x3", "Stride is 1x1 or 2x2.")
UNKNOWN = OperatorVerdict("digital", False, "no pattern")
VERDICTS = Explanation(
    (
        VerdictRow("conv2d_0", "conv2d", "digital", (TAKEN,), 55_555),
        VerdictRow("conv2d_1", "conv2d", "cpu", (REFUSED,)),
        VerdictRow("softmax_0", "softmax", "cpu", (UNKNOWN,)),
    )
)


def test_explain_says_where_why_and_at_what_cost() -> None:
    document = explain_text(VERDICTS)
    assert "3 operators: 1 on digital, 2 on cpu" in document
    (row,) = lines_with(document, "conv2d_0")
    assert "yes, 1,234 cycles" in row and "55,555" in row
    assert "no: stride is 3x3" in lines_with(document, "conv2d_1")[0]
    assert "  digital: Stride is 1x1 or 2x2. 1 operator, 0 cycles" in document.splitlines()


COSTS = replace(
    VERDICTS,
    rows=(
        replace(VERDICTS.rows[0], cycles=900, basis="predicted"),
        replace(VERDICTS.rows[1], cycles=90, basis="measured"),
        replace(VERDICTS.rows[2], cycles=10, basis="estimated"),
        VerdictRow("reshape_0", "reshape", "cpu", (UNKNOWN,)),
    ),
    steps=(StepCost(("conv2d_0",), "digital", "layer", 900, "predicted"),),
    total_cycles=1000,
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_explanation_fits_its_width_and_says_what_numbers_are(width: int) -> None:
    lines = explain_text(COSTS, width).splitlines()
    assert max(map(len, lines)) <= width
    document = "\n".join(lines)
    assert " 900  90.0" in document and " 90*   9.0" in document and " 10?   1.0" in document
    assert "measured" in document and "estimated" in document
    assert not lines_with(document, "reshape_0") and "not shown: 1 without" in document
    assert "stride is 3x3" in document and "Stride is 1x1" not in document
    assert "reshape_0" in explain_text(COSTS)


def test_explanation_as_data() -> None:
    rows = json.loads(json.dumps(explain_data(VERDICTS)))["operators"]
    assert rows[1]["offers"][0]["rule"] == "Stride is 1x1 or 2x2."
    assert [row["offers"][0]["accepted"] for row in rows] == [True, False, False]


def test_tables_are_ascii_aligned_and_drop_empty_columns() -> None:
    drawn = text(
        Table(
            (Column("a"), Column("n", number=True), Column("empty")),
            (("x", "1", ""), ("longer", "1,000", "")),
        )
    )
    assert drawn.isascii()
    head, rule, first, second = drawn.splitlines()
    assert "empty" not in head and set(rule) == {"-"}
    assert first.endswith("1") and len(first) == len(second) == len(head)


def test_long_names_of_a_source_are_shortened_in_text_only() -> None:
    name = "model/batch_normalization_2/FusedBatchNormV3;model/conv2d_2/Conv2D"
    layers = (replace(REPORT.layers[0], source=name),)
    report = replace(REPORT, layers=layers, sqnr=(replace(REPORT.sqnr[0], source=name),))
    assert name not in str(report) and "FusedBatchNormV3" in str(report)
    assert name in report_json(report) and name in report_csv(report)


def test_an_interactive_session_shows_the_answer() -> None:
    assert repr(COMPARISON) == str(COMPARISON)
    assert repr(VERDICTS) == explain_screen(VERDICTS, 80)


def test_inputs_and_outputs_are_part_of_what_l2_holds() -> None:
    memory = L2Use(100, 200, 300, 40, io=5)
    assert memory.total == 645
    assert memory_text(memory).startswith("L2: 645 B = ")
    assert "inputs and outputs 5 B" in memory_text(memory)


def test_l1_is_told_apart_by_what_stays_there() -> None:
    joint = L1Use("region_0", 12, 256_000, 49_152, 49_152, ("a", "b"), 105_000, 122_000, 0.0)
    alone = L1Use("region_1", 1, 256_000, 80, 80, (), 675, 675, 0.0)
    assert l1_text((joint, alone, replace(alone, peak=96))).splitlines() == [
        "L1 in region_0: 49,152 of 256,000 B; 2 of 12 results stay there, 105,000 cycles predicted "
        "instead of 122,000",
        "L1 elsewhere: 96 of 256,000 B, nothing stays between layers",
    ]
    assert l1_text((alone,)) == "L1: 80 of 256,000 B, nothing stays between layers"
    assert l1_text((replace(joint, gap=0.021),)).endswith(", at most 2.1 % from the best")
    assert l1_text(()) == ""


def test_what_a_unit_is_charged_with_is_said_in_two_lines() -> None:
    head = units_text(REPORT.summary).split("\n")[:3]
    assert [line.split(" ")[0] for line in head] == ["units", "if", ""]
