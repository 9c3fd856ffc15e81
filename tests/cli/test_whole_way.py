"""The commands on a real build: what is printed, what is written, what is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.tools.cli.app import main
from htvm.tools.cli.demo import demo

ROOT = Path(__file__).parents[2]
NETWORK = "zoo:toyadmos"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that must succeed prints."""
    code = main(arguments)
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return shown.out


def test_run_checks_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.npz"
    shown = printed(
        capsys, "run", NETWORK, "--target", "diana", "--input", "random:3", "--check", "--json",
        "--out", str(path),
    )  # fmt: skip
    data = json.loads(shown)
    assert data["equal_to_reference"] is True
    assert data["cycles"] > 0 and data["latency_ms"] == data["cycles"] / 260_000
    assert sum(layer["cycles"] for layer in data["layers"]) <= data["cycles"]
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["output"], np.array(data["outputs"]["output"]))


def test_run_on_host_gives_the_same_outputs_without_cycles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = [
        json.loads(printed(capsys, "run", NETWORK, "--platform", platform, "--json"))
        for platform in ("rv32", "host")
    ]
    assert both[0]["outputs"] == both[1]["outputs"]
    assert both[1]["cycles"] is None


def test_run_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "run", NETWORK, "--all")
    assert "cycles = " in shown and "dense_9" in shown and "L2: " in shown
    assert "output: int8[1, 640]" in shown


def test_run_prints_one_screen_first(capsys: pytest.CaptureFixture[str]) -> None:
    screen, output = printed(capsys, "run", NETWORK).split("\n\noutput: ")
    assert "inferences/s" in screen and "speed-up" in screen and "L2 " in screen
    assert max(map(len, screen.splitlines())) <= 80 and len(screen.splitlines()) <= 20
    assert output.startswith("int8[1, 640]")


def test_inputs_of_the_wrong_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.int8))
    assert main(["run", NETWORK, "--input", str(tmp_path / "x.npy")]) == 2
    shown = capsys.readouterr()
    assert "[1, 640]" in shown.err and "Traceback" not in shown.err


@pytest.mark.slow
def test_explain_covers_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "explain", "zoo:resnet8", "--json"))["operators"]
    placed = {row["layer"]: row["placed"] for row in rows}
    assert sum(place == "digital" for place in placed.values()) == 13
    assert {name for name, place in placed.items() if place == "cpu"} == {
        "average_pool_0",
        "reshape_0",
        "softmax_0",
    }
    for row in rows:
        assert row["offers"] and all(o["accepted"] or o["reason"] for o in row["offers"])


def test_compile_writes_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "project"
    shown = printed(capsys, "compile", NETWORK, "--out", str(folder))
    assert str(folder) in shown
    assert (folder / "Makefile").is_file() and list(folder.rglob("toyadmos.h"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["project"]


def test_compile_names_functions_as_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["compile", NETWORK, "--target", "generic.cpu", "--out", str(tmp_path / "out")]
    assert main([*given, "--name", "key-words"]) == 2
    assert "give for example key_words" in capsys.readouterr().err and not [*tmp_path.iterdir()]
    printed(capsys, *given, "--name", "kws")
    (header,) = tmp_path.rglob("kws.h")
    assert "int32_t kws_run(" in header.read_text(encoding="utf-8")
    assert not [*tmp_path.rglob("toyadmos*")]


def test_compile_stores_a_given_sample_with_its_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = zoo.named(NETWORK)
    (info,) = model.inputs
    sample = np.random.default_rng(5).integers(-128, 128, info.shape).astype(info.dtype)
    np.save(tmp_path / "sample.npy", sample)
    given = ["--input", str(tmp_path / "sample.npy"), "--out", str(tmp_path / "out")]
    printed(capsys, "compile", NETWORK, "--target", "generic.cpu", *given)
    (stored,), (found,) = htvm.open(tmp_path / "out").golden
    np.testing.assert_array_equal(stored, sample)
    wanted = htvm.build(model, "generic.cpu", "host").run(sample).outputs[0]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("array", "kind", "said"),
    [
        (np.zeros((1, 639), np.int8), [], "shape [1, 639] instead of [1, 640]"),
        (np.zeros((1, 640), np.float32), [], "dtype float32 instead of int8"),
        (np.zeros((1, 640), np.int8), ["--as", "mlf"], "the Model Library Format has no sample"),
    ],
)  # fmt: skip
def test_a_sample_that_does_not_fit_is_named_before_anything_is_built(
    array: np.ndarray, kind: list[str], said: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(htvm, "build", None)
    np.save(tmp_path / "sample.npy", array)
    given = ["--input", str(tmp_path / "sample.npy"), "--out", str(tmp_path / "out"), *kind]
    target = "cortex_m4" if kind else "generic.cpu"
    assert main(["compile", NETWORK, "--target", target, *given]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_compile_into_a_foreign_folder_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    for out in (tmp_path, tmp_path / "mine.txt", tmp_path / "mine.txt" / "below"):
        # It is refused before the model is opened.
        for network in (NETWORK, "absent.tflite"):
            assert main(["compile", network, "--out", str(out)]) == 2
            assert "mine.txt" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_interrupting_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "htvm", "compile", "zoo:resnet8", "-v"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "new" / "project")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    # The first line of the log: it is at work, and far from done.
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode in (130, -signal.SIGINT), first + rest  # see test_verbs.py
    assert "interrupted" in rest and "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


def test_compare_states_baseline_and_published(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(printed(capsys, "compare", NETWORK, "--count", "2", "--json"))
    assert [row["exact"] for row in data["rows"]] == [True] * len(data["rows"])
    assert {row["target"] for row in data["rows"]} == {"diana.cpu", "diana"}
    base = next(row for row in data["rows"] if row["configuration"] == data["baseline"])
    for row in data["rows"]:
        assert row["speed_up"] == base["cycles"] / row["cycles"]
        # The zoo is in the accelerator's own scheme: nothing is lost on the way.
        assert row["agreement"] | {"top1": None} == {
            "inputs": 2, "equal": 2, "max_difference": 0, "top1": None, "sqnr_db": None,
        }  # fmt: skip
    assert [entry["latency_ms"] for entry in data["published"]] == [4.70, 0.36]


def test_the_demo_shows_the_whole_job(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main([NETWORK], standalone_mode=False)
    shown = capsys.readouterr().out
    for words in ("published: ", "speed-up: over", "exact: ", "operators: ", "yes", "done in"):
        assert words in shown
    assert "NO" not in shown.split()


def test_zoo_models_are_what_the_command_line_opens() -> None:
    from htvm.tools.cli.arguments import open_model

    opened, built = open_model("zoo:toyadmos@1"), zoo.build("toyadmos", 1)
    assert opened.inputs == built.inputs and opened.outputs == built.outputs
