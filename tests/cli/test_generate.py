"""``htvm generate``: tokens, speed and energy; bad input before anything is built."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import htvm
from htvm import zoo
from htvm.tools.cli.app import main
from tests.models_onnx import LLAMAS, onnx_path

SMALL = ("zoo:microllama:2", "--target", "siracusa.cluster")


def test_it_writes_the_tokens_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--prompt", "7,1", "--steps", "3", "--temperature", "1.5", "--seed", "4"]
    wanted = htvm.generate(zoo.microllama(2), [7, 1], 3, temperature=1.5, seed=4)
    assert main(["generate", *SMALL, "--platform", "host", *asked]) == 0
    shown = capsys.readouterr().out
    assert f"prompt: 7 1\ntokens: {' '.join(map(str, wanted.tokens))}\n" in shown
    assert "tokens a second" not in shown, "the host platform has no cycles"


@pytest.mark.slow
def test_a_file_writes_at_its_real_speed(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(onnx_path(LLAMAS[0]))
    assert main(["generate", path, "--target", "siracusa", "--steps", "2"]) == 0
    shown = capsys.readouterr().out
    assert "tokens a second at 360 MHz (simulated)" in shown and "uJ a token" in shown
    assert "embedding and output are drawn" in shown
    assert main(["generate", path, "--target", "siracusa", "--steps", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tables"] == "drawn" and len(data["tokens"]) == len(data["cycles"]) == 2
    assert 1_000 < data["tokens_per_second"] < 10_000


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--prompt", "1,256"], "the vocabulary has no token 256"),
        (["--prompt", "1,x"], "'x' is no token id"),
        (["--prompt", ""], "'' is no token id"),
        (["--prompt", "1,2,3"], "a prompt of 3 tokens, the cache has 2 positions"),
        (["--steps", "0"], "steps cannot be 0"),
        (["--steps", "-1"], "steps cannot be -1"),
        (["--steps", "513"], "there are rotations for 512 positions"),
        (["--seed", "-1"], "seed cannot be -1"),
        (["--seed", str(2**64)], "seed cannot be 18446744073709551616"),
        (["--temperature", "-1"], "the temperature cannot be -1.0"),
        (["--temperature", "nan"], "the temperature cannot be nan"),
    ],
)
def test_bad_input(asked: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *SMALL, *asked]) == 2
    error = capsys.readouterr().err
    assert message in " ".join(error.split()) and "Traceback" not in error


def test_other_networks_write_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "zoo:toyadmos", "--target", "siracusa"]) == 2
    assert "1 inputs: it is no decoding step" in capsys.readouterr().err


def test_a_file_whose_shape_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "network.onnx"
    shutil.copy(onnx_path(LLAMAS[3]), path)  # without inputs.npz, from which sizes are taken
    assert main(["generate", str(path), "--target", "siracusa"]) == 2
    assert "dimension 2 is declared as 0" in capsys.readouterr().err
