"""``htvm report``: one run in several forms, saved reports, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import htvm
from htvm.tools.cli import arguments
from htvm.tools.cli.app import main
from tests.report.whole import WHOLE

MODEL = "zoo:toyadmos"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused here is refused before a model is opened."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was opened")

    monkeypatch.setattr(arguments, "open_model", refuse)
    monkeypatch.setattr(htvm, "build", refuse)


def test_one_run_in_several_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a.html", "a.txt", "a.csv", "a.json", "a.perfetto.json"]
    outs = [word for name in names for word in ("-o", name)]
    assert main(["report", MODEL, "-t", "diana.digital", *outs]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and [f"written: {name}" in shown.err for name in names] == [True] * 5
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    report = htvm.report.load("a.json")
    cycles = report.summary.cycles
    assert cycles is not None and report.energy is not None and report.recipe is not None
    assert report.recipe.command == (
        f"htvm report {MODEL} --target diana.digital --rewrites on --platform rv32 "
        "--input random --out report.html"
    )
    page = Path("a.html").read_text()
    assert all(row.name in page for row in report.layers) and f"{cycles:,}" in page
    assert Path("a.txt").read_text() == f"{report}\n"
    trace = json.loads(Path("a.perfetto.json").read_text())
    ends = [
        e["args"]["start"] + e["args"]["cycles"] for e in trace["traceEvents"] if e["ph"] == "X"
    ]
    assert max(ends) <= cycles
    # Power times time, by hand: 24.96 mW at 260 MHz.
    on_core = sum(row.cycles or 0 for row in report.layers if row.accelerator == "digital"
                  and row.kind == "layer")  # fmt: skip
    assert report.energy.microjoules == pytest.approx(24.96 * on_core / 260e3)
    assert report.energy.cycles == on_core
    # And the saved one again, in another form.
    assert main(["report", "a.json", "--format", "html", "-o", "b"]) == 0
    assert Path("b").read_text() == page


def test_a_platform_without_cycles_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", MODEL, "--platform", "host", "-o", "a.html", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["summary"]["cycles"] is None and data["energy"] is None
    assert "no cycles: this platform counts none" in Path("a.html").read_text()


@pytest.mark.usefixtures("no_build")
def test_a_saved_report_is_printed_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    WHOLE.save("saved.json")
    assert main(["report", "saved.json", "--wide"]) == 0
    assert capsys.readouterr().out == f"{WHOLE}\n"
    assert main(["report", "saved.json", "--all"]) == 0
    assert capsys.readouterr().out.endswith("\n\nall columns: --wide\n")
    assert main(["report", "saved.json"]) == 0
    assert capsys.readouterr().out.startswith(WHOLE.screen().splitlines()[0])


@pytest.mark.usefixtures("no_build")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([MODEL, "-o", "a.pdf"], "end the name with .html"),
        ([MODEL, "-o", "a.html", "-o", "b"], "end the name with .html"),
        ([MODEL, "--format", "png"], "add --out FILE"),
        ([MODEL, "--format", "pdf", "-o", "a"], "Invalid value for '--format'"),
        ([MODEL, "-t", "moon", "-o", "a.html"], "moon"),
        (["saved.json", "-t", "diana"], "--target"),
        (["saved.json", "--platform", "host"], "--platform"),
        (["missing.json"], "cannot read the report"),
        (["newer.json"], "schema 99, this version reads up to 1"),
        (["empty.json"], "this is not JSON"),
        (["saved.json", "-o", "no/a.html"], "cannot write the report"),
    ],
)
def test_what_is_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WHOLE.save("saved.json")
    Path("newer.json").write_text('{"schema": 99, "kind": "report"}')
    Path("empty.json").touch()
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", *arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and shown.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_the_next_command_is_for_the_same_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", MODEL, "--target", "diana.digital", "--platform", "host"]) == 0
    shown = capsys.readouterr().out
    assert f"page: htvm report {MODEL} -t diana.digital -o report.html" in shown
