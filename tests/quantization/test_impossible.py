"""Networks that cannot be retargeted keep their numbers, say why, and run on the host."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import htvm
from htvm.build_options import BuildOptions
from htvm.errors import PolicyError, UnsupportedError
from htvm.pipeline import compile_model
from tests.models_onnx import golden, onnx_path

UNSIGNED = "deeploy_kernels/Integer/Conv/Regular_3x3_RQ"
REASON = "an input of type uint8 that is not quantized at once; input 'input'"


@pytest.mark.parametrize("target", ["diana.digital", "dla"])
def test_a_network_of_unsigned_tensors_runs_on_the_host(
    target: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = htvm.load(onnx_path(UNSIGNED))
    inputs, outputs = golden(UNSIGNED, model)
    with caplog.at_level(logging.WARNING):
        module = htvm.build(model, target=target, platform="host")
    assert REASON in caplog.text
    assert set(module.placement.values()) == {"cpu"}
    for found, wanted in zip(module.run(inputs).outputs, outputs, strict=True):
        np.testing.assert_array_equal(found, wanted)
    report = module.report()
    assert any(REASON in note for note in report.summary.notes)
    assert str(module.compiled.retargeted.report).endswith(REASON)


def test_a_network_that_must_run_on_an_accelerator_is_an_error() -> None:
    model = htvm.load(onnx_path(UNSIGNED))
    layer = next(node.name for node in model.graph.in_order if node.layer is not None)
    with pytest.raises((UnsupportedError, PolicyError)):
        htvm.build(model, target="dla", platform="host", policy={layer: "dla"})


@pytest.mark.slow
def test_networks_that_can_be_retargeted_are() -> None:
    found = compile_model(htvm.zoo.digits(), htvm.soc("dla"), BuildOptions()).retargeted
    assert found.report.changed and not found.report.impossible
