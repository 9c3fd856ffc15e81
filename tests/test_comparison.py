"""The arithmetic of comparisons: agreement with the source model, and the baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htvm
from byoc_dory.errors import PolicyError, TargetError
from byoc_dory.soc.registry import resolve
from htvm.model import TensorInfo
from htvm.tools.comparison import (
    _configurations,
    _fastest_on_cpu,
    _macs,
    _notes,
    agreement,
    compare,
)
from htvm.tools.report.compare import (
    WHY_FASTER,
    Comparison,
    ComparisonRow,
    agreement_words,
    comparison_text,
    published,
)
from htvm.tools.report.data import L2Use

SCORES = TensorInfo("scores", (1, 3), "int8", 0.5, -128)


def scores(*values: int) -> list[np.ndarray]:
    return [np.array([values], np.int8)]


def test_equal_outputs_agree_without_noise() -> None:
    same = [scores(1, 2, 3), scores(-128, 127, 0)]
    found = agreement([SCORES], same, same)
    assert (found.inputs, found.equal, found.top1, found.max_difference) == (2, 2, 2, 0)
    assert found.sqnr_db is None


def test_sqnr_is_in_real_values_and_the_difference_does_not_wrap() -> None:
    wanted, made = [scores(-128, 127, -128)], [scores(-128, 127, 127)]
    found = agreement([SCORES], wanted, made)
    # Real values: wanted (0, 127.5, 0), made (0, 127.5, 127.5).
    assert found.sqnr_db == pytest.approx(0.0)
    assert (found.equal, found.max_difference) == (0, 255)
    # The first of equals is the decision.
    assert found.top1 == 1


def test_sqnr_is_taken_over_all_inputs() -> None:
    wanted = [scores(-118, -128, -128), scores(-128, -128, -128)]
    made = [scores(-118, -128, -128), scores(-127, -128, -128)]
    found = agreement([SCORES], wanted, made)
    assert found.sqnr_db == pytest.approx(20.0)
    assert (found.inputs, found.equal, found.max_difference) == (2, 1, 1)


def test_reals_are_compared_as_they_are() -> None:
    info = TensorInfo("logits", (1, 2), "float32")
    wanted, made = [[np.array([[0.25, 0.75]], np.float32)]], [[np.array([[0.5, 0.75]], np.float32)]]
    found = agreement([info], wanted, made)
    assert (found.equal, found.top1, found.max_difference) == (0, 1, 0.25)
    assert found.sqnr_db == pytest.approx(10.0)
    assert "differs by up to 0.25, SQNR" in agreement_words(found)


@pytest.mark.parametrize("shape", [(1, 1), (1, 640), (1, 4, 4), (3,)])
def test_only_a_vector_of_classes_has_a_decision(shape: tuple[int, ...]) -> None:
    info = TensorInfo("out", shape, "int8", 1.0, 0)
    one = [[np.ones(shape, np.int8)]]
    assert agreement([info], one, one).top1 is None


def row(name: str, target: str, cycles: int | None) -> ComparisonRow:
    return ComparisonRow(name, target, cycles=cycles)


def test_bad_choices_are_refused_before_anything_is_opened() -> None:
    nowhere = "no such file.tflite"
    with pytest.raises(PolicyError, match="no policy 'fast'"):
        compare(nowhere, policy="fast")
    with pytest.raises(TargetError, match="no schedule 'fast'"):
        compare(nowhere, schedule="fast")  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="unknown target 'fast'"):
        compare(nowhere, "fast")


def test_the_baseline_is_the_fastest_on_the_cpu() -> None:
    accelerated = row("soc", "soc", 1)
    plain, ours = row("plain", "soc.cpu", 90), row("ours", "soc.cpu", 40)
    assert _fastest_on_cpu([plain, ours, accelerated], "soc.cpu") == "ours"
    assert _fastest_on_cpu([plain, row("ours", "soc.cpu", 91), accelerated], "soc.cpu") == "plain"
    assert _fastest_on_cpu([row("plain", "soc.cpu", None), ours], "soc.cpu") == "ours"
    assert _fastest_on_cpu([row("plain", "soc.cpu", None), accelerated], "soc.cpu") == "plain"


def test_emulated_cores_are_compared_by_instructions() -> None:
    plain = replace(row("plain", "soc.cpu", None), instructions=90)
    ours = replace(row("ours", "soc.cpu", None), instructions=40)
    accelerated = replace(row("soc", "soc", None), instructions=7, accelerator_cycles=1_234)
    assert _fastest_on_cpu([plain, ours, accelerated], "soc.cpu") == "ours"
    text = comparison_text(Comparison("net", 10, 10**8, (plain, ours), "ours"))
    assert "instructions: of the core" in text and "accelerator" not in text
    text = comparison_text(Comparison("net", 10, 10**8, (plain, ours, accelerated), "ours"))
    lines = [line.split() for line in text.splitlines()]
    assert ["plain", "90"] in lines and ["soc", "7", "1,234"] in lines
    assert "predicted: the two are no sum" in " ".join(text.split())
    assert "speed-up" not in text


def test_instructions_are_drawn_where_no_cycles_are_counted() -> None:
    plain = replace(row("plain", "soc.cpu", None), instructions=9_000)
    beside = replace(row("soc", "soc", None), instructions=70, accelerator_cycles=1_234)
    (axes,) = Comparison("net", 10, 10**8, (plain, beside), "plain").plot_latency().axes
    assert [patch.get_width() for patch in axes.patches] == [9_000, 70]
    written = [said.get_text() for said in axes.texts]
    assert "9,000" in written and "70, and 1,234 cycles of accelerators" in written
    assert axes.get_xlabel().startswith("instructions")


def test_a_reason_for_being_faster_is_given_only_where_ours_is() -> None:
    place, beside = resolve("diana"), published(12_501_760)
    # Published: 1.19 ms, which are 309,400 cycles at 260 MHz.
    assert WHY_FASTER in _notes(row("diana", "diana", 309_000), place, beside)
    assert WHY_FASTER not in _notes(row("diana", "diana", 310_000), place, beside)
    assert WHY_FASTER not in _notes(row("diana", "diana", None), place, beside)
    assert WHY_FASTER not in _notes(row("diana", "diana", 309_000), place, ())
    assert WHY_FASTER not in _notes(row("cpu", "diana.cpu", 1), resolve("diana.cpu"), beside)
    mixed = published(12_501_760, "diana.mixed")
    assert WHY_FASTER not in _notes(row("both", "diana.mixed", 1), resolve("diana.mixed"), mixed)


def test_each_target_stands_beside_its_own_column() -> None:
    def figures(target: str) -> list[tuple[str, float | None, int | None]]:
        return [
            (entry.configuration, entry.latency_ms, entry.size_kb)
            for entry in published(264_192, target)
        ]

    cpu = ("TVM on the CPU", 4.70, 287)
    assert figures("diana") == figures("diana.digital")
    assert figures("diana") == [cpu, ("HTVM, CPU + digital core", 0.36, 315)]
    assert figures("diana.analog") == [cpu, ("HTVM, CPU + analog core", 0.80, 171)]
    assert figures("diana.mixed") == [
        cpu,
        ("HTVM, CPU + both cores, without transfers", 0.49, 274),
    ]


def test_policy_and_schedule_are_part_of_a_configurations_name() -> None:
    assert [entry.name for entry in _configurations("diana", None, None)] == [
        "diana.cpu, plain TVM", "diana.cpu, our schedules", "diana",
    ]  # fmt: skip
    last = _configurations("diana", "latency", "published")[-1]
    assert last.name == "diana, policy latency, schedule published"
    assert _configurations("diana", {"add_0": "cpu"}, None)[-1].name == "diana, the user's policy"


def test_a_cluster_stands_beside_one_core() -> None:
    names = [entry.name for entry in _configurations("siracusa:cores=4", None, None)]
    assert names == [
        "siracusa.cpu:cores=4, plain TVM", "siracusa.cpu:cores=4, our schedules",
        "siracusa.cluster:cores=4", "siracusa:cores=4",
    ]  # fmt: skip
    assert len(_configurations("siracusa.cluster", None, None)) == 3


def test_the_sqnr_is_that_of_the_scores() -> None:
    found = agreement([SCORES], [scores(-128, 127, -128)], [scores(-128, 126, -128)])
    assert "SQNR 33.4 dB before the softmax" in agreement_words(found, 33.4)
    assert "softmax" not in agreement_words(found)


def test_a_comparison_is_drawn_and_fits_a_terminal() -> None:
    rows = (
        ComparisonRow("soc.cpu, our schedules", "soc.cpu", 4_000_000, L2Use(1, 2, 3, 4, 5, 6)),
        replace(row("soc", "soc", 40_000), schedule="overlapped", scores_sqnr_db=30.0),
    )
    found = Comparison("net", 10, 260_000_000, rows, rows[0].configuration, published(264_192))
    (axes,) = found.plot_latency().axes
    assert len(axes.patches) == 4 and axes.get_xscale() == "log"
    assert max(map(len, comparison_text(found, 80).splitlines())) <= 80


def test_macs_count_products_of_two_tensors() -> None:
    model = htvm.zoo.single_head_attention()
    products = [node for node in model.graph.in_order if node.kind == "matmul"]
    assert products and all(node.layer is None for node in products)
    layers = sum(node.layer.macs for node in model.graph.in_order if node.layer is not None)
    # Scores of 128 x 128 over 64, and 128 x 64 over 128.
    assert _macs(model) - layers == sum(
        np.prod(node.output_shape) * node.input_shapes[0][-1] for node in products
    )
