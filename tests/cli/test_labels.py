"""``--labels``: the accuracy of source and build on labelled inputs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.aot.entry import model_sources
from htvm.errors import InputError
from htvm.quantization.samples import checked_labels
from htvm.tools.cli.app import main
from htvm.tools.cli.arguments import open_model
from htvm.tools.facts.run import decided, decisions_of
from htvm.tools.report.parts import Decisions
from htvm.tools.zoo.trained import digits_data

COUNT = 24
SCORES = (htvm.TensorInfo("scores", (1, 10), "int8"),)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("digits")
    _, _, images, labels = digits_data()
    np.savez(folder / "samples.npz", image=images[:COUNT])
    np.save(folder / "labels.npy", labels[:COUNT])
    return folder / "samples.npz", folder / "labels.npy"


@pytest.fixture(scope="module")
def digits() -> htvm.Model:
    return htvm.load("zoo:digits")


def test_a_report_has_the_accuracy_of_source_and_build(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, labels = files
    module = htvm.build("zoo:digits", "diana.digital", data=samples, labels=labels)
    found = module.decisions
    assert found is not None and found.samples == COUNT
    images, classes = np.load(samples)["image"], np.load(labels)
    made = [int(module.reference(image[None])[0].argmax()) for image in images]
    assert found.build == int((np.array(made) == classes).sum())
    assert 20 <= found.source <= COUNT and 20 <= found.build <= COUNT and found.same >= 22

    def built(model: htvm.Model, target: str, *_: Any, **__: Any) -> htvm.Module:
        """What the commands would build is what was built above."""
        assert model.labels is not None and list(model.labels) == list(classes)
        assert target == "diana.digital"
        return module

    monkeypatch.setattr("htvm.build", built)
    command = ["--data", str(samples), "--labels", str(labels)]
    accuracy = ["--fail-if", "accuracy < 100.5"]
    assert main(["run", "zoo:digits", "-t", "diana.digital", *command, *accuracy]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"top-1 {100 * found.build / COUNT:.1f} %, the source's" in shown
    assert shown.count(f"on {COUNT} inputs") == 1  # not cut
    assert str(found) in " ".join(str(module.report()).split())
    assert main(["report", "zoo:digits", "-t", "diana.digital", "--json", *command]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["decisions"] == {
        "samples": COUNT, "source": found.source, "build": found.build, "same": found.same
    }  # fmt: skip
    assert "--labels" in data["recipe"]["command"]


def test_wrong_labels_give_another_accuracy_and_the_same_build(files: tuple[Path, Path]) -> None:
    samples, labels = files
    right = htvm.build("zoo:digits", "diana.cpu", platform="host", data=samples, labels=labels)
    shifted = (np.load(labels) + 1) % 10
    wrong = htvm.build("zoo:digits", "diana.cpu", platform="host", data=samples, labels=shifted)
    assert right.decisions is not None and wrong.decisions is not None
    assert right.decisions.accuracy > 0.8 and wrong.decisions.accuracy < 0.2
    assert model_sources(right.compiled.program) == model_sources(wrong.compiled.program)
    # A build for the CPU computes what the source does.
    assert right.decisions.same == COUNT and right.decisions.build == right.decisions.source


def test_labels_go_with_an_int8_interface(
    files: tuple[Path, Path], digits: htvm.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htvm.tools.cli.arguments._open_model", lambda *_: digits)
    model = open_model("zoo:digits", io="int8", data=files[0], labels=files[1])
    assert model.labels is not None and model.inputs[0].dtype == "int8"
    outer = open_model("zoo:digits", data=files[0], labels=files[1])
    found = decisions_of(outer, lambda inputs: [np.eye(10)[3]], np.full(COUNT, 3))
    threes = int((np.load(files[1]) == 3).sum())
    assert found == Decisions(COUNT, threes, threes, COUNT)
    assert decisions_of(replace(outer, labels=None), lambda inputs: inputs) is None
    assert list(decided(outer, lambda inputs: [np.eye(10)[7]])) == [7] * COUNT


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.zeros(3, int), "labels of shape [3] for 4 inputs; option 'labels'; give 4 integers"),
        (np.zeros((2, 2), int), "labels of shape [2, 2] for 4 inputs"),
        (np.int64(1), "labels of shape [] for 4 inputs"),
        (np.zeros(4), "labels of type float64"),
        (np.zeros(4, bool), "labels of type bool"),
        (["a", "b", "c", "d"], "labels of type <U1"),
        ([1, [2], 3, 4], "a list that is no array"),
        ([0, 9, 10, -1], "2 labels are no classes, the first is 10 of input 2; option 'labels'; "
         "the model has 10 classes: give 0 to 9"),
        ("missing.npy", "cannot read labels: No such file"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be(labels: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        checked_labels(labels, 4, SCORES)


def test_labels_may_be_a_column_and_of_any_integer_type() -> None:
    for good in ([[1], [2], [3], [9]], np.array([1, 2, 3, 9], np.uint8), (1, 2, 3, 9)):
        assert list(checked_labels(good, 4, SCORES)) == [1, 2, 3, 9]  # type: ignore[arg-type]


@pytest.mark.parametrize("shapes", [[(1, 4, 4)], [(1, 1)], [(1, 10), (1, 10)]])
def test_labels_are_for_networks_that_choose_a_class(shapes: list[tuple[int, ...]]) -> None:
    outputs = [htvm.TensorInfo(f"out{n}", shape, "int8") for n, shape in enumerate(shapes)]
    with pytest.raises(InputError, match="does not choose a class"):
        checked_labels([0, 1], 2, outputs)


@pytest.mark.parametrize("verb", ["run", "report", "compile", "compare"])
def test_bad_labels_are_refused_before_anything_is_built(
    verb: str,
    tmp_path: Path,
    files: tuple[Path, Path],
    digits: htvm.Model,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("htvm.tools.cli.arguments._open_model", lambda *_: digits)
    for name in ("build", "compare"):
        monkeypatch.setattr(f"htvm.{name}", lambda *_, **__: pytest.fail("built"), raising=False)
    np.save(tmp_path / "short.npy", np.zeros(COUNT - 1, int))
    np.save(tmp_path / "real.npy", np.zeros(COUNT))
    np.save(tmp_path / "beyond.npy", np.full(COUNT, 10))
    np.savez(tmp_path / "two.npz", a=np.zeros(COUNT, int), b=np.zeros(COUNT, int))
    (tmp_path / "text.npy").write_text("no arrays", encoding="utf-8")
    out = ["-o", str(tmp_path / "out")] if verb == "compile" else []
    command = [verb, "zoo:digits", *out, "--data", str(files[0]), "--labels"]
    for name, says in [
        ("short.npy", f"labels of shape [{COUNT - 1}] for {COUNT} inputs"),
        ("real.npy", "labels of type float64"),
        ("beyond.npy", f"{COUNT} labels are no classes"),
        ("two.npz", "2 arrays of labels: a, b"),
        ("text.npy", "cannot read labels"),
        ("missing.npy", "cannot read labels: No such file"),
    ]:
        assert main([*command, str(tmp_path / name)]) == 2, name
        assert says in " ".join(capsys.readouterr().err.split()), name
    assert main([verb, "zoo:digits", *out, "--labels", str(files[1])]) == 2
    assert "add --data FILE with as many inputs" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_labels_without_inputs_are_refused_in_python(files: tuple[Path, Path]) -> None:
    for take in (htvm.build, htvm.compare):
        with pytest.raises(InputError, match="labels without the inputs that they belong to"):
            take("zoo:toyadmos", "diana", labels=[1, 2])  # type: ignore[operator]
