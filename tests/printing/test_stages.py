"""Printed stages: golden texts of each, what they answer, and that they are no input."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import htvm
from benchmarks.house import convolution
from byoc_dory.options import TilingOptions
from htvm.build_options import BuildOptions
from htvm.errors import ModelError, TargetError, TilingError
from htvm.tools.cli.app import main
from htvm.tools.printing.stages import STAGES, Printed, printed_stages
from tests.generated.golden import check_golden

NETWORKS = (
    ("zoo:resnet8", "diana"),
    ("zoo:ds_cnn", "siracusa"),
    ("zoo:encoder:1", "snitch_ita"),
    ("zoo:ds_cnn", "cortex_m4"),
)


@functools.lru_cache(maxsize=1)
def _texts(network: str, target: str) -> dict[str, Printed]:
    return dict(zip(STAGES, printed_stages(network, target), strict=True))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("printing") / "convolution.tflite"
    path.write_bytes(convolution())
    return path


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("name", "target", "stage"), [(*build, stage) for build in NETWORKS for stage in STAGES]
)
def test_every_stage_reads_as_before(
    name: str, target: str, stage: str, update_golden: bool
) -> None:
    text = _texts(name, target)[stage]
    folder = f"{name.removeprefix('zoo:').replace(':', '_')}_{target}"
    check_golden(f"printed/{folder}/{stage}.txt", text, update_golden)


def test_a_refusal_has_its_reason_and_rule(network: Path) -> None:
    text = htvm.print(network, "diana")
    assert repr(text) == str(text)
    assert "conv2d_0 (conv2d) -> digital\n    planned on digital by policy bitwidth\n" in text
    reason = "    analog refuses: a weight is 82 (rule: ANALOG-3: The weights are -1, 0 and 1.)\n"
    assert reason in text


def test_the_policy_is_named_where_a_core_would_take_it(network: Path) -> None:
    options = BuildOptions(policy={"conv2d_0": "cpu"})
    assert "conv2d_0 (conv2d) -> cpu: required by the user" in htvm.print(
        network, "diana", "place", options=options
    )
    after = htvm.print(network, "diana", "dispatch", options=options)
    assert "    planned on cpu by the user: not written in a core's numbers\n" in after


def test_the_choice_of_the_plan_is_beside_the_answers() -> None:
    """What `place` refused is not said to be taken, and a rewritten layer's operators name it."""
    options = BuildOptions(tiling=TilingOptions(l1_budget=2392))
    text = htvm.print("zoo:resnet8", "siracusa", "dispatch", options=options)
    assert "conv2d_3 (conv2d) -> cluster\n    planned on cluster by policy latency (cycles:" in text
    assert ": A tile fits L1.) when the stage place asked\n    cluster takes it" in text
    text = htvm.print("zoo:ds_cnn", "diana", "dispatch")
    assert "conv2d_0_pad (pad) -> cpu; part of conv2d_0, rewritten\n" in text


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


def test_a_build_that_fails_leaves_the_stages_that_it_reached(
    network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tiles do not fit; everything before code generation is there, and can be printed."""
    options = BuildOptions(tiling=TilingOptions(l1_budget=64))
    found = []
    with pytest.raises(TilingError, match="conv2d_0") as failed:
        for text in printed_stages(network, "diana", options=options):
            found.append(text)
    reached = STAGES[: STAGES.index("generate")]
    assert [text.split()[4] for text in found] == list(reached)
    assert found == [htvm.print(network, "diana", stage, options=options) for stage in reached]
    words = ["print", str(network), "-t", "diana", "--l1", "64", "--after", "assemble"]
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == "\n".join(found) + "\nThe stage generate fails.\n"
    assert str(failed.value.what) in said.err
    assert main([*words, "--json"]) == 2
    kept = json.loads(capsys.readouterr().out)
    assert (kept["after"], kept["failed"]) == ("partition", "generate")
    assert kept["error"] == str(failed.value)
    assert kept["lines"] == said.out.splitlines()[:-2]
