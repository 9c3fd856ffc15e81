"""Networks whose input has no axes: built, run, verified and exported as others are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.tools.cli.app import main
from tests.frontend.flatfile import Graph
from tests.frontend.single import CASES

NETWORKS = ("abs", "logistic", "negated", "relu", "rescale", "unsigned")


def without_axes(name: str) -> Graph:
    """A network of one operator with activations of shape ()."""
    graph = CASES[name](np.random.default_rng([5, len(name)]))
    tensors = [
        replace(tensor, shape=()) if tensor.data is None else tensor for tensor in graph.tensors
    ]
    return replace(graph, tensors=tensors)


@pytest.fixture(params=NETWORKS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / f"{request.param}.tflite"
    found.write_bytes(without_axes(request.param).file())
    return found


@pytest.mark.rotating(4)
@pytest.mark.parametrize("target", ["generic.cpu", "diana"])
def test_it_runs_as_its_reference_and_keeps_the_shape(path: Path, target: str) -> None:
    module = htvm.build(path, target, platform="host")
    (info,) = module.model.inputs
    assert info.shape == ()
    for given in (np.asarray(3, info.dtype), np.dtype(info.dtype).type(3)):
        (found,) = module.run(given).outputs
        (wanted,) = module.reference(given)
        assert found.shape == wanted.shape == () and found == wanted
        assert module.verify(given).equal
    folder = module.export(path.with_suffix(""), np.asarray(3, info.dtype))
    assert htvm.open(folder, trust=True).check()


def test_as_tflite_micro(path: Path) -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")
    from benchmarks.micro import run

    module = htvm.build(path, "generic.cpu", platform="host")
    for value in (-128, -7, 0, 5, 127):
        given = np.asarray(value + 128 if module.model.inputs[0].dtype == "uint8" else value)
        given = given.astype(module.model.inputs[0].dtype)
        (wanted,) = run(path.read_bytes(), [given], 1)
        assert module.run(given).outputs[0] == wanted


def test_random_inputs(path: Path) -> None:
    assert main(["run", str(path), "--target", "generic.cpu", "--input", "random:1"]) == 0
