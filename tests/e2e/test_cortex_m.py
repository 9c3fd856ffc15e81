"""Networks on Cortex-M cores, in the emulator, against their goldens and references."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import htvm
from byoc_dory.errors import TargetError
from htvm.cli.arguments import open_model
from htvm.inputs import seeded_inputs
from tests.models import MODELS, golden

CORES = ("cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33")


@pytest.fixture(autouse=True)
def emulator() -> None:
    pytest.importorskip("unicorn", reason="the emulator is not installed: pip install unicorn")


@cache
def digits() -> htvm.Model:
    return open_model("zoo:digits")


@cache
def built(name: str, core: str) -> htvm.Module:
    model = digits() if name == "digits" else htvm.load(golden(name).path)
    return htvm.build(model, core)


@pytest.mark.parametrize(
    "core",
    [core if core == "cortex_m4" else pytest.param(core, marks=pytest.mark.slow) for core in CORES],
)
def test_digits_equal_the_reference(core: str) -> None:
    module = built("digits", core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)
    # Counts are instructions, and nothing calls them cycles.
    assert result.cycles is None and result.latency_ms is None
    counts = [layer.instructions for layer in result.layers if layer.instructions is not None]
    assert result.instructions is not None
    assert 0.99 < sum(counts) / result.instructions < 1
    assert 0 < (result.stack_bytes or 0) < module.compiled.target.soc.host.stack
    report = module.report()
    assert report.summary.instructions == result.instructions
    text = str(report)
    assert f"{result.instructions:,} instructions" in text and "flash: " in text
    assert "cycles" not in text.replace("no cycles: an emulator ran it", "")


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("name", MODELS)
def test_mlperf_tiny_equals_tflite_micro(name: str, core: str) -> None:
    case, module = golden(name), built(name, core)
    for number in (0, len(case.inputs) - 1):
        (output,) = module.run(case.inputs[number]).outputs
        np.testing.assert_array_equal(output, case.outputs[number], err_msg=f"golden {number}")


def test_the_same_kernels_run_natively() -> None:
    module = htvm.build(digits(), "cortex_m4", "host")
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    assert result.instructions is None
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)


def test_platforms_belong_to_cores() -> None:
    with pytest.raises(TargetError, match="Cortex-M4.*platform='arm'"):
        htvm.build(digits(), "cortex_m4", "rv32")
    with pytest.raises(TargetError, match="is no Cortex-M core"):
        htvm.build(digits(), "generic.cpu", "arm")
