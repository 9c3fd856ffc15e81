"""What all verbs have in common: help with examples, JSON with a schema, bad input, completion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from rich.console import Console

from htvm.progress import CallbackProgress
from htvm.progress_bar import TerminalBar
from htvm.tools.cli.app import app, main
from htvm.tools.cli.output import SCHEMA
from htvm.tools.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
# What a verb needs beside a model.
NEEDED = {"compile": ["--out", "unused"]}


def commands() -> dict[str, click.Command]:
    context = click.Context(app)
    found = {name: app.get_command(context, name) for name in VERBS}
    return {name: command for name, command in found.items() if command is not None}


def takes(command: click.Command, name: str) -> bool:
    return any(name in parameter.opts for parameter in command.params)


MODELS = [name for name, command in commands().items() if takes(command, "model")]


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_and_the_common_options(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown and f"htvm {verb}" in shown
    assert "--json" in shown and "--verbose" in shown


def test_names_of_options_mean_the_same_everywhere() -> None:
    """An option of one name has one type and one default in all verbs."""
    known: dict[str, tuple[str, object]] = {}
    for name in ("target", "policy", "schedule", "platform", "given", "verbose", "as_json"):
        for command in commands().values():
            for parameter in command.params:
                if parameter.name == name:
                    said = (repr(parameter.type), parameter.default)
                    assert known.setdefault(name, said) == said, (name, command.name)


@pytest.mark.parametrize("verb", MODELS)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        ("absent.tflite", "absent.tflite"),
        ("folder", "folder"),
        ("text.tflite", "text.tflite"),
        ("empty.onnx", "empty.onnx"),
        ("model.unknown", "model.unknown"),
        ("zoo:alexnet", "alexnet"),
    ],
)
def test_models_that_are_none(
    verb: str,
    make: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.tflite").write_text("no model at all, but some words")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "model.unknown").write_bytes(b"12345678")
    before = sorted(tmp_path.rglob("*"))
    assert main([verb, make, *NEEDED.get(verb, [])]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and words in shown.err
    assert shown.err.startswith("htvm: error: ") and "Traceback" not in shown.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("verb", MODELS)
def test_targets_policies_and_schedules_that_are_none(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, value in (("--target", "mars"), ("--policy", "best"), ("--schedule", "none")):
        if not takes(commands()[verb], option):
            continue
        assert main([verb, "zoo:toyadmos", option, value, *NEEDED.get(verb, [])]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and value in shown.err and "Traceback" not in shown.err


def test_an_unreadable_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "secret.tflite"
    path.write_bytes(b"x" * 64)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("whoever runs this may read everything")
    assert main(["fit", str(path)]) == 2
    assert "secret.tflite" in capsys.readouterr().err


def test_targets_show(capsys: pytest.CaptureFixture[str]) -> None:
    from byoc_dory.soc.registry import resolve

    assert main(["targets", "show", "diana"]) == 0
    shown = capsys.readouterr().out
    shown = " ".join(shown.split())  # lines are wrapped
    for accelerator in resolve("diana").accelerators:
        assert all(rule in shown for rule in accelerator.statements)
        assert all(name in shown for name in accelerator.objectives)
    for words in ("256,000", "512,000", "260 MHz", "call_cycles", "0x1C000000", "mW"):
        assert words in shown
    assert main(["targets", "show", "diana.analog", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"]) == (SCHEMA, "target")
    (core,) = data["accelerators"]
    assert core["constants"]["adc_bits"] == 6 and core["scheme"] == "ternary"
    assert [power["at_work"] for power in data["powers"]] == [["analog"]]
    assert main(["targets", "show", "diana.cpu"]) == 0
    assert "mW" not in capsys.readouterr().out
    assert main(["targets", "show", "mars"]) == 2
    shown = capsys.readouterr()
    assert "diana.digital" in shown.err and shown.out == ""


def test_targets_alone_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    alone = capsys.readouterr().out
    assert main(["targets", "list"]) == 0
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_HTVM_COMPLETE" in capsys.readouterr().out


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("htvm fi", {"fit"}),
        ("htvm fit zoo:re", {"zoo:resnet8"}),
        ("htvm fit zoo:resnet8 --target diana.d", {"diana.digital"}),
        ("htvm targets sh", {"show"}),
        ("htvm targets show generic", {"generic.cpu"}),
        ("htvm compile zoo:resnet8 --schedule pub", {"published"}),
    ],
)
def test_what_is_completed(words: str, wanted: set[str]) -> None:
    environment = {
        **os.environ,
        "_HTVM_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; sys.argv = ['htvm']; from htvm.tools.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert {line.split(",")[1] for line in done.stdout.split()} == wanted, done.stderr


def test_the_bar_counts_the_outermost_stages_that_are_counted() -> None:
    bar = TerminalBar(Console(file=open(os.devnull, "w", encoding="utf-8")))  # noqa: SIM115
    progress = CallbackProgress(bar.on_event)
    (task,) = bar._display.tasks
    with progress.stage("importing"):
        assert (task.description, task.total) == ("importing", None)
    with progress.stage("second", (2, 3)), progress.stage("inner", (5, 8)):
        assert task.description == "second: inner"
        assert (task.completed, task.total) == (1, 3)
    bar.stop()


def test_no_colour_and_no_bar_off_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "htvm", "fit", "zoo:toyadmos"], cwd=ROOT, capture_output=True,
        check=True,
    )  # fmt: skip
    assert b"\x1b" not in done.stdout and done.stderr == b""


@pytest.mark.rotating(1)
@pytest.mark.parametrize("verb", ["fit", "explain"])
def test_interrupting_is_clean(verb: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "htvm", verb, "zoo:mobilenet_v1", "-v"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr is not None
    first = process.stderr.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=120)
    # Python ends itself by the signal if it arrived while a class of some import was being made (it
    # then ran a text by `exec`); shells say 130 of that, too.
    assert process.returncode in (130, -signal.SIGINT), first + rest
    assert "interrupted" in rest and "Traceback" not in rest and out == ""
    assert list(tmp_path.iterdir()) == []
