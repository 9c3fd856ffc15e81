"""Integer research dialects in ONNX: every file compiled, run, and equal to its golden output."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.errors import L2OverflowError
from tests.models_onnx import FILES, golden, onnx_path
from tests.reference.interpreter import interpret

# Compiled and run every day; the interpreter takes all but the large ones every day.
EVERY_DAY = (
    "deeploy_kernels/Integer/Conv/DW_3x3_RQ",
    "deeploy_kernels/Integer/GEMM/Regular_RQPerRow",
    "deeploy_kernels/Integer/Softmax/Regular",
    "deeploy_kernels/Integer/TrueIntegerDiv",
    "deeploy_networks/Transformer_DeepQuant",
)
TOO_LARGE_FOR_DIANA = ("deeploy_networks/microLlama/INT8/microLlama1",)
DIALECTS = {"match_models": "quantlib", "Mixed": "reals", "DeepQuant": "reals"}


def dialect_of(name: str) -> str:
    return next((dialect for part, dialect in DIALECTS.items() if part in name), "PULP")


def slow_if_large(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.slow if name in TOO_LARGE_FOR_DIANA else ())


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", [slow_if_large(name) for name in FILES])
def test_the_integer_form_computes_the_golden_output(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = onnx_path(name)
    with caplog.at_level(logging.INFO, "htvm.frontend.onnx"):
        model = htvm.load(path)
    assert dialect_of(name) in caplog.text
    inputs, outputs = golden(name, model)
    for array, wanted in zip(interpret(model.module, inputs).outputs, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)


def slow_unless_small(name: str) -> Any:
    return pytest.param(name, marks=() if name in EVERY_DAY else pytest.mark.slow)


@pytest.mark.parametrize("name", [slow_unless_small(name) for name in FILES])
def test_the_simulated_core_computes_the_golden_output(name: str) -> None:
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    result = htvm.build(model, target="generic.cpu").run(inputs)
    for array, wanted, info in zip(result.outputs, outputs, model.outputs, strict=True):
        assert array.dtype.name == info.dtype
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_dianas_host_computes_the_golden_output_where_it_fits(name: str) -> None:
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    if name in TOO_LARGE_FOR_DIANA:
        with pytest.raises(L2OverflowError):
            htvm.build(model, target="diana.cpu")
        return
    result = htvm.build(model, target="diana.cpu").run(inputs)
    for array, wanted in zip(result.outputs, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_names_and_types_of_many_inputs_and_outputs_survive() -> None:
    model = htvm.load(onnx_path("deeploy_networks/microLlama/INT8/microLlama1"))
    assert [info.name for info in model.inputs][:4] == ["input", "x.9", "MatMul_2", "Concat_3"]
    assert {info.dtype for info in model.inputs} == {"int8"}
    assert len(model.outputs) == 17
    assert model.outputs[1].shape == (1, 16, 2, 4)


def test_a_layer_and_its_requantization_are_one_operator() -> None:
    from patterns.reading.read import graph_of

    model = htvm.load(onnx_path("deeploy_networks/miniMobileNet"))
    kinds = [node.kind for node in graph_of(model.module).in_order]
    assert kinds == ["conv2d", "depthwise", "conv2d", "depthwise", "reshape", "dense"]
