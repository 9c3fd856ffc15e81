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

WRONG = "not a program of torch: it is no archive that torch.export.save wrote"
PROGRAM = "a program of torch is not read from its file"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An archive with the parts that torch.export.save writes."""
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr("net/models/model.json", "{}")
    return path


@pytest.mark.parametrize(
    "verb", [["run"], ["fit"], ["quantize", "--data", "x.npy", "--out", "y.onnx"]]
)
def test_a_program_is_answered_with_both_ways(
    program: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, str(program)]) == 2
    said = capsys.readouterr().err
    assert PROGRAM in said and "torch.export.load(" in said and "torch.onnx.export(" in said


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"weights"])
def test_a_wrong_program_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(content)
    for read in (htvm.load, lambda p: htvm.quantize(p, "generic.cpu", np.zeros((1, 1)))):
        with pytest.raises(ModelError, match=WRONG):
            read(path)


def test_another_archive_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ModelError, match=WRONG):
        htvm.load(path)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is none"):
        htvm.load(tmp_path / "net.pt2")


@pytest.mark.parametrize("ending", [".pt", ".pth", ".PT"])
def test_pickled_files_are_not_opened(ending: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="pickled Python objects is not read"):
        htvm.load(tmp_path / f"net{ending}")


def test_a_program_as_an_object_goes_through_quantize() -> None:
    kind = type("ExportedProgram", (), {"__module__": "torch.export.exported_program"})
    with pytest.raises(ModelError, match=r"htvm.quantize\(program, target, data\)"):
        htvm.build(kind(), "generic.cpu")


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "htvm", "targets", "list", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert '"generic.cpu"' in ran.stdout
