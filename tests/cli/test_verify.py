"""``htvm verify``: what is printed, and what the exit code says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from htvm.tools.cli.app import main

NETWORK = "zoo:toyadmos"


def test_an_equal_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", NETWORK, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kind"] == "verify" and data["equal"] is True and data["agrees"] is True
    assert data["difference"] is None and len(data["steps"]) == 12
    assert all(step["elements"] > 0 and step["different"] == 0 for step in data["steps"])


def test_a_golden_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "golden.npz"
    np.savez(path, output=np.zeros((1, 640), np.int8))
    assert main(["verify", NETWORK, "--golden", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "toyadmos on diana: equal to the reference" in shown
    assert "golden output: " in shown and "no bug of the build" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nowhere.tflite"], "nowhere.tflite"),
        (["verify", NETWORK, "--target", "nothing"], "nothing"),
        (["verify", NETWORK, "--golden", "nowhere.npz"], "golden 'nowhere.npz'|nowhere.npz"),
        (["verify", NETWORK, "--input", "nowhere.npy"], "nowhere.npy"),
        (["verify", NETWORK, "--schedule", "none"], "none"),
        (["verify"], "MODEL"),
    ],
)
def test_bad_input(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and message.split("|")[-1] in shown.err
    assert "Traceback" not in shown.err


def test_a_golden_of_the_wrong_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "golden.npz"
    np.savez(path, output=np.zeros((1, 64), np.int8))
    assert main(["verify", NETWORK, "--golden", str(path)]) == 2
    assert "shape [1, 64] instead of [1, 640]" in capsys.readouterr().err
