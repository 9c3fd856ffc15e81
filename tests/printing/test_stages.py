"""Printed stages: golden texts of each, what they answer, and that they are no input."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import htvm
from benchmarks.house import convolution
from htvm.compiled import BuildOptions, Compiled
from htvm.errors import ModelError, TargetError
from htvm.pipeline import compile_model
from htvm.tools.cli.app import main
from htvm.tools.printing.stages import STAGES, text_after
from tests.generated.golden import check_golden

NETWORKS = (
    ("zoo:resnet8", "diana"),
    ("zoo:ds_cnn", "siracusa"),
    ("zoo:encoder:1", "snitch_ita"),
    ("zoo:ds_cnn", "cortex_m4"),
)


@functools.lru_cache(maxsize=1)
def _compiled(network: str, target: str) -> Compiled:
    return compile_model(network, target, BuildOptions())


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("printing") / "convolution.tflite"
    path.write_bytes(convolution())
    return path


@pytest.mark.parametrize(
    ("name", "target", "stage"), [(*build, stage) for build in NETWORKS for stage in STAGES]
)
def test_every_stage_reads_as_before(
    name: str, target: str, stage: str, update_golden: bool
) -> None:
    compiled = _compiled(name, target)
    if stage == "import":
        text = htvm.print(compiled.source, after="import")
    else:
        text = text_after(compiled, stage)
    check_golden(f"printed/{compiled.source.name}_{target}/{stage}.txt", text, update_golden)


def test_a_refusal_has_its_reason_and_rule(network: Path) -> None:
    text = htvm.print(network, "diana")
    assert repr(text) == str(text)
    assert "conv2d_0 (conv2d) -> digital\n    digital takes it\n" in text
    reason = "    analog refuses: a weight is 82 (rule: ANALOG-3: The weights are -1, 0 and 1.)\n"
    assert reason in text


def test_the_policy_is_named_where_a_core_would_take_it(network: Path) -> None:
    options = BuildOptions(policy={"conv2d_0": "cpu"})
    assert "conv2d_0 (conv2d) -> cpu: required by the user" in htvm.print(
        network, "diana", "place", options=options
    )
    after = htvm.print(network, "diana", "dispatch", options=options)
    assert "    planned on the CPU by the user: not written in a core's numbers\n" in after


def test_retargeting_shows_the_requantizations_of_both_sides(network: Path) -> None:
    before = htvm.print(network, "diana", "import")
    after = htvm.print(network, "diana", "retarget")
    assert "requant: TfliteRequant(" in before and "requant: Shift(" not in before
    assert "requant: Shift(" in after and "SQNR dB" in after


@pytest.mark.parametrize("ending", ["txt", "tflite", "onnx"])
def test_a_printed_stage_is_no_input(network: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"printed.{ending}"
    path.write_text(htvm.print(network, after="import"), encoding="utf-8")
    with pytest.raises(ModelError, match="a printed stage is no input"):
        htvm.load(path)


def test_an_unknown_stage_names_the_known(network: Path) -> None:
    with pytest.raises(TargetError, match=r"no stage 'dispatched'.*did you mean dispatch\?"):
        htvm.print(network, after="dispatched")


def test_the_verb_prints_the_same(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["print", str(network), "-t", "diana", "--after"]
    assert main([*words, "partition"]) == 0
    assert capsys.readouterr().out == htvm.print(network, "diana", "partition")
    assert main([*words, "import", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"] == "import"
    assert found["lines"] == htvm.print(network, after="import").splitlines()
    assert main([*words, "dispatched"]) == 2
    assert "did you mean dispatch?" in capsys.readouterr().err
