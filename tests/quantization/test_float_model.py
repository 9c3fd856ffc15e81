"""Float networks with calibration data: what comes out, and what is refused."""

from __future__ import annotations

import importlib.util
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import htvm
from htvm.aot.reference import build_llvm_reference
from htvm.errors import DependencyError, InputError, ModelError, TargetError, UnsupportedError
from htvm.frontend.check import check
from htvm.model import Model, TensorInfo
from htvm.quantization import retarget

SAMPLES = np.random.default_rng(1).normal(0, 1, (24, 3, 8, 8)).astype(np.float32)


def network() -> onnx.ModelProto:
    """Convolution, batch normalisation, ReLU, average, dense; the batch size is left open."""
    rng = np.random.default_rng(0)
    tensors = {
        "w": rng.normal(0, 0.3, (8, 3, 3, 3)),
        "gamma": rng.uniform(0.5, 2, 8),
        "beta": rng.normal(0, 0.5, 8),
        "mean": rng.normal(0, 0.5, 8),
        "variance": rng.uniform(0.5, 2, 8),
        "v": rng.normal(0, 0.5, (8, 5)),
        "c": rng.normal(0, 0.2, 5),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "gamma", "beta", "mean", "variance"], ["b"]),
        helper.make_node("Relu", ["b"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "c"], ["y"], "dense"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantized(data: Any, target: str = "diana.digital") -> Model:
    """The network, quantized."""
    return htvm.quantize(network(), target, data, dimensions={"N": 1})


def test_close_to_the_float_network_on_the_accelerator(capsys: pytest.CaptureFixture[str]) -> None:
    model = quantized(SAMPLES)
    assert capsys.readouterr().out == ""
    module = htvm.build(model, "diana.digital", "host")
    report = module.compiled.retargeted.report
    assert report.changed and "of the given inputs" in report.reason
    session = onnxruntime.InferenceSession(network().SerializeToString())
    fresh = np.random.default_rng(2).normal(0, 1, (16, 1, 3, 8, 8)).astype(np.float32)
    wanted = np.stack([session.run(None, {"x": x})[0] for x in fresh])
    found = np.stack([module.run(x).outputs[0] for x in fresh])
    noise = np.square(wanted - found).sum() / np.square(wanted).sum()
    assert 10 * np.log10(1 / noise) > 28
    placed = {row.layer: row.placed for row in module.explain().rows}
    assert placed["conv2d_0"] == placed["dense_0"] == "digital"


def test_every_form_of_data_means_the_same(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=SAMPLES)
    np.save(tmp_path / "x.npy", SAMPLES)
    forms: list[Any] = [
        SAMPLES[:, None],
        {"x": SAMPLES},
        list(SAMPLES),
        ({"x": sample[None]} for sample in SAMPLES),
        tmp_path / "x.npz",
        str(tmp_path / "x.npy"),
    ]
    first = quantized(SAMPLES, "diana.cpu")
    for form in forms:
        other = quantized(form, "diana.cpu")
        assert other.module.script() == first.module.script()
        assert other.calibration is not None and first.calibration is not None
        np.testing.assert_array_equal(other.calibration["x"], first.calibration["x"])


def with_nan() -> np.ndarray:
    """Samples of which one holds a NaN."""
    samples = SAMPLES.copy()
    samples[5, 0, 0, 0] = np.nan
    return samples


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (SAMPLES[:, :2], "shape [24, 2, 8, 8]"),
        (SAMPLES[:0], "no calibration data"),
        ([], "no calibration data"),
        (with_nan(), "1 of 24 samples hold NaN"),
        ({"z": SAMPLES}, "'z'"),
        (7, "type int"),
        (SAMPLES.astype(complex), "type complex128"),
        ([SAMPLES[0], SAMPLES[0, :2]], "several shapes"),
        ([{"x": SAMPLES[0]}, {"y": SAMPLES[0]}], "sample 1"),
        ("nowhere.npz", "No such file"),
        (np.array("text"), "shape []"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_data_that_do_not_fit(
    data: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError) as error:
        quantized(data)
    assert words in str(error.value) and error.value.hint
    assert list(tmp_path.iterdir()) == []


def test_unequal_numbers_of_samples() -> None:
    from htvm.quantization.samples import stacked_samples

    infos = [TensorInfo("a", (1, 2), "float32"), TensorInfo("b", (1, 3), "int8")]
    with pytest.raises(InputError, match="5 of 'a', 4 of 'b'"):
        stacked_samples({"a": np.zeros((5, 2)), "b": np.zeros((4, 3), int)}, infos)
    with pytest.raises(InputError, match="outside the range of int8"):
        stacked_samples({"a": np.zeros((4, 2)), "b": np.full((4, 3), 200)}, infos)
    with pytest.raises(InputError, match="without names"):
        stacked_samples(np.zeros((5, 2)), infos)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros((4, 1, 3)), "the 4 calibration samples of input 'x' are 0 everywhere"),
        (np.full((1, 1, 3), 7), "the 1 calibration samples of input 'x' are 7 everywhere"),
        (np.tile([1, 2, 3], (4, 1)), "the 4 calibration samples of input 'x' are all the same"),
        (np.arange(12).reshape(4, 3), ""),
        (np.arange(3).reshape(1, 3), ""),
    ],
)
def test_samples_that_say_nothing_are_questioned(
    samples: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    from htvm.quantization.samples import stacked_samples

    with caplog.at_level(logging.WARNING):
        stacked_samples(samples, [TensorInfo("x", (1, 3), "float32")])
    assert said in caplog.text if said else not caplog.text


VARIANTS = {
    "a softmax at the end": (
        ["Conv", "Relu", "GlobalAveragePool", "Flatten", "Gemm", "Softmax"],
        {1: "w", 5: "v"},
    ),
    "an activation that is a product of two tensors": (
        ["Conv", "HardSwish", "GlobalAveragePool", "Flatten", "Gemm"],
        {1: "w", 5: "v"},
    ),
    "reshaped before it is quantized": (["Flatten", "MatMul"], {2: "u"}),
}


def chain(kinds: list[str], weights: dict[int, str]) -> onnx.ModelProto:
    """Operators one after the other; ``weights``: counted from 1, which has which weights."""
    rng = np.random.default_rng(3)
    shapes = {"w": (8, 3, 3, 3), "v": (8, 5), "u": (192, 5)}
    nodes, source = [], "x"
    for index, kind in enumerate(kinds, 1):
        target = "y" if index == len(kinds) else f"t{index}"
        operands = [source, *([weights[index]] if index in weights else [])]
        attributes = {"pads": [1, 1, 1, 1]} if kind == "Conv" else {}
        nodes.append(helper.make_node(kind, operands, [target], **attributes))
        source = target
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [
            numpy_helper.from_array(rng.normal(0, 0.3, shapes[name]).astype(np.float32), name)
            for name in weights.values()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_retargeted_around_what_the_core_does_not_have(variant: str) -> None:
    network = chain(*VARIANTS[variant])
    model = htvm.quantize(network, "diana.digital", SAMPLES)
    found = retarget(model)
    assert found.report.changed and found.model.inputs == model.inputs
    check(found.model.module)
    run = build_llvm_reference(found.model.module)
    session = onnxruntime.InferenceSession(network.SerializeToString())
    wanted = np.stack([session.run(None, {"x": x[None]})[0] for x in SAMPLES])
    made = np.stack([run([x[None]])[0] for x in SAMPLES])
    noise = np.square(wanted - made).sum() / np.square(wanted).sum()
    assert 10 * np.log10(1 / noise) > 28


def quantized_already() -> onnx.ModelProto:
    """A file with DequantizeLinear."""
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"])
    graph = helper.make_graph(
        [node],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(np.array(0.5, np.float32), "s")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def broken() -> onnx.ModelProto:
    """A network whose shapes contradict each other."""
    model = network()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    return model


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        (lambda: "nowhere.tflite", ModelError, "cannot be read"),
        (lambda: "nowhere.onnx", ModelError, "cannot be read"),
        (lambda: 7, ModelError, "a int is not a float model"),
        (quantized_already, ModelError, "quantized already"),
        (onnx.ModelProto, ModelError, "no graph"),
    ],
)
def test_models_that_are_none(model: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        htvm.quantize(model(), "diana", SAMPLES)


def test_a_network_that_contradicts_itself() -> None:
    data = np.zeros((4, 4, 8, 8), np.float32)
    with pytest.raises(ModelError, match="onnxruntime cannot quantize"):
        htvm.quantize(broken(), "diana", data, dimensions={"N": 1})


@pytest.mark.parametrize("size", ["N", "", None])
def test_an_open_batch_is_one_sample(size: str | None) -> None:
    model = network()
    for value in (model.graph.input[0], model.graph.output[0]):
        dimension = value.type.tensor_type.shape.dim[0]
        dimension.Clear()
        if size is not None:
            dimension.dim_param = size
    found = htvm.quantize(model, "diana", SAMPLES)
    assert found.inputs[0].shape == (1, 3, 8, 8) and found.outputs[0].shape == (1, 5)


def test_other_open_dimensions_are_named() -> None:
    high = network()
    high.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    with pytest.raises(UnsupportedError, match="'height', is dynamic.*--dimension height=..."):
        htvm.quantize(high, "diana", SAMPLES)
    sized = htvm.quantize(high, "diana", SAMPLES, dimensions={"height": 8})
    assert sized.inputs[0].shape == (1, 3, 8, 8)
    with pytest.raises(InputError, match="calibration data of shape"):
        htvm.quantize(high, "diana", SAMPLES, dimensions={"height": 9})


def test_a_network_of_the_zoo_is_quantized_already() -> None:
    with pytest.raises(ModelError, match="zoo:digits is quantized already.*htvm.build"):
        htvm.quantize("zoo:digits", "diana", SAMPLES)


def test_unknown_target() -> None:
    with pytest.raises(TargetError):
        htvm.quantize(network(), "diana.quantum", SAMPLES)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(DependencyError, match=r"htvm\[quantize\]"):
        quantized(SAMPLES)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_a_torch_program_without_torch() -> None:
    program = type("ExportedProgram", (), {"__module__": "torch.export.exported_program"})()
    with pytest.raises(DependencyError, match="package 'torch'"):
        htvm.quantize(program, "diana", SAMPLES)


def test_nan_for_a_model_with_float_inputs() -> None:
    model = quantized(SAMPLES, "diana.cpu")
    with pytest.raises(InputError, match="NaN"):
        htvm.build(model, "diana.digital", "host", data=with_nan()[:, None])
