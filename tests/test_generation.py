"""Generation equals an independent loop, on random prompts; bad input is refused with its value."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.errors import InputError, ModelError
from htvm.module import Module
from htvm.tools.language import LanguageModel, rotations
from htvm.tools.language.sampling import HALVINGS, Draws, pick, sharpness_of, weights
from tests.models_onnx import LLAMAS, onnx_path
from tests.reference import language as reference
from tests.reference.interpreter import interpret


@cache
def small(length: int, vocabulary: int = 40) -> LanguageModel:
    return zoo.microllama(length, layers=2, vocabulary=vocabulary, positions=24, seed=length)


@cache
def built(length: int, target: str, platform: Any) -> Module:
    return htvm.build(small(length), target=target, platform=platform)


def expected(
    model: LanguageModel, prompt: list[int], steps: int, temperature: float = 0, seed: int = 0
) -> list[int]:
    sharpness = 0
    if temperature:
        sharpness = round(2**16 * 2**-12 / np.log(2) / temperature)
    return reference.written(
        lambda inputs: interpret(model.step.module, inputs).outputs,
        model.embedding,
        model.output,
        prompt,
        steps,
        caches=[info.shape for info in model.inputs[3:]],
        sharpness=sharpness,
        seed=seed,
    )


@pytest.mark.rotating(2)
@pytest.mark.parametrize("case", range(12))
def test_tokens_are_those_of_an_independent_loop(case: int) -> None:
    """Caches of 1 to 5 positions: the window slides, and is not full at first."""
    rng = np.random.default_rng([31, case])
    model = small(int(rng.integers(1, 6)))
    prompt = rng.integers(0, model.vocabulary, rng.integers(1, model.length + 1)).tolist()
    steps = int(rng.integers(1, 12))
    temperature = float(rng.choice([0, 0.5, 1, 3]))
    seed = int(rng.integers(0, 2**63))
    found = htvm.generate(model, prompt, steps, temperature=temperature, seed=seed)
    assert found.prompt == tuple(prompt) and found.cycles is None and found.uj is None
    assert list(found.tokens) == expected(model, prompt, steps, temperature, seed)


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("target", "platform"),
    [("siracusa.cluster", "rv32"), ("siracusa.cluster", "host"), ("generic.cpu", "rv32")],
)
def test_simulated_targets_write_the_same(target: str, platform: str) -> None:
    module = built(3, target, platform)
    found = htvm.generate(module, [7, 1], 5, temperature=1.5, seed=4)
    assert found.tokens == htvm.generate(small(3), [7, 1], 5, temperature=1.5, seed=4).tokens
    if platform == "host":
        assert found.cycles is None and found.tokens_per_second is None
        return
    assert found.cycles is not None and len(found.cycles) == 6
    soc = module.compiled.target.soc
    mean = sum(found.cycles) / 6
    assert found.cycles_per_token == pytest.approx(mean)
    assert found.tokens_per_second == pytest.approx(1000 / soc.cycles_to_ms(mean))
    if target == "generic.cpu":
        assert found.uj is None and found.uj_per_token is None
    else:
        power = soc.power("cluster")
        assert power is not None
        assert found.uj == pytest.approx(power.milliwatts * soc.cycles_to_ms(found.uj_cycles))
        assert 0 < found.uj_cycles <= sum(found.cycles)
        assert found.uj_per_token == pytest.approx(found.uj / 6)


def test_a_file_becomes_a_language_model() -> None:
    step = htvm.load(onnx_path(LLAMAS[0]))
    model = LanguageModel.of(step, vocabulary=17, positions=9, seed=3)
    assert (model.vocabulary, model.length, model.positions) == (17, 1, 9)
    assert model.step is step and model.sha256 != step.sha256
    assert [info.name for info in model.outputs] == [*(i.name for i in step.outputs), "scores"]
    found = htvm.generate(model, [16], 6, temperature=1, seed=8)
    assert list(found.tokens) == expected(model, [16], 6, 1, 8)
    own = LanguageModel.of(step, embedding=model.output, output=model.embedding)
    assert own.vocabulary == 17 and own.embedding is model.output


def test_rotations_are_the_definitions_and_the_files() -> None:
    for head in (2, 4, 16):
        table = rotations(40, head)
        for position in range(40):
            np.testing.assert_array_equal(table[position], reference.rope(position, head))
    for name, position in ((LLAMAS[1], 64), (LLAMAS[4], 0)):
        with np.load(onnx_path(name).parent / "inputs.npz") as arrays:
            stored = arrays["input_2"][0]
        np.testing.assert_array_equal(rotations(position + len(stored), 4)[position:], stored)


def test_weights_are_powers_of_two() -> None:
    assert list(HALVINGS) == reference.halvings()
    rng = np.random.default_rng(5)
    for sharpness in (1, 23, 4096, 2**20, 2**32 - 1):
        scores = rng.integers(-(2**31), 2**31, 50).astype("int32")
        scores[:20] = scores.max() - rng.integers(0, 2**18, 20)
        distances = [int(scores.max()) - int(score) for score in scores]
        wanted = [reference.weight(each, sharpness) for each in distances]
        np.testing.assert_array_equal(weights(scores, sharpness), wanted)
    exact = 65536 * 2 ** -(np.arange(60000) * 3 / 65536)
    assert np.abs(weights(-np.arange(60000, dtype="int32"), 3) / exact - 1).max() < 1e-3


def test_draws_follow_the_weights() -> None:
    first = reference.splitmix(9)
    draws = Draws(9)
    assert [draws.next() for _ in range(50)] == [next(first) for _ in range(50)]
    assert Draws(1234567).next() == 6457827717110365317 >> 32  # as published with the algorithm
    scores = np.array([0, -65536, -5, -(2**31), 0], "int32")
    draws, counts = Draws(0), np.zeros(5)
    for _ in range(4000):
        counts[pick(scores, 65536, draws)] += 1
    assert counts[1] == counts[3] == 0
    shares = np.array([1, 0, 1 / 32, 0, 1]) / (2 + 1 / 32)
    np.testing.assert_allclose(counts / 4000, shares, atol=0.03)
    assert pick(np.array([3, 5, 5], "int32"), 0, draws) == 1


def test_a_draw_between_two_tokens_is_the_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    even = np.zeros(2, "int32")
    for number, token in ((0, 0), (2**31 - 1, 0), (2**31, 1), (2**32 - 1, 1)):
        monkeypatch.setattr(Draws, "next", lambda _, number=number: number)
        assert pick(even, 65536, Draws(0)) == reference.draw([0, 0], 65536, number) == token


def test_sharpness() -> None:
    assert sharpness_of(0, 0.1) == 0
    assert sharpness_of(1, 2**-12) == 23  # 16 * log2(e)
    assert sharpness_of(1e-300, 1.0) == 2**32 - 1 and sharpness_of(1e300, 1.0) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "the prompt is empty"),
        ({"tokens": [3, 40]}, r"no token 40; htvm.generate, token 1 .*ids are 0 to 39"),
        ({"tokens": [-1]}, "no token -1"),
        ({"tokens": [1.0]}, r"no token 1\.0"),
        ({"tokens": [True]}, "no token True"),
        ({"tokens": [1] * 4}, "a prompt of 4 tokens, the cache has 3 positions"),
        ({"steps": 0}, "steps cannot be 0"),
        ({"steps": -3}, "steps cannot be -3"),
        ({"steps": 2.5}, r"steps cannot be 2\.5"),
        ({"steps": 24}, "2 tokens and 24 steps, there are rotations for 24 positions"),
        ({"temperature": -0.5}, r"temperature cannot be -0\.5"),
        ({"temperature": float("nan")}, "temperature cannot be nan"),
        ({"temperature": "hot"}, "temperature cannot be 'hot'"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"seed": 2**64}, "seed cannot be 18446744073709551616.*from 0 to 18446744073709551615"),
        ({"seed": 1.5}, r"seed cannot be 1\.5"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"tokens": [3, 4], "steps": 1, **changes}
    with pytest.raises(InputError, match=message):
        htvm.generate(small(3), **arguments)


def test_all_positions_can_be_used() -> None:
    assert len(htvm.generate(small(3), [1, 2], 23).tokens) == 23


def test_only_language_models_generate() -> None:
    for model in (zoo.toyadmos(), "zoo:microllama"):
        with pytest.raises(ModelError, match="no language model; htvm.generate"):
            htvm.generate(model, [1], 1)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="'toyadmos' is no language model"):
        htvm.generate(htvm.build(zoo.toyadmos(), "generic.cpu", "host"), [1], 1)
    with pytest.raises(ModelError, match="1 inputs: it is no decoding step"):
        LanguageModel.of(zoo.toyadmos())
    with pytest.raises(ModelError, match="3 inputs: it is no decoding step"):
        LanguageModel.of(zoo.microllama_prompt(2, layers=1))


def test_a_step_must_fit_together() -> None:
    step = small(3)
    mask = replace(step.inputs[1], shape=(3,))
    with pytest.raises(ModelError, match=r"'mask' is int8\[3\], .* int8\[4\]"):
        replace(step, inputs=(step.inputs[0], mask, *step.inputs[2:]))
    wide = replace(step.outputs[0], dtype="int16")
    with pytest.raises(ModelError, match=r"'output' is int16\[1, 1, 64\]"):
        replace(step, outputs=(wide, *step.outputs[1:]))
    with pytest.raises(ModelError, match="4 outputs with 4 caches"):
        replace(step, outputs=step.outputs[1:])
    with pytest.raises(ModelError, match="two caches for each layer"):
        replace(step, inputs=step.inputs[:-1], outputs=step.outputs[1:])
    scores = replace(step.outputs[-1], dtype="int16")
    with pytest.raises(ModelError, match=r"'scores' is int16\[1, 40\], .* int32\[1, 40\]"):
        replace(step, outputs=(*step.outputs[:-1], scores))
    with pytest.raises(
        ModelError, match=r"output is int8\[40, 63\], the step needs int8\[40, 64\]"
    ):
        replace(step, output=step.output[:, 1:])
    with pytest.raises(ModelError, match=r"embedding is float64"):
        replace(step, embedding=step.embedding.astype("float64"))
    with pytest.raises(ModelError, match=r"rotations is int8\[0, 4, 4\]"):
        replace(step, rotations=step.rotations[:0])
    with pytest.raises(ModelError, match="vocabulary of 65536"):
        LanguageModel.of(step, vocabulary=65536)
    with pytest.raises(ModelError, match="scale of the scores cannot be 0"):
        replace(step, score_scale=0)
