"""The drawn language model: microLlama's operators, activations in range, exact masks."""

from __future__ import annotations

from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import htvm
from htvm import zoo
from htvm.errors import ModelError
from htvm.model import Model
from htvm.tools.cli.arguments import open_model
from htvm.tools.language import LanguageModel
from patterns.reading.read import graph_of
from tests.models_onnx import LLAMAS, onnx_path
from tests.reference.interpreter import interpret

Array: TypeAlias = npt.NDArray[Any]
RNG = np.random.default_rng(23)


def decode(model: LanguageModel, tokens: list[int]) -> tuple[list[Array], list[Array], Any]:
    """Hidden states of all tokens, the last caches, and the tensors of the last step."""
    caches = [np.zeros(info.shape, "int8") for info in model.inputs[3:]]
    hidden = []
    for place, token in enumerate(tokens):
        x = model.embedding[token].reshape(1, 1, -1)
        rotation = model.rotations[place].reshape(1, 1, 4, 4)
        run = interpret(model.module, [x, model.mask(place), rotation, *caches])
        hidden.append(run.outputs[0])
        pairs = zip(caches, run.outputs[1:-1], strict=True)
        caches = [np.concatenate([cache[:, :, 1:], own], 2) for cache, own in pairs]
    return hidden, caches, run.tensors


def kinds(model: Model) -> list[str]:
    """Kinds of operators; conversions of keys and inputs, which files have in some layers only,
    and runs of reshapes, which are names, are left out."""
    found = [node.kind for node in graph_of(model.module).in_order]
    return [
        kind for kind, _ in groupby(each for each in found if each not in ("convert", "reshape"))
    ]


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("file", "ours"),
    [
        (LLAMAS[0], "microllama:1"),
        (LLAMAS[1], "microllama:64"),
        (LLAMAS[3], "microllama:prompt1"),
        (LLAMAS[4], "microllama:prompt"),
    ],
)
def test_it_has_the_files_operators_and_interface(file: str, ours: str) -> None:
    model, drawn = htvm.load(onnx_path(file)), open_model(f"zoo:{ours}")
    if isinstance(drawn, LanguageModel):
        assert kinds(drawn) == [*kinds(drawn.step), "linear_sums"]
        drawn = drawn.step
    assert kinds(model) == kinds(drawn)
    for theirs, own in ((model.inputs, drawn.inputs), (model.outputs, drawn.outputs)):
        assert [(i.shape, i.dtype) for i in theirs] == [(i.shape, i.dtype) for i in own]


def test_activations_use_their_range() -> None:
    tokens = RNG.integers(0, 256, 12).tolist()
    _, _, tensors = decode(zoo.microllama(16), tokens)
    for name, values in tensors.items():
        if values.dtype != np.int8 or name.endswith(("mask", "scores", "weights")):
            continue
        assert np.abs(values.astype(int)).max() > 30, f"{name} uses only part of the range"
        assert np.isin(values, (-128, 127)).mean() < 0.1, f"{name} saturates"
        assert (values == 0).mean() < 0.5, f"{name} dies"
    for layer in range(8):
        weights = tensors[f"layer_{layer}_softmax"]
        assert not weights[..., :5].any(), "positions that do not exist have a weight"
        assert 30 < weights.max(-1).mean() < 200, "attention neither attends nor looks around"


def test_a_prompt_at_once_equals_its_tokens_one_by_one() -> None:
    tokens = RNG.integers(0, 256, 6).tolist()
    step, prompt = zoo.microllama(8, layers=3), zoo.microllama_prompt(6, layers=3)
    hidden, caches, _ = decode(step, tokens)
    mask = np.triu(np.full((6, 6), -128, "int8"), 1)[None]
    x, rotation = step.embedding[tokens][None], step.rotations[:6][None]
    found = interpret(prompt.module, [x, mask, rotation]).outputs
    np.testing.assert_array_equal(found[0], np.concatenate(hidden, axis=1))
    for ours, theirs in zip(found[1:], caches, strict=True):
        np.testing.assert_array_equal(ours, theirs[:, :, 2:])


def test_a_longer_cache_changes_nothing_while_the_tokens_fit() -> None:
    tokens = RNG.integers(0, 256, 5).tolist()
    short, long = (decode(zoo.microllama(length, layers=2), tokens)[0] for length in (5, 19))
    np.testing.assert_array_equal(short, long)


def test_a_seed_is_one_model() -> None:
    first, same, other = (zoo.microllama(2, layers=1, seed=seed) for seed in (0, 0, 1))
    assert first.sha256 == same.sha256 != other.sha256
    np.testing.assert_array_equal(first.output, same.output)
    assert (first.embedding != other.embedding).any() and (first.embedding != first.output).any()


def test_names() -> None:
    assert open_model("zoo:microllama").inputs[3].shape == (1, 16, 64, 4)
    assert open_model("zoo:microllama:3@2").name == "microllama_3"
    assert open_model("zoo:microllama:prompt").inputs[0].shape == (1, 16, 64)
    assert open_model("zoo:microllama:prompt4").inputs[1].shape == (1, 4, 4)
    for text in ("0", "-1", "ternary", "prompt0", "99999", "64prompt"):
        with pytest.raises(ModelError, match=f"no scheme '{text}'.*zoo:microllama:64"):
            open_model(f"zoo:microllama:{text}")
    for name in ("length", "layers", "vocabulary", "positions"):
        with pytest.raises(ModelError, match=f"{name} cannot be 0"):
            zoo.microllama(**{name: 0})
    with pytest.raises(ModelError, match="seed cannot be -1"):
        zoo.microllama(seed=-1)
    with pytest.raises(ModelError, match=r"tokens cannot be 1\.5"):
        zoo.microllama_prompt(1.5)  # type: ignore[arg-type]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", ["step", "prompt"])
def test_simulated_cores_compute_it(name: str) -> None:
    step = zoo.microllama(3, layers=1)
    model = step if name == "step" else zoo.microllama_prompt(3, layers=1)
    inputs: list[Any] = [
        RNG.integers(-128, 128, info.shape).astype("int8") for info in model.inputs
    ]
    inputs[1][...] = np.where(inputs[1] < 0, -128, 0)
    module = htvm.build(model, target="siracusa.cluster")
    found, wanted = module.run(inputs).outputs, interpret(model.module, inputs).outputs
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
