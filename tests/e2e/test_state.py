"""Caches that stay in L1 between runs: where they are, why, and that the numbers stay the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory import state
from byoc_dory.options import TilingOptions
from byoc_dory.state import StatePlan
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.firmware.build import build_host
from htvm.inputs import seeded_inputs
from htvm.module import Module
from htvm.pipeline import compile_model
from htvm.sim.host import run_host
from htvm.stage_cache import StageCache
from htvm.tools.language import LanguageModel
from tests.reference.interpreter import interpret

LENGTH = 20
BYTES = 16 * LENGTH * 4  # of a cache
SLOW = pytest.mark.slow
_CACHES = 3  # inputs before the caches


@cache
def language() -> LanguageModel:
    return zoo.microllama(LENGTH, layers=2, vocabulary=40, positions=48, seed=6)


@cache
def built(target: str, platform: Any = None, budget: int | None = None) -> Module:
    return htvm.build(language(), target, platform, tiling=TilingOptions(l1_budget=budget))


def given(seed: int) -> list[Any]:
    inputs = seeded_inputs(language().inputs, seed)
    inputs[1] = language().mask(LENGTH - seed)
    return inputs


def equals_the_definition(module: Module, seed: int) -> None:
    inputs = given(seed)
    wanted = interpret(language().module, inputs).outputs
    for array, other in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("target", [pytest.param("siracusa", marks=SLOW), "siracusa.cluster"])
def test_all_caches_are_at_the_end_of_l1(target: str) -> None:
    module = built(target)
    state, soc = module.compiled.state, module.compiled.target.soc
    memory = soc.memory("L1")
    offsets = [each.offset for each in state.inputs]
    assert [each.bytes for each in state.inputs] == [BYTES] * 4 and None not in offsets
    first = state.l1_budget
    assert first is not None and offsets == [first + BYTES * number for number in range(4)]
    assert memory.size - 32 <= first + 4 * BYTES < memory.size
    for code in module.compiled.regions.values():
        assert code.plan is not None and code.plan.l1_peak <= first
        for kernel in code.kernels:
            assert not any("cache" in name or "keys" in name for name in kernel.inputs)
    assert state.kept_cycles is not None and state.loaded_cycles is not None
    assert state.kept_cycles < state.loaded_cycles
    said = "4 of 4 inputs that the caller keeps between runs, 5,120 B, stay in L1: "
    assert said in str(module.report()) and said in str(module.explain(changes=0))
    for seed in (1, 2):
        equals_the_definition(module, seed)


def test_less_is_in_l2() -> None:
    """Than with all caches there, of which inputs and outputs of the firmware have one each."""
    inside = built("siracusa.cluster")
    outside = htvm.build(language(), "siracusa.cluster", schedule="decoupled")
    assert outside.sizes.io - inside.sizes.io == 4 * BYTES
    text = outside.compiled.state.text
    assert "are in L2 and loaded in each run: the schedule 'decoupled' loads all inputs" in text
    equals_the_definition(outside, 3)


@pytest.mark.parametrize(
    ("budget", "inside"),
    [
        pytest.param(24 * 1024, 4, marks=SLOW),
        (16 * 1024, 2),
        pytest.param(7 * 1024, 0, marks=SLOW),
    ],
)
def test_what_costs_cycles_or_does_not_fit_is_in_l2(budget: int, inside: int) -> None:
    module = built("siracusa.cluster", budget=budget)
    assert len(module.compiled.state.offsets) == inside, module.compiled.state.text
    assert len(module.built.program.places) == inside
    if inside < 4:
        text = module.compiled.state.text
        assert "in L2" in text and ("smaller tiles take" in text or "no room" in text)
    equals_the_definition(module, 4)
    for code in module.compiled.regions.values():
        assert code.plan is not None
        assert code.plan.l1_peak <= budget - inside * BYTES


def planned(budget: int | None, policy: Any = None) -> StatePlan:
    tiling = TilingOptions(l1_budget=budget)
    options = BuildOptions(tiling=tiling, policy=policy)
    return compile_model(language(), "siracusa.cluster", options, cache=StageCache(None)).state


def test_the_quickest_number_of_caches_is_in_l1() -> None:
    """Three would take fewer cycles than none, but two take fewest."""
    state = planned(17_500)
    assert len(state.offsets) == 2 and state.kept_cycles is not None
    both = f"beside {3 * BYTES:,} B of them in L1, smaller tiles take 102 cycles more"
    assert state.text.endswith(f"the others in L2: {both}.")


def test_numbers_beside_the_best_of_four_steps_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_STEPS", 2)
    assert len(planned(17_500).offsets) == 2
    assert len(planned(22_500).offsets) == 3


def test_caches_beside_which_no_result_can_leave_are_in_l2() -> None:
    """Attention would fit beside a cache only if its result stayed in L1."""
    state = planned(6_736)
    assert not state.offsets and "L1 has no room for the tiles" in state.text


def test_caches_that_the_host_reads_are_in_l2() -> None:
    state = planned(None, {"layer_0_context": "cpu", "layer_1_context": "cpu"})
    assert state.text == (
        f"4 inputs that the caller keeps between runs, {4 * BYTES:,} B, are in L2 and loaded in "
        "each run: the host reads it."
    )


MAIN = """
#include "htvm_host.h"

