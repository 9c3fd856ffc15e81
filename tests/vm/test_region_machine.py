"""Builds in TVM's virtual machine, whose regions run in the accelerator's simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.errors import InputError, SimulationError, TargetError
from htvm.inputs import seeded_inputs
from tests.reference.interpreter import interpret

EVERY_DAY = (
    ("resnet8", "dla"),
    ("ds_cnn", "dla:pes=15,parallel=both,sram=20KiB,rows=tiled,depthwise=emulated,fused=off"),
)


def check(model: htvm.Model, target: str) -> htvm.Module:
    """Outputs equal the interpreter's and those of the C program."""
    module = htvm.build(model, target=target, platform="host")
    machine = module.vm()
    for seed in (1, 2):
        inputs = seeded_inputs(model.inputs, seed)
        found = machine.run(inputs)
        executed = module.model.module
        for array, wanted, ran in zip(
            found, interpret(executed, inputs).outputs, module.run(inputs).outputs, strict=True
        ):
            np.testing.assert_array_equal(array, wanted)
            np.testing.assert_array_equal(array, ran)
    names = {name for run in machine.runs for name in run.layers}
    assert names == {name for name, place in module.placement.items() if place == "dla"}
    assert all(run.count.device > 0 and run.count.bytes > 0 for run in machine.runs)
    return module


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("name", "target"), EVERY_DAY)
def test_outputs_are_those_of_the_program(name: str, target: str) -> None:
    check(zoo.build(name), target)


def test_no_program_of_the_system_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check(zoo.build("toyadmos"), "dla")


@pytest.mark.slow
@pytest.mark.parametrize("depthwise", ["cpu", "emulated", "native"])
@pytest.mark.parametrize("name", ["resnet8", "ds_cnn", "mobilenet_v1", "toyadmos", "digits"])
def test_all_networks_in_all_scenarios(name: str, depthwise: str) -> None:
    check(zoo.build(name), f"dla:depthwise={depthwise},sram=512KiB")


@pytest.mark.slow
def test_channels_first() -> None:
    check(zoo.build("ds_cnn", layout="NCHW"), "dla:sram=64KiB,rows=tiled")


@pytest.mark.slow
def test_two_machines_do_not_share_functions() -> None:
    """Regions of two builds have the same symbols."""
    first = htvm.build(zoo.build("toyadmos"), target="dla", platform="host")
    second = htvm.build(zoo.build("toyadmos", seed=1), target="dla", platform="host")
    machines = first.vm(), second.vm()
    inputs = seeded_inputs(first.compiled.source.inputs, 3)
    for module, machine in zip((first, second), machines, strict=True):
        np.testing.assert_array_equal(machine.run(inputs)[0], module.reference(inputs)[0])
    with pytest.raises(InputError):
        machines[0].run(np.zeros(3, np.int8))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("toyadmos", "diana"),
        pytest.param("resnet8", "diana", marks=pytest.mark.slow),
        pytest.param("ds_cnn", "siracusa", marks=pytest.mark.slow),
        pytest.param("digits", "snitch_ita", marks=pytest.mark.slow),
        pytest.param("resnet8", "cortex_m4", marks=pytest.mark.slow),
    ],
)
def test_regions_run_as_libraries_of_c(name: str, target: str) -> None:
    module = htvm.build(zoo.build(name), target=target, platform="host")
    machine = module.vm()
    for seed in (1, 2):
        inputs = seeded_inputs(module.compiled.source.inputs, seed)
        pairs = zip(machine.run(inputs), module.run(inputs).outputs, strict=True)
        for found, wanted in pairs:
            np.testing.assert_array_equal(found, wanted)
    assert machine.runs == []  # nothing counts cycles there


def test_a_target_whose_name_does_not_tell_it_is_refused() -> None:
    target = resolve("diana")
    other = replace(target, soc=replace(target.soc, clock_hz=target.soc.clock_hz + 1))
    module = htvm.build(zoo.build("toyadmos"), target=other, platform="host")
    with pytest.raises(TargetError, match="does not tell all of its numbers"):
        module.vm()


def test_complaints_of_the_accelerator_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    from byoc_dory.soc.dla.simulator import Simulator

    machine = htvm.build(zoo.build("toyadmos"), target="dla", platform="host").vm()

    def complain(*_: object) -> None:
        raise SimulationError("a byte was read that nobody wrote", where="layer 'a'")

    monkeypatch.setattr(Simulator, "run", complain)
    with pytest.raises(SimulationError, match="nobody wrote"):
        machine.run(seeded_inputs(machine._compiled.source.inputs, 0))
