"""Networks on the parametrised accelerator, in the three scenarios of the paper and others."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.errors import TargetError
from htvm.inputs import seeded_inputs
from tests.models import MODELS, model_path
from tests.models_onnx import FILES, golden, onnx_path
from tests.reference.interpreter import interpret

EVERY_DAY = (
    ("ds_cnn", "dla", "rv32"),
    ("ds_cnn", "dla:depthwise=emulated,parallel=input,fused=off", "host"),
    ("resnet8", "dla:pes=15,parallel=both,sram=20KiB,rows=tiled,depthwise=cpu", "host"),
)


def check(model: htvm.Model, target: str, platform: str) -> htvm.Module:
    """Two inputs, bit for bit as the interpreter says."""
    module = htvm.build(model, target=target, platform=platform)
    rng = np.random.default_rng(5)
    for _ in range(2):
        x = [
            rng.integers(-128, 128, info.shape).astype(info.dtype)
            if info.dtype == "int8"
            else rng.random(info.shape).astype(info.dtype)
            for info in module.model.inputs
        ]
        wanted = interpret(module.model.module, x).outputs
        for found, value in zip(module.run(x).outputs, wanted, strict=True):
            np.testing.assert_array_equal(found, value)
    return module


@pytest.mark.parametrize(("name", "target", "platform"), EVERY_DAY)
def test_networks_are_exact(name: str, target: str, platform: str) -> None:
    model = zoo.digits() if name == "digits" else zoo.build(name)
    module = check(model, target, platform)
    places = list(module.placement.values())
    assert places.count("dla") >= 6
    left = {name for name, place in module.placement.items() if place == "cpu"}
    kinds = {module.compiled.dispatch.kinds[name] for name in left}
    assert not kinds & {"conv2d", "dense", "add"}
    assert ("depthwise" in kinds) == ("depthwise=cpu" in target and name != "resnet8")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dla:pes=0", "pes"),
        ("dla:sram=-5", "sram"),
        ("dla:pes=10,parallel=both,pes_in=3", "pes_in=3 does not divide pes=10"),
        ("dla:pes_in=4", "pes_in=4 contradicts parallel=output"),
        ("dla:speed=3", "its parameters are pes: 1 to 4096"),
    ],
)
def test_wrong_parameters_are_refused(target: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        htvm.build(zoo.build("toyadmos"), target=target)


SCENARIOS = (
    "dla:depthwise=cpu",
    "dla:depthwise=emulated,parallel=input,fused=off",
    "dla:depthwise=native,sram=64KiB,rows=tiled",
)
"""The paper's three, each with other designs."""


@pytest.mark.slow
@pytest.mark.parametrize("target", SCENARIOS)
@pytest.mark.parametrize("name", [*zoo.names(), "digits", "digits_ternary"])
def test_all_networks_of_the_zoo_in_all_scenarios(name: str, target: str) -> None:
    check(zoo.build(name), target, "host")


@pytest.mark.slow
@pytest.mark.parametrize("depthwise", ["cpu", "emulated", "native"])
def test_mobilenet_for_imagenet_in_all_scenarios(depthwise: str) -> None:
    """On the host platform, with the published 512 KiB."""
    target = f"dla:sram=512KiB,depthwise={depthwise}"
    module = htvm.build(zoo.build("mobilenet_v1_224"), target=target, platform="host")
    inputs = seeded_inputs(module.model.inputs)
    for found, value in zip(module.run(inputs).outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.slow
@pytest.mark.parametrize("target", SCENARIOS)
@pytest.mark.parametrize("name", MODELS)
def test_tflite_files_in_all_scenarios(name: str, target: str) -> None:
    module = check(htvm.load(model_path(name)), target, "host")
    assert "dla" in module.placement.values()


@pytest.mark.slow
@pytest.mark.parametrize("target", SCENARIOS)
@pytest.mark.parametrize("name", FILES)
def test_onnx_files_in_all_scenarios(name: str, target: str) -> None:
    """Files that cannot be retargeted keep their numbers, and their golden outputs."""
    model = htvm.load(onnx_path(name))
    module = htvm.build(model, target=target, platform="host")
    inputs, outputs = golden(name, model)
    if module.compiled.retargeted.report.changed:
        outputs = interpret(module.model.module, inputs).outputs
    for found, wanted in zip(module.run(inputs).outputs, outputs, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_layers_are_predicted() -> None:
    """Cycles of whole layers on the simulated SoC, the host's included."""
    module = htvm.build(zoo.build("ds_cnn"), target="dla:sram=16KiB")
    module.run(seeded_inputs(module.model.inputs))
    layers = [row for row in module.report().layers if row.kind == "layer"]
    assert len(layers) == 10
    for row in layers:
        assert row.cycles is not None and row.predicted_cycles is not None
        assert abs(row.predicted_cycles - row.cycles) <= 0.06 * row.cycles + 150, row.name
