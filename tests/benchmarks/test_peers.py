"""The survey of other compilers: its page, its data, and what a peer may do wrong."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import survey as surveying
from benchmarks.peers.answer import Answer, Case, Peer, Survey
from benchmarks.peers.cases import cases
from benchmarks.peers.environments import InstallError, python_of
from benchmarks.peers.known import PEERS
from benchmarks.peers.survey import PROBES, surveyed
from benchmarks.peers.table import page
from benchmarks.tflm.compilers import GCC
from tests.tools import tool

ROOT = Path(__file__).parents[2]
CASE = Case("IC", "model.tflite", "golden.npz", "TFLite Micro")
OURS = Answer(True, equal=80, elements=80, largest=0.0, code_bytes=900, ram_bytes=70)
OTHER = Answer(True, equal=63, elements=80, largest=39.0, ram_bytes=60, reason="a | b")


def test_every_peer_has_a_probe_and_every_probe_a_peer() -> None:
    probes = {path.stem.removesuffix("_probe") for path in PROBES.glob("*_probe.py")}
    assert probes == {peer.name for peer in PEERS if peer.takes}
    assert PEERS[0].name == "htvm"


def test_the_page_marks_where_ours_is_worse() -> None:
    surveys = [
        Survey("htvm", ("htvm 1",), answers={"IC": OURS}),
        Survey("litert", ("ai-edge-litert 2",), answers={"IC": OTHER}),
        Survey("vela", failure="no wheel for this machine"),
    ]
    text = page(PEERS, [CASE], surveys)
    lines = text.split("## IC")[1].splitlines()
    _, ours, other = [line for line in lines if line.startswith("| ")]
    assert "80 of 80 | 0 | 900 |  | 70 * |" in ours
    assert "63 of 80 | 39 |  |  | 60 |" in other and other.endswith("a / b |")
    assert "not installed: no wheel for this machine" in text


def test_a_survey_survives_json() -> None:
    before = Survey("litert", ("ai-edge-litert 2",), answers={"IC": OTHER})
    assert Survey.of(json.loads(json.dumps(before.data()))) == before


def test_the_committed_page_is_of_the_committed_data() -> None:
    data = json.loads((ROOT / "docs" / "results" / "peers.json").read_text())
    surveys = [Survey.of(each) for each in data]
    names = list(surveys[0].answers)
    kinds = {name: "onnx" if name == "digits" else "tflite" for name in names}
    oracles = {"onnx": "onnxruntime", "tflite": "TFLite Micro"}
    asked = [Case(name, f"x.{kinds[name]}", "", oracles[kinds[name]]) for name in names]
    assert page(PEERS, asked, surveys) == (ROOT / "docs" / "peers.md").read_text()
    assert {survey.peer for survey in surveys} == {peer.name for peer in PEERS}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('print(\'{"reads": true, "equal": 3}\')', None),
        ("print('no JSON')", "ended with 0"),
        ("raise SystemExit('gone')", "ended with 1: gone"),
        ("import time; time.sleep(60)", "no end after 1 s"),
    ],
)
def test_whatever_a_probe_does_is_an_answer(
    program: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_probe.py").write_text(program)
    monkeypatch.setattr(surveying, "PROBES", tmp_path)
    if "sleep" in program:
        monkeypatch.setattr(surveying, "_LIMIT_SECONDS", 1)
    peer = Peer("mine", "Mine", (), ("tflite",), "")
    (answer,) = surveyed(peer, [CASE], tmp_path, lambda line: None).answers.values()
    assert answer.reads == (said is None) and (said or "") in answer.reason


def test_files_a_peer_does_not_take_are_not_given_to_it(tmp_path: Path) -> None:
    peer = Peer("mine", "Mine", (), ("onnx",), "")
    (answer,) = surveyed(peer, [CASE], tmp_path, lambda line: None).answers.values()
    assert answer == Answer(False, "reads ONNX")


SOURCE = """
void twice(const signed char *x, signed char *y);
void twice(const signed char *x, signed char *y)
{
    for (int i = 0; i < 4; i++) {
        y[i] = (signed char)(2 * x[i]);
    }
}
"""


def test_c_of_a_peer_runs_on_a_core(tmp_path: Path) -> None:
    """Instructions and memory are of its function; a wrong output and a refusal are said."""
    tool(GCC)
    (tmp_path / "network.c").write_text(SOURCE)
    given = np.array([[1, -2, 3, 4]], np.int8)
    np.savez(tmp_path / "golden.npz", inputs=given, outputs=2 * given)
    case = replace(CASE, golden=str(tmp_path / "golden.npz"))
    answered, peer = replace(OTHER, reason="", entry="twice"), replace(PEERS[2], name="mine")
    found = surveying._with_core(answered, peer, case, tmp_path)
    assert found.core_instructions is not None and 15 < found.core_instructions < 60
    assert found.core_flash is not None and 0 < found.core_flash < 1000
    assert found.core_ram is not None and 32 <= found.core_ram < 100 and found.reason == ""
    np.savez(tmp_path / "golden.npz", inputs=given, outputs=given)
    found = surveying._with_core(answered, peer, case, tmp_path)
    assert found.reason == "its output on the M4 differs"
    (tmp_path / "network.c").write_text("no C")
    found = surveying._with_core(answered, peer, case, tmp_path)
    assert found.reason.startswith("not run on the M4: the C compiler failed")
    assert found.core_instructions is None


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    peer = replace(PEERS[2], packages=(), program="no-such-program")
    found = surveyed(peer, [CASE], tmp_path, lambda line: None)
    assert found.failure == "there is no program no-such-program"


def test_what_cannot_be_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(peer: Peer, folder: Path) -> Path:
        raise InstallError("ERROR: no matching distribution")

    peer = replace(PEERS[2], packages=("nothing==9",))
    monkeypatch.setattr(surveying, "python_of", fails)
    found = surveyed(peer, [CASE], tmp_path, lambda line: None)
    assert found.failure == "ERROR: no matching distribution" and not found.answers
    assert python_of(replace(peer, packages=()), tmp_path) == Path(sys.executable)


def test_the_network_for_digits_is_made_with_its_golden(tmp_path: Path) -> None:
    (case,) = cases(tmp_path / "absent", tmp_path)
    with np.load(case.golden) as golden:
        assert golden["inputs"].shape == (8, 1, 1, 8, 8) and golden["outputs"].shape == (8, 1, 10)
    assert case.kind == "onnx" and Path(case.path).is_file()