#include <stddef.h>

#include "@NAME@.h"

static _Alignas(16) int8_t in[3][64], cache[2][4][@BYTES@], out[5][64];
static _Alignas(16) int32_t scores[2][40];

static int32_t run(int8_t cached[4][@BYTES@], int32_t *to)
{
    if (cached == NULL) {
        return @NAME@_run(in[0], in[1], in[2], NULL, NULL, NULL, NULL, out[0], out[1], out[2],
            out[3], out[4], to);
    }
    return @NAME@_run(in[0], in[1], in[2], cached[0], cached[1], cached[2], cached[3], out[0],
        out[1], out[2], out[3], out[4], to);
}

int main(void)
{
    int failed = htvm_host_read(0, in, sizeof in) | htvm_host_read(1, cache, sizeof cache);
    failed |= run(cache[0], scores[0]) != 0; /* another cache */
    failed |= run(cache[1], scores[0]) != 0;
    failed |= run(NULL, scores[1]) != 0; /* the same one again */
    failed |= @NAME@_run(NULL, in[1], in[2], NULL, NULL, NULL, NULL, out[0], out[1], out[2],
        out[3], out[4], scores[1]) != @UPPER@_ERROR_NULL;
    return failed | htvm_host_write(0, scores, sizeof scores);
}
"""


def test_a_cache_that_is_passed_replaces_the_one_in_l1() -> None:
    model, step = language(), built("siracusa.cluster", "host").built
    text = MAIN.replace("@NAME@", model.name).replace("@UPPER@", model.name.upper())
    text = text.replace("@BYTES@", str(BYTES))
    main = {"main.c": text}
    native = build_host(step.program, step.soc, step.compiler, extra_sources=main).native
    assert native is not None
    inputs, others = given(5), given(7)
    small = b"".join(array.tobytes().ljust(64, b"\0") for array in inputs[:_CACHES])
    caches = b"".join(array.tobytes() for array in (*others[_CACHES:], *inputs[_CACHES:]))
    (raw,) = run_host(native, [small, caches], [320])
    wanted = interpret(model.module, inputs).outputs[-1].reshape(-1)
    for found in np.frombuffer(raw, "int32").reshape(2, 40):
        np.testing.assert_array_equal(found, wanted)


@SLOW
def test_an_export_keeps_the_places(tmp_path: Any) -> None:
    module = built("siracusa.cluster")
    folder = module.export(tmp_path / "step")
    again = htvm.open(folder, trust=True)
    assert again.program.places == module.built.program.places != ()
    inputs = given(8)
    for array, other in zip(again.run(inputs).outputs, module.run(inputs).outputs, strict=True):
        np.testing.assert_array_equal(array, other)


@SLOW
def test_verify_runs_steps_with_caches_in_l1() -> None:
    found = built("siracusa.cluster").verify(given(9))
    assert found.equal, str(found)
