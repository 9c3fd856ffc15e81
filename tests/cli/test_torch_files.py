"""What torch writes is answered with what can be done with it, before anything is built."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.errors import ModelError
from htvm.tools.cli import main
from tests.frontend.torch_archives import small

WRONG = "not a program of torch|ends too early"
PROGRAM = "a network in reals is not read from a program's file"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An archive with the parts that torch.export.save writes."""
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr("net/models/model.json", "{}")
    return path


def test_quantizing_a_program_is_answered_with_both_ways(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantize", "--data", "x.npy", "--out", "y.onnx", str(program)]) == 2
    said = capsys.readouterr().err
    assert PROGRAM in said and "torch.export.load(" in said and "torch.onnx.export(" in said


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"weights"])
def test_a_wrong_program_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=WRONG):
        htvm.load(path)
    with pytest.raises(ModelError, match=PROGRAM):
        htvm.quantize(path, "generic.cpu", np.zeros((1, 1)))


def test_a_quantized_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(small().file())
    assert main(["run", str(path), "--target", "generic.cpu", "--platform", "host"]) == 0
    assert "net on generic.cpu" in capsys.readouterr().out


def test_another_archive_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ModelError, match=WRONG):
        htvm.load(path)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the file cannot be read"):
        htvm.load(tmp_path / "net.pt2")


@pytest.mark.parametrize("ending", [".pt", ".pth", ".PT"])
def test_pickled_files_are_not_opened(ending: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="pickled Python objects is not read"):
        htvm.load(tmp_path / f"net{ending}")


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "htvm", "targets", "list", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert '"generic.cpu"' in ran.stdout
