"""The token loop in C writes what `htvm.generate` does, and refuses what it cannot do untouched."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from benchmarks.token_loops import build_token_loop, run_token_loop
from htvm import zoo
from htvm.errors import UnsupportedError
from htvm.firmware.build import Built, build_host
from htvm.firmware.paths import network_path
from htvm.module import Module
from htvm.sim.host import run_host
from htvm.tools.language import LanguageModel, sharpness_of
from htvm.tools.language.token_loop import loop_files, loop_parts
from tests.reference.interpreter import interpret

POSITIONS = 24
TARGET = "siracusa.cluster"


@cache
def small(length: int) -> LanguageModel:
    return zoo.microllama(length, layers=2, vocabulary=40, positions=POSITIONS, seed=length)


@cache
def module(length: int, platform: Any = "host") -> Module:
    return htvm.build(small(length), TARGET, platform)


@cache
def loop(length: int, platform: Any = "host") -> Built:
    built = module(length, platform).built
    return build_token_loop(built, small(length), sanitize=platform == "host")


@pytest.mark.parametrize("length", [1, 2, 5])
def test_tokens_are_those_of_the_simulated_step(length: int) -> None:
    rng = np.random.default_rng([41, length])
    model = small(length)
    for _ in range(6):
        prompt = rng.integers(0, model.vocabulary, rng.integers(1, length + 1)).tolist()
        steps = int(rng.integers(1, POSITIONS + 2 - len(prompt)))
        temperature, seed = float(rng.choice([0, 0.3, 1, 40])), int(rng.integers(0, 2**63))
        wanted = htvm.generate(model, prompt, steps, temperature=temperature, seed=seed).tokens
        sharpness = sharpness_of(temperature, model.score_scale)
        found = run_token_loop(loop(length), model, prompt, steps, sharpness=sharpness, seed=seed)
        assert found.code == 0 and found.tokens[:steps] == wanted
        assert not any(found.tokens[steps:])


def test_firmware_writes_the_same_and_costs_little_more() -> None:
    model, built = small(3), loop(3, "rv32")
    wanted = htvm.generate(module(3, "rv32"), [5, 9], 6, temperature=1, seed=2)
    found = run_token_loop(built, model, [5, 9], 6, sharpness=sharpness_of(1, 2**-12), seed=2)
    assert (found.code, found.tokens[:6]) == (0, wanted.tokens)
    assert found.cycles is not None and wanted.cycles is not None
    for whole, network in zip(found.cycles, wanted.cycles, strict=True):
        assert network < whole < network + 12_000


@pytest.mark.parametrize(
    ("prompt", "steps", "length", "error"),
    [
        ([], 3, None, -4),
        ([1, 2, 3, 4], 3, None, -4),
        ([1], 3, 2**32 - 1, -4),
        ([1, 40], 3, None, -3),
        ([2**32 - 1], 3, None, -3),
        ([1, 2], 0, None, -5),
        ([1, 2], POSITIONS, None, -6),
        ([1, 2], 2**32 - 1, None, -6),
    ],
)
def test_errors_leave_the_tokens(
    prompt: list[int], steps: int, length: int | None, error: int
) -> None:
    found = run_token_loop(loop(3), small(3), prompt, steps, prompt_length=length)
    assert found.code == error and not any(found.tokens)


def test_all_positions_can_be_read() -> None:
    assert run_token_loop(loop(3), small(3), [1, 2], POSITIONS - 1).code == 0


CALLS = """
#include "htvm_host.h"

#include <string.h>

#include "microllama_3_generate.h"

static microllama_3_arena_t arena;
static microllama_3_state_t state, before;
static int8_t caches[4][16 * 4 * 4], kept[2][4][16 * 3 * 4];
static uint32_t tokens[8];
static struct { int32_t codes[18]; uint32_t tokens[8]; int8_t kept[4][16 * 3 * 4]; } answer;
static microllama_3_state_t other;

