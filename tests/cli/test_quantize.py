"""``htvm quantize``: a float network and samples become an int8 file that other verbs take."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from htvm.tools.cli.app import main
from tests.quantization.test_float_model import SAMPLES, network, with_nan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "float.onnx").write_bytes(network().SerializeToString())
    np.save(tmp_path / "samples.npy", SAMPLES)
    return tmp_path


def words(folder: Path, data: str = "samples.npy", out: str = "int8.onnx") -> list[str]:
    files = [folder / "float.onnx", "--data", folder / data, "--out", folder / out]
    return ["quantize", *map(str, files)]


def test_the_file_runs_with_an_int8_interface(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["samples"] == len(SAMPLES) and said["kind"] == "quantize"
    target = ["-t", "diana.digital", "--data", str(folder / "samples.npy")]
    assert main(["run", said["file"], *target, "--io", "int8", "--check", "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert ran["equal_to_reference"] and ran["cycles"] > 0


@pytest.mark.parametrize(
    ("data", "out", "words_of_error"),
    [
        ("missing.npy", "int8.onnx", "missing.npy"),
        ("float.onnx", "int8.onnx", "no numpy arrays"),
        ("nan.npy", "int8.onnx", "NaN"),
        ("samples.npy", "int8.tflite", "--out"),
        ("samples.npy", "no/folder/int8.onnx", "--out"),
    ],
)
def test_wrong_values(
    folder: Path, data: str, out: str, words_of_error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(folder / "nan.npy", with_nan())
    before = sorted(folder.rglob("*"))
    assert main(words(folder, data, out)) == 2
    said = capsys.readouterr().err
    assert said.startswith("htvm: error: ") and words_of_error in said
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("text", ["N", "N=", "=1", "N=0", "N=x", "N=-1"])
def test_what_is_no_dimension(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(folder), "--dimension", text]) == 2
    assert "no size of a dimension" in capsys.readouterr().err
