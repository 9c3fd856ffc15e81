"""diff, zoo, cache, doctor, conditions, and what is said of names that do not exist."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htvm import zoo
from htvm.errors import InputError
from htvm.tools.cli.app import main
from htvm.tools.report import save
from htvm.tools.report.difference import difference_of, figures_of, read_condition
from tests.report.whole import WHOLE

SLOWER = replace(
    WHOLE,
    summary=replace(WHOLE.summary, cycles=1_600),
    layers=(replace(WHOLE.layers[0], cycles=1_100, accelerator="cpu"), *WHOLE.layers[1:-1]),
    maps=(),
)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "before.json", tmp_path / "after.json"
    for path, report in zip(paths, (WHOLE, SLOWER), strict=True):
        save(report, path)
    return str(paths[0]), str(paths[1])


def test_a_difference_names_what_changed() -> None:
    found = difference_of(WHOLE, SLOWER)
    figures = {change.name: change for change in found.figures}
    assert (figures["cycles"].before, figures["cycles"].after) == (1_500, 1_600)
    assert figures["memory_bytes"].difference == 0 and "sqnr_db" in figures
    notes = {change.name: change.note for change in found.steps}
    first, last = WHOLE.layers[0], WHOLE.layers[-1]
    assert notes[first.label] == f"{first.accelerator} -> cpu"
    assert notes[last.label] == "gone"
    assert len(found.steps) == 2
    assert "no step changed" in str(difference_of(WHOLE, WHOLE))
    assert [change.note for change in difference_of(SLOWER, WHOLE).steps][-1] in ("new", *notes)


def test_diff_prints_and_fails_if_asked(
    saved: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *saved]) == 0
    shown = capsys.readouterr().out
    assert "+100" in shown and "+6.7" in shown
    assert main(["diff", *saved, "--fail-if", "cycles > 7%"]) == 0
    assert main(["diff", *saved, "--fail-if", "cycles > 2%"]) == 1
    assert "cycles > 2%: cycles is 1,600" in capsys.readouterr().err
    assert main(["diff", *saved, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "diff"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "none.json", "none.json"], "cannot read the report"),
        (["run", "zoo:digits", "--fail-if", "cycls > 3"], "did you mean cycles?"),
        (["run", "zoo:digits", "--fail-if", "cycles"], "is no condition"),
        (["run", "zoo:digits", "--fail-if", "cycles > 1.2.3"], "is no condition"),
        (["run", "zoo:digts"], "did you mean digits?"),
        (["run", "zoo:digits", "-t", "dianna"], "did you mean diana?"),
        (["explian", "zoo:digits"], "did you mean explain?"),
        (["zzzz"], "no verb 'zzzz'"),
    ],
)
def test_what_does_not_exist(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@given(value=st.integers(-(10**9), 10**9), limit=st.integers(-(10**9), 10**9))
def test_conditions_compare_as_numbers_do(value: int, limit: int) -> None:
    for sign, holds in ((">", value > limit), (">=", value >= limit),
                        ("<", value < limit), ("<=", value <= limit)):  # fmt: skip
        condition = read_condition(f"cycles {sign} {limit:,}")
        assert condition.holds({"cycles": value}) is holds


def test_conditions_on_what_a_report_lacks() -> None:
    figures = figures_of(WHOLE)
    with pytest.raises(InputError, match="no instructions"):
        read_condition("instructions > 1").holds(figures)
    with pytest.raises(InputError, match="earlier report"):
        read_condition("cycles > 2%").holds(figures)


def test_the_zoo_lists_what_can_be_opened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "--json"]) == 0
    listed = {entry["name"] for entry in json.loads(capsys.readouterr().out)["networks"]}
    assert {*zoo.names(), *zoo.TRAINED, "encoder", "microllama", "mobilenet_v1_224"} == listed
    assert main(["zoo"]) == 0
    assert "zoo:digits " in capsys.readouterr().out


def test_the_cache_is_measured_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "htvm" / "builds" / "one").mkdir(parents=True)
    (tmp_path / "htvm" / "builds" / "one" / "model").write_bytes(bytes(2_000_000))
    (tmp_path / "other").write_text("kept")
    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == {"builds": 2_000_000}
    assert main(["cache"]) == 0
    assert "2.0" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "2.0 MB removed" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "htvm").iterdir()] == []
    assert (tmp_path / "other").read_text() == "kept"


def test_the_doctor_finds_nothing_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["C compiler"]["state"] == "ok" and checks["TVM"]["state"] == "ok"


def test_the_doctor_names_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("htvm.tools.cli.verbs.doctor._compiler", lambda: open("/none/such").read())
    assert main(["doctor"]) == 1
    assert "FAULT" in capsys.readouterr().out