int main(void)
{
    const uint32_t prompt[3] = {4, 8, 15};
    const int8_t *given[4] = {caches[0], caches[1], caches[2], caches[3]};
    int8_t *const to[4] = {kept[0][0], kept[0][1], kept[0][2], kept[0][3]};
    int8_t *const again[4] = {kept[1][0], kept[1][1], kept[1][2], kept[1][3]};
    int failed = htvm_host_read(0, caches, sizeof caches);
    int32_t *code = answer.codes;

    /* Two tokens read by the other network, then this one; three steps in two calls. */
    *code++ = microllama_3_start(&state, 0, 0);
    *code++ = microllama_3_resume(&state, given, 2);
    *code++ = microllama_3_generate(&arena, &state, &prompt[2], 1, answer.tokens, 2);
    *code++ = microllama_3_generate(&arena, &state, &answer.tokens[1], 1, &answer.tokens[2], 1);

    /* Refused, and nothing changes. */
    memcpy(&before, &state, sizeof before);
    *code++ = microllama_3_caches(&state, to);
    *code++ = microllama_3_resume(&state, given, 4);
    *code++ = microllama_3_resume(&state, NULL, 1);
    given[3] = NULL;
    *code++ = microllama_3_resume(&state, given, 1);
    *code++ = microllama_3_generate(NULL, &state, prompt, 1, tokens, 1);
    *code++ = microllama_3_generate(&arena, &state, prompt, 1, NULL, 1);
    microllama_3_arena_t *const beside = (void *)&arena.i8[4];
    *code++ = microllama_3_generate(beside, &state, prompt, 1, tokens, 1);
    *code++ = microllama_3_start(NULL, 0, 0);
    *code++ = memcmp(&before, &state, sizeof before);
    *code++ = microllama_3_caches(&state, again);
    *code++ = memcmp(kept[0], kept[1], sizeof kept[0]);
    memcpy(answer.kept, kept[0], sizeof kept[0]);

    /* In L1, caches belong to the state of the last start. */
    given[3] = caches[3];
    *code++ = microllama_3_start(&other, 0, 0);
    *code++ = microllama_3_generate(&arena, &state, prompt, 1, tokens, 1);
    *code++ = microllama_3_resume(&state, given, 1);
    return failed | htvm_host_write(0, &answer, sizeof answer);
}
"""


@pytest.mark.parametrize(("target", "owned"), [(TARGET, -8), ("generic.cpu", 0)])
def test_caches_of_a_prompt_are_continued_or_refused(target: str, owned: int) -> None:
    """The prompt's network has read two tokens; the cache has three positions, in L1 or in L2."""
    model, prompt = small(3), zoo.microllama_prompt(2, layers=2, seed=3)
    mask = np.array([[[0, -128], [0, 0]]], "int8")
    inputs = [model.embedding[[4, 8]][None], mask, model.rotations[:2][None]]
    caches = interpret(prompt.module, inputs).outputs[1:]
    step = htvm.build(model, target, "host").built
    assert bool(step.program.places) == (owned != 0)
    files = {**loop_files(step.program, model), "main.c": CALLS}
    built = build_host(step.program, step.soc, step.compiler, sanitize=True, extra_sources=files)
    assert built.native is not None
    # Each has room for four positions, the number that is refused.
    data = b"".join(each.tobytes().ljust(256, b"\1") for each in caches)
    (raw,) = run_host(built.native, [data], [872])
    codes, tokens = np.frombuffer(raw[:72], "int32"), np.frombuffer(raw[72:104], "uint32")
    assert codes[:15].tolist() == [0, 0, 0, 0, 0, -7, -1, -1, -1, -1, -2, -1, 0, 0, 0]
    assert codes[15:].tolist() == [0, owned, owned]
    assert tuple(tokens[:3].tolist()) == htvm.generate(model, [4, 8, 15], 3).tokens
    # The second of the three written tokens was the last one read: the window has three of five.
    kept = np.frombuffer(raw[104:], "int8").reshape(4, 1, 16, 3, 4)
    for found, wanted in zip(kept, window(model, [4, 8, 15, *tokens[:2].tolist()]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def window(model: LanguageModel, tokens: list[int]) -> list[np.ndarray]:
    """Return the caches after some tokens, computed by the interpreter."""
    caches = [np.zeros(info.shape, "int8") for info in model.inputs[3:]]
    for position, token in enumerate(tokens):
        x, mask = model.embedding[[token]][None], model.mask(min(position, model.length))
        inputs = [x, mask, model.rotations[position][None, None], *caches]
        own = interpret(model.module, inputs).outputs[1:-1]
        pairs = zip(caches, own, strict=True)
        caches = [np.concatenate([cache[:, :, 1:], new], 2) for cache, new in pairs]
    return caches


def test_an_export_has_the_loop_and_checks_it(tmp_path: Path) -> None:
    folder = module(3).export(tmp_path / "first")
    parts = loop_parts("microllama_3")
    paths = [network_path("microllama_3", part) for part in parts]
    assert {path.split("/")[0] for path in paths} == {"include", "src", "example"}
    again = htvm.open(folder).export(tmp_path / "second")
    for path in (*paths, "Makefile", "README.md", "CMakeLists.txt"):
        assert (folder / path).read_bytes() == (again / path).read_bytes()
    texts = {Path(path).name: (folder / path).read_text() for path in paths}
    step = module(3).built
    files = {**texts, "main.c": texts["main_generate.c"]}
    del files["main_generate.c"]
    built = build_host(step.program, step.soc, step.compiler, extra_sources=files)
    assert built.native is not None
    run_host(built.native, [], [])
    assert not any("microllama" in name for name in loop_files_of_another(tmp_path))


def loop_files_of_another(folder: Path) -> list[str]:
    plain = htvm.build(small(3).step, TARGET, "host").export(folder / "plain")
    return [path.name for path in plain.rglob("*") if "generate" in path.name]


def test_a_softmax_in_groups_is_refused() -> None:
    groups = zoo.encoder(
        1, sequence=8, embedding=8, projection=8, heads=1, feed_forward=8, stacked=0
    )
    other = replace(LanguageModel.of(small(3)), graph=groups.graph)
    with pytest.raises(UnsupportedError, match="order matters; layer 'layer_0_head_0_softmax'"):
        loop_files(module(3).built.program, other)
