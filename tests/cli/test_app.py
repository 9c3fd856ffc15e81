"""Exit codes and messages of the console command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.progress import CallbackProgress, Progress
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import main
from htvm.tools.cli.output import SCHEMA

ROOT = Path(__file__).parents[2]


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, as the console script is."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def test_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    shown = capsys.readouterr().out
    for name in htvm.targets():
        assert any(line.split()[0] == name for line in shown.splitlines())
    assert main(["targets", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == SCHEMA and printed["kind"] == "targets"
    listed = printed["targets"]
    assert [entry["target"] for entry in listed] == list(htvm.targets())
    assert all(entry["l2_bytes"] > 0 for entry in listed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "zoo:alexnet"], ["alexnet", "resnet8"]),
        (["explain", "zoo:resnet8:binary"], ["binary", "8-bit, ternary, mixed"]),
        (["run", "zoo:toyadmos", "--target", "mars"], ["mars", "diana.digital", "generic.cpu"]),
        (["run", "zoo:toyadmos", "--input", "absent.npz"], ["absent.npz"]),
        (["compare", "zoo:toyadmos", "--input", "random:x"], ["seed 'x'"]),
        (["run", "zoo:toyadmos", "--input", "random:" + "9" * 5000], ["seed '999", "18 digits"]),
        (["explain", "zoo:toyadmos@" + "9" * 5000], ["seed '999", "18 digits"]),
    ],
)
def test_what_the_user_can_mend_is_one_message_and_exit_code_2(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("htvm: error: ") and shown.err.count("\n") == 1
    assert "Traceback" not in shown.err
    for word in words:
        assert word in shown.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_for_which_there_is_no_space_is_exit_code_2() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "htvm", "targets"], stdout=full,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert done.returncode == 2
    assert "error: the output cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("arguments", [["run"], ["fly"], ["compile", "zoo:toyadmos"]])
def test_usage_errors_are_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "Usage:" in capsys.readouterr().err


def test_interrupted_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("htvm.tools.cli.arguments.open_model", interrupt)
    assert main(["explain", "zoo:toyadmos"]) == 130
    shown = capsys.readouterr()
    assert "interrupted" in shown.err and shown.out == ""


SWALLOWED = """
import os, signal, sys, htvm.tools.cli.app as app, htvm.tools.cli.arguments as arguments
from htvm.errors import ModelError
def broken(*_):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        while True: pass
    except KeyboardInterrupt:
        raise ModelError("the importer failed")
arguments.open_model = broken
sys.argv = ["htvm", "explain", "m"]
sys.exit(app.main())
"""

IMPORTING = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "htvm.tools.cli.app": raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from htvm.tools.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("code", [SWALLOWED, IMPORTING], ids=["swallowed", "importing"])
def test_interrupts_that_come_out_as_something_else(code: str) -> None:
    done = python(code)
    assert done.returncode == 130
    assert done.stderr == "htvm: interrupted\n" and done.stdout == ""


DEFECT = """
import sys, htvm.tools.cli.app as app, htvm.tools.cli.arguments as arguments
def broken(*_): raise IndexError("a defect")
arguments.open_model = broken
sys.argv = ["htvm", *sys.argv[1:]]
sys.exit(app.main())
"""


def test_a_defect_is_not_hidden_but_spares_the_traceback() -> None:
    quiet = python(DEFECT, "explain", "m")
    assert quiet.returncode == 1
    assert "IndexError: a defect" in quiet.stderr and "-v" in quiet.stderr
    assert "Traceback" not in quiet.stderr
    loud = python(DEFECT, "explain", "m", "-v")
    assert loud.returncode == 1 and "Traceback" in loud.stderr


def test_the_command_starts_without_the_compiler() -> None:
    code = (
        "import sys; from htvm.__main__ import main; main(['targets']); "
        "raise SystemExit('tvm' in sys.modules)"
    )
    assert python(code).returncode == 0


def test_progress_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as progress, progress.stage("something"):
        assert type(progress) is Progress
    assert capsys.readouterr().err == ""


def test_progress_shows_itself_on_a_terminal_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("htvm.progress_bar._PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    import time

    with shown_progress() as progress:
        assert isinstance(progress, CallbackProgress)
        with progress.stage("outer"), progress.stage("tiling"):
            time.sleep(0.3)
    assert "outer: tiling" in capsys.readouterr().err


def test_output_files_are_whole_or_absent(tmp_path: Path) -> None:
    from htvm.tools.cli.output import save_arrays

    path = tmp_path / "results"
    save_arrays(path, {"a/b": np.arange(3)})
    with np.load(path) as found:
        np.testing.assert_array_equal(found["a/b"], np.arange(3))
    with pytest.raises(htvm.errors.ExportError, match="absent"):
        save_arrays(tmp_path / "absent" / "results", {"a": np.arange(3)})
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]
    for name, words in (("results/below", "results"), ("", "not a file"), ("x" * 300, "too long")):
        with pytest.raises(htvm.errors.ExportError, match=words):
            save_arrays(tmp_path / name, {"a": np.arange(3)})
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]


def test_output_files_replace_neither_links_nor_devices(tmp_path: Path) -> None:
    from htvm.tools.cli.output import save_arrays

    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    save_arrays(link, {"a": np.arange(3)})
    assert link.is_symlink() and target.is_file()
    os.mkfifo(pipe)
    with pytest.raises(htvm.errors.ExportError, match="this is not a file"):
        save_arrays(pipe, {"a": np.arange(3)})
    assert pipe.is_fifo()
