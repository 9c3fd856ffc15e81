"""The four MLPerf Tiny models, from the .tflite file to the simulated SoC, against their goldens.

`diana.cpu` must equal TFLite Micro element for element, and so must a host with SIMD;
`diana.digital` must equal its own reference element for element, and agree with TFLite Micro as far
as its number scheme allows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import pytest

import htvm
from htvm.tools.comparison import agreement
from tests.models import MODELS, Golden, golden

CLASSIFIERS = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
PLATFORMS = ("rv32", "host")


@cache
def loaded(name: str) -> tuple[htvm.Model, Golden]:
    case = golden(name)
    return htvm.load(case.path), case


@lru_cache(maxsize=4)
def built(name: str, target: str, platform: str) -> htvm.Module:
    return htvm.build(loaded(name)[0], target, platform)  # type: ignore[arg-type]


@pytest.mark.rotating(3)
@pytest.mark.parametrize("target", ["diana.cpu", "diana.simd.cpu"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", MODELS)
def test_cpu_equals_tflite_micro(name: str, platform: str, target: str) -> None:
    _, case = loaded(name)
    module = built(name, target, platform)
    for number, sample in enumerate(case.inputs):
        (output,) = module.run(sample).outputs
        np.testing.assert_array_equal(output, case.outputs[number], err_msg=f"golden {number}")


def test_cycles_of_a_host_with_simd() -> None:
    """ResNet-8 with TFLite's requantization; the scalar host takes 39.9 million."""
    _, case = loaded("pretrainedResnet_quant")
    cycles = built("pretrainedResnet_quant", "diana.simd.cpu", "rv32").run(case.inputs[0]).cycles
    assert cycles is not None and cycles <= 7_600_000


@pytest.mark.rotating(1)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", MODELS)
def test_digital_equals_its_reference(
    name: str, platform: str, record_property: Callable[[str, object], None]
) -> None:
    model, case = loaded(name)
    module = built(name, "diana.digital", platform)
    made = []
    for number, sample in enumerate(case.inputs):
        (output,) = module.run(sample).outputs
        (wanted,) = module.reference(sample)
        np.testing.assert_array_equal(output, wanted, err_msg=f"golden {number}")
        made.append([output])
    result = agreement(model.outputs, [[out] for out in case.outputs], made)
    record_property(f"{name} agreement with TFLite Micro", str(result))


def test_retargeted_classifiers_decide_as_tflite_micro_does() -> None:
    """At least 22 of the 24 golden inputs of the three classifiers get the same class."""
    same = 0
    for name in CLASSIFIERS:
        _, case = loaded(name)
        module = built(name, "diana.digital", "host")
        for sample, wanted in zip(case.inputs, case.outputs, strict=True):
            (output,) = module.run(sample).outputs
            same += int(output.argmax() == wanted.argmax())
    assert same >= 22, f"{same} of 24"


def test_retargeted_autoencoder_keeps_20_db() -> None:
    model, case = loaded("ad01_int8")
    module = built("ad01_int8", "diana.digital", "host")
    made = [module.run(sample).outputs for sample in case.inputs]
    result = agreement(model.outputs, [[out] for out in case.outputs], made)
    assert result.sqnr_db is not None and result.sqnr_db >= 20.0


def test_resnet_runs_on_the_digital_core_within_the_published_time() -> None:
    """All convolutions, adds and the dense layer there, in at most 1.19 ms at 260 MHz."""
    _, case = loaded("pretrainedResnet_quant")
    module = built("pretrainedResnet_quant", "diana.digital", "rv32")
    kinds = [name.rsplit("_", 1)[0] for name, place in module.placement.items() if place != "cpu"]
    assert sorted(kinds) == ["add"] * 3 + ["conv2d"] * 9 + ["dense"]
    result = module.run(case.inputs[0])
    assert result.cycles is not None and result.cycles <= 309_400


def test_the_cpu_baseline_is_no_straw_man() -> None:
    """At most 4.5 cycles per MAC on ResNet-8, and an arena close to what no plan can beat."""
    _, case = loaded("pretrainedResnet_quant")
    module = built("pretrainedResnet_quant", "diana.cpu", "rv32")
    result = module.run(case.inputs[0])
    macs = 12_501_632
    assert result.cycles is not None and result.cycles / macs <= 4.5
    assert module.l2_peak <= 1.1 * module.compiled.program.plan.bound
