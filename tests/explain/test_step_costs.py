"""What a build is said to cost is what its run takes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import htvm
from byoc_dory.errors import ToolchainError
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.pipeline import compile_model
from htvm.sim.host_steps import host_step_cycles
from htvm.tools.explain.explanation import explanation_of
from htvm.tools.explain.step_costs import build_costs
from tests.explain.test_improvements import convolution


@pytest.fixture(scope="module")
def digits() -> Compiled:
    return compile_model(opened("digits"), "diana.digital", BuildOptions())


def opened(name: str) -> Model:
    return zoo.named(f"zoo:{name}")


@pytest.mark.parametrize(
    ("network", "target"),
    [
        ("digits", "diana.digital"),
        pytest.param("ds_cnn", "diana", marks=pytest.mark.slow),
        pytest.param("digits", "cortex_m4", marks=pytest.mark.slow),
        pytest.param("digits", "cortex_m55", marks=pytest.mark.slow),
        pytest.param("digits", "siracusa", marks=pytest.mark.slow),
        pytest.param("ds_cnn", "snitch_ita", marks=pytest.mark.slow),
        pytest.param("toyadmos", "diana.simd.cpu", marks=pytest.mark.slow),
        pytest.param("toyadmos", "dla", marks=pytest.mark.slow),
    ],
)
def test_the_costs_are_those_of_a_run(network: str, target: str) -> None:
    """Within 10 % in all, and 25 % in each step of at least 1 %."""
    model = opened(network)
    module = htvm.build(model, target)
    costs = build_costs(module.compiled)
    ran = module.run(seeded_inputs(model.inputs, 3))
    taken = ran.cycles or ran.instructions
    assert taken and costs.total == pytest.approx(taken, rel=0.1) and not costs.missing
    for cost, layer in zip(costs.steps, ran.layers, strict=True):
        own = layer.instructions or layer.cycles or 0
        assert cost.basis == ("predicted" if cost.kind == "layer" else "measured")
        if own >= 0.01 * taken:
            assert cost.cycles == pytest.approx(own, rel=0.25), cost


def test_kernels_shared_by_the_cores_are_measured_shared() -> None:
    """What the cluster refuses runs on eight cores, not on one."""
    model = convolution(32, 32, 3, groups=4)
    options = BuildOptions(rewrites="off")
    compiled = compile_model(model, "snitch_ita", options)
    alone = compile_model(model, "snitch_ita.cpu", options)
    assert compiled.dispatch.placement == {"layer": "cpu"}
    shared, one = (build_costs(each).layers["layer"] for each in (compiled, alone))
    # More than eight times, as operands are in L1 then.
    assert one / 20 < shared < one / 4
    estimates = [build_costs(each, measure=False).total for each in (compiled, alone)]
    assert estimates[1] == pytest.approx(8 * (estimates[0] or 0), rel=0.01)


def test_a_program_too_large_for_l2_is_measured_in_a_larger_one(digits: Compiled) -> None:
    compiled, soc = digits, digits.target.soc
    small = tuple(
        replace(entry, size=40_000) if entry.name == "L2" else entry for entry in soc.memories
    )
    assert host_step_cycles(compiled.program, replace(soc, memories=small)) == host_step_cycles(
        compiled.program, soc
    )


def test_what_cannot_be_measured_is_called_an_estimate(
    monkeypatch: pytest.MonkeyPatch, digits: Compiled
) -> None:
    def missing(*_: object) -> tuple[int, ...]:
        raise ToolchainError("there is no C compiler")

    monkeypatch.setattr("htvm.sim.host_steps.host_step_cycles", missing)
    found = explanation_of(digits)
    assert found.missing == "there is no C compiler"
    assert {step.basis for step in found.steps} == {"predicted", "estimated"}
    assert "not measured: there is no C compiler" in str(found) and "?" in str(found)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["diana", "snitch_ita"])
def test_no_advice_gains_more_than_its_layers_cost(target: str) -> None:
    compiled = compile_model(opened("ds_cnn"), target, BuildOptions())
    costs = build_costs(compiled)
    assert costs.total is not None
    for entry in explanation_of(compiled, 5).improvements:
        own = sum(step.cycles or 0 for step in costs.steps if set(step.layers) & set(entry.layers))
        assert 0 < entry.gain <= min(own, entry.before) and entry.gain < costs.total


def test_without_an_emulator_the_steps_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The M55 runs in QEMU alone; what it takes is estimated where that is not installed."""
    compiled = compile_model(zoo.toyadmos(), "cortex_m55", BuildOptions())
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    monkeypatch.setattr("htvm.sim.host_steps.kept_build", _computed_anew)
    costs = build_costs(compiled)
    assert "qemu-system-arm" in costs.missing
    assert {step.basis for step in costs.steps} == {"estimated"}
    assert explanation_of(compiled).counted == "instructions"


def _computed_anew(*arguments: Any) -> Path:
    """Compute what is kept from earlier runs again."""
    *_, make = arguments
    with TemporaryDirectory() as folder:
        make(Path(folder), [])
        raise AssertionError("ran without an emulator")
