"""The quantized ONNX networks of the model set: imported exactly, and retargeted to DIANA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import htvm
from htvm.quantization import retarget
from tests.reference import onnx_session
from tests.reference.interpreter import interpret

Array = npt.NDArray[Any]

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "models" / "qdq_onnx"
QUANTIZED = ("tinycnn_qdq_pertensor", "tinycnn_qdq_perchannel")


def golden(name: str) -> tuple[Path, Array, Array]:
    """The file, its inputs, and what onnxruntime computes."""
    path = _FOLDER / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not at hand: no folder {_FOLDER}")
    with np.load(_FOLDER / f"{name}_golden.npz") as arrays:
        return path, arrays["inputs"], arrays["outputs_ort_opt"]


def outputs_of(module: Any, inputs: Array) -> Array:
    return np.stack([interpret(module, [x]).outputs[0] for x in inputs])


@pytest.mark.parametrize("name", QUANTIZED)
def test_equal_to_onnxruntime(name: str) -> None:
    path, inputs, outputs = golden(name)
    model = htvm.load(path)
    assert (model.inputs[0].dtype, model.outputs[0].dtype) == ("float32", "float32")
    assert model.scheme == "onnx"
    np.testing.assert_array_equal(outputs_of(model.module, inputs), outputs)


def test_more_inputs_than_the_golden_ones(tmp_path) -> None:
    path, _, _ = golden("tinycnn_qdq_perchannel")
    inputs = np.random.default_rng(9).normal(0, 1, (24, 1, 3, 32, 32)).astype(np.float32)
    run = onnx_session.quantized(path)
    wanted = np.stack([run([x])[0] for x in inputs])
    np.testing.assert_array_equal(outputs_of(htvm.load(path).module, inputs), wanted)


def test_float_network() -> None:
    path, inputs, outputs = golden("tinycnn_fp32")
    model = htvm.load(path)
    made = outputs_of(model.module, inputs)
    np.testing.assert_allclose(made, outputs, rtol=1e-5, atol=1e-5)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", QUANTIZED)
def test_retargeted_with_data(name: str) -> None:
    path, _, _ = golden(name)
    model = htvm.load(path)
    data = np.random.default_rng(1).normal(0, 1, (32, 1, 3, 32, 32)).astype(np.float32)
    fresh = np.random.default_rng(2).normal(0, 1, (24, 1, 3, 32, 32)).astype(np.float32)
    result = retarget(model, data=data)
    assert result.model.inputs == model.inputs and result.model.outputs == model.outputs
    before, after = (outputs_of(m.module, fresh) for m in (model, result.model))
    noise = ((after - before) ** 2).sum()
    sqnr = 10 * np.log10((before**2).sum() / noise)
    agreement = np.mean(before.argmax(-1) == after.argmax(-1))
    print(f"{name}: SQNR {sqnr:.1f} dB, same decision {agreement:.0%}")
    assert sqnr >= 34
    assert agreement >= 0.96


def test_on_the_digital_core() -> None:
    path, inputs, _ = golden("tinycnn_qdq_perchannel")
    data = np.random.default_rng(1).normal(0, 1, (16, 1, 3, 32, 32)).astype(np.float32)
    built = htvm.build(htvm.load(path), target="diana.digital", data=data)
    run = built.run(inputs[0])
    wanted = interpret(built.model.module, [inputs[0]]).outputs[0]
    np.testing.assert_array_equal(run.outputs[0], wanted)
    layers = {layer.name for layer in run.layers}
    assert {"quantize_0", "conv2d_0", "dequantize_0"} <= layers


@pytest.mark.slow
@pytest.mark.parametrize("name", QUANTIZED)
def test_on_the_host_core(name: str) -> None:
    path, inputs, outputs = golden(name)
    built = htvm.build(htvm.load(path), target="diana.cpu")
    for x, wanted in zip(inputs, outputs, strict=True):
        np.testing.assert_array_equal(built.run(x).outputs[0], wanted)
