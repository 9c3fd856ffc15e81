"""TFLite Micro beside ours: the page, and which sources are compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.tflm.__main__ import main
from benchmarks.tflm.firmware import OPERATORS, Sources, compiled_sources
from benchmarks.tflm.page import FAST, OURS, Row, page

ROOT = Path(__file__).parents[2]


def row(by: str, instructions: int, flash: int, ram: int) -> Row:
    return Row(
        "IC", by, True, instructions, 100, flash, ram, ram, 0, (1, 2), (("conv", instructions),)
    )


def test_the_committed_page_is_of_the_committed_data() -> None:
    data = json.loads((ROOT / "docs" / "results" / "tflm.json").read_text())
    rows = [Row.of(each) for each in data["rows"]]
    assert page(rows, data["versions"]) == (ROOT / "docs" / "tflm.md").read_text()
    assert all(each.equal for each in rows) and len(rows) == 12
    for each in rows:
        assert 0.97 < sum(count for _, count in each.layers) / each.instructions <= 1, each.by


def test_what_is_worse_comes_first() -> None:
    rows = [row(OURS, 90, 61, 101), row(FAST, 100, 100, 100)]
    text = page(rows, ["tflm 1"])
    worse, figures = text.index("101%, **worse**"), text.index("## All figures")
    assert worse < figures
    assert "61 B of flash, with CMSIS-NN 100: 61%, misses the goal" in text
    assert "instructions, with CMSIS-NN" not in text
    assert "Nowhere." in page([row(OURS, 90, 60, 80), rows[1]], [])


def test_kernels_of_cmsis_nn_replace_those_of_the_interpreter(tmp_path: Path) -> None:
    kernels = tmp_path / "tensorflow" / "lite" / "micro" / "kernels"
    nn = tmp_path / "nn" / "Source" / "ConvolutionFunctions"
    for folder in (kernels / "cmsis_nn", nn):
        folder.mkdir(parents=True)
    for name in ("kernel_util.cc", "conv.cc", "conv_common.cc", "conv_test.cc", "cmsis_nn/conv.cc"):
        (kernels / name).touch()
    for name in ("arm_convolve_s8.c", "arm_convolve_f16.c"):
        (nn / name).touch()
    plain = Sources(tmp_path, tmp_path, tmp_path, tmp_path)
    fast = Sources(tmp_path, tmp_path, tmp_path, tmp_path, tmp_path / "nn", tmp_path)

    def names(sources: Sources) -> list[str]:
        _, quick = compiled_sources(sources, ["CONV_2D"])
        return [
            str(path.relative_to(tmp_path)).replace(str(kernels.relative_to(tmp_path)), "k")
            for path in quick
        ]

    assert names(plain) == ["k/kernel_util.cc", "k/conv.cc", "k/conv_common.cc"]
    assert names(fast)[1] == "k/cmsis_nn/conv.cc"
    assert names(fast)[3:] == ["nn/Source/ConvolutionFunctions/arm_convolve_s8.c"]


def test_operators_of_the_files_are_known() -> None:
    with pytest.raises(KeyError):
        compiled_sources(Sources(*[Path()] * 4), ["LSTM"])
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SOFTMAX"} <= set(OPERATORS)


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("tflm", "cmsis-nn", "cmsis", "flatbuffers", "gemmlowp", "ruy")
    given = [f"--{name}={tmp_path}" for name in names[:-1]]
    with pytest.raises(SystemExit):
        main([*given, "--ruy=nowhere@1"])
    assert "--ruy: nowhere is not a folder" in capsys.readouterr().err
