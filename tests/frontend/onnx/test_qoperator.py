"""QOperator files of one operator: what is imported equals onnxruntime, element for element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.onnx.affine_files import Array, File, ours, theirs
from tests.reference import onnx_session

TYPES = ("int8", "uint8")
SHAPE = (1, 6, 9, 8)
STEPS = {"int8": (0.0313717, 4), "uint8": (0.0313717, 132)}
OUT = {"int8": (0.0611197, -7), "uint8": (0.0611197, 121)}


def integers(dtype: str, shape=SHAPE, seed: int = 0) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def check(file: File, folder, inputs, least: float = 1.0) -> None:
    path = file.save(folder)
    (made,), (wanted,) = ours(path, inputs), theirs(path, inputs)
    assert made.dtype == wanted.dtype and made.shape == wanted.shape
    assert np.unique(wanted).size > 5
    assert np.mean(made == wanted) >= least
    assert np.abs(made.astype(np.int64) - wanted).max() <= 1


def layer_weight(file: File, shape, axis: int, per_channel: bool) -> tuple[list[str], Array]:
    rng = np.random.default_rng(1)
    scale = np.float32(0.004)
    if per_channel:
        scale = rng.uniform(0.001, 0.006, shape[axis]).astype(np.float32)
    zeros = np.zeros(scale.shape, np.int8)
    data = rng.integers(-127, 128, shape).astype(np.int8)
    return [file.constant(data), *file.step(scale, zeros, "int8")], scale


def convolution(dtype: str, per_channel: bool) -> tuple[File, Array]:
    """A file of a QLinearConv, and data for it."""
    file, rng = File(), np.random.default_rng(2)
    x = file.input("x", SHAPE, dtype)
    weight, _ = layer_weight(file, (7, 6, 3, 3), 0, per_channel)
    bias = file.constant(rng.integers(-5000, 5000, 7), "int32")
    inputs = [x, *file.step(*STEPS[dtype], dtype), *weight, *file.step(*OUT[dtype], dtype), bias]
    y = file.node("QLinearConv", inputs, pads=[1, 1, 0, 1], strides=[1, 2])
    file.output(y, dtype)
    return file, integers(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("per_channel", [False, True])
def test_convolution(dtype: str, per_channel: bool, tmp_path) -> None:
    file, data = convolution(dtype, per_channel)
    check(file, tmp_path, [data])


def matmul(dtype: str) -> tuple[File, Array]:
    """A file of a QLinearMatMul, and data for it."""
    file = File()
    x = file.input("x", (1, 5, 24), dtype)
    weight, _ = layer_weight(file, (24, 13), 1, False)
    inputs = [x, *file.step(*STEPS[dtype], dtype), *weight, *file.step(*OUT[dtype], dtype)]
    file.output(file.node("QLinearMatMul", inputs), dtype)
    return file, integers(dtype, (1, 5, 24))


@pytest.mark.parametrize("dtype", TYPES)
def test_matmul(dtype: str, tmp_path) -> None:
    file, data = matmul(dtype)
    check(file, tmp_path, [data])


def gemm(trans_b: int, quantized: bool) -> tuple[File, Array]:
    """A file of a QGemm, and data for it."""
    file, rng = File(), np.random.default_rng(3)
    x = file.input("x", (1, 24), "int8")
    shape = (13, 24) if trans_b else (24, 13)
    weight, _ = layer_weight(file, shape, 0 if trans_b else 1, bool(trans_b))
    bias = file.constant(rng.integers(-5000, 5000, 13), "int32")
    inputs = [x, *file.step(*STEPS["int8"], "int8"), *weight, bias]
    if quantized:
        inputs += file.step(*OUT["int8"], "int8")
    y = file.node("QGemm", inputs, domain="com.microsoft", transB=trans_b)
    file.output(y, "int8" if quantized else "float32")
    return file, integers("int8", (1, 24))


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("quantized", [True, False])
def test_gemm(trans_b: int, quantized: bool, tmp_path) -> None:
    file, data = gemm(trans_b, quantized)
    if quantized:
        check(file, tmp_path, [data])
    else:
        path = file.save(tmp_path)
        np.testing.assert_allclose(ours(path, [data])[0], theirs(path, [data])[0], rtol=1e-6)


PRODUCTS = {
    **{f"convolution-{t}-{c}": convolution(t, c) for t in TYPES for c in (False, True)},
    **{f"matmul-{t}": matmul(t) for t in TYPES},
    **{f"gemm-{b}-{q}": gemm(b, q) for b in (0, 1) for q in (True, False)},
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_onnxruntime_equals_the_definition_that_replaces_it(name: str, tmp_path) -> None:
    file, data = PRODUCTS[name]
    path = file.save(tmp_path)
    with pytest.warns(onnx_session.FromDefinition, match="no exact kernel"):
        defined = onnx_session.quantized(path, onnx_session.Arithmetic.NONE)([data])
    for made, wanted in zip(defined, theirs(path, [data]), strict=True):
        assert made.dtype == wanted.dtype and np.unique(wanted).size > 5
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("constant", [False, True])
def test_sums_and_products(op: str, dtype: str, constant: bool, tmp_path) -> None:
    file, second = File(), integers(dtype, seed=5)
    a = file.input("a", SHAPE, dtype)
    b = file.constant(second) if constant else file.input("b", SHAPE, dtype)
    steps = [file.step(*STEPS[dtype], dtype), file.step(0.0268331, STEPS[dtype][1] - 30, dtype)]
    inputs = [a, *steps[0], b, *steps[1], *file.step(*OUT[dtype], dtype)]
    file.output(file.node(op, inputs, domain="com.microsoft"), dtype)
    data = [integers(dtype)] if constant else [integers(dtype), second]
    check(file, tmp_path, data, least=0.999)


@pytest.mark.parametrize("dtype", TYPES)
def test_pools_and_concatenation(dtype: str, tmp_path) -> None:
    file = File()
    a, b = file.input("a", SHAPE, dtype), file.input("b", SHAPE, dtype)
    step, out = file.step(*STEPS[dtype], dtype), file.step(*OUT[dtype], dtype)
    joined = file.node("QLinearConcat", [*out, a, *step, b, *out], domain="com.microsoft", axis=1)
    pooled = file.node(
        "QLinearAveragePool", [joined, *out, *step], domain="com.microsoft",
        kernel_shape=[2, 3], strides=[2, 2],
    )  # fmt: skip
    y = file.node(
        "QLinearGlobalAveragePool", [pooled, *step, *file.step(0.0101, STEPS[dtype][1], dtype)],
        domain="com.microsoft", channels_last=0,
    )  # fmt: skip
    file.output(y, dtype)
    check(file, tmp_path, [integers(dtype), integers(dtype, seed=1)], least=0.9)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_functions(op: str, dtype: str, tmp_path) -> None:
    file = File()
    x = file.input("x", (1, 256), dtype)
    inputs = [x, *file.step(*STEPS[dtype], dtype), *file.step(0.0071, OUT[dtype][1], dtype)]
    file.output(file.node(op, inputs, domain="com.microsoft"), dtype)
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1).astype(dtype)[None]
    check(file, tmp_path, [every], least=0.99)


def test_softmax(tmp_path) -> None:
    file = File()
    x = file.input("x", (1, 50), "uint8")
    inputs = [x, *file.step(0.021, 7, "uint8"), *file.step(1 / 256, 0, "uint8")]
    y = file.node("QLinearSoftmax", inputs, domain="com.microsoft", axis=-1, opset=13)
    file.output(y, "uint8")
    check(file, tmp_path, [integers("uint8", (1, 50))], least=0.98)


@pytest.mark.parametrize("dtype", TYPES)
def test_integer_sums(dtype: str, tmp_path) -> None:
    file = File()
    x = file.input("x", SHAPE, dtype)
    rng = np.random.default_rng(6)
    weight = file.constant(rng.integers(-127, 128, (7, 6, 3, 3)), "int8")
    zeros = [file.constant(STEPS[dtype][1], dtype), file.constant(0, "int8")]
    y = file.node("ConvInteger", [x, weight, *zeros], pads=[1, 1, 1, 1])
    y = file.node("Cast", [y], to=1)
    y = file.node("Mul", [y, file.constant(0.0003, "float32")])
    file.output(file.quantize(y, 0.31, 3), "int8")
    check(file, tmp_path, [integers(dtype)])


def test_matrices_of_integers(tmp_path) -> None:
    file = File()
    x = file.input("x", (1, 24), "uint8")
    weight = file.constant(np.random.default_rng(7).integers(-127, 128, (24, 13)), "int8")
    y = file.node("MatMulInteger", [x, weight, file.constant(131, "uint8")])
    file.output(y, "int32")
    path, data = file.save(tmp_path), [integers("uint8", (1, 24))]
    np.testing.assert_array_equal(ours(path, data)[0], theirs(path, data)[0])


def test_reals_at_the_borders(tmp_path) -> None:
    file = File()
    x = file.quantize(file.input("x", SHAPE), *STEPS["uint8"], "uint8")
    weight, _ = layer_weight(file, (7, 6, 1, 1), 0, True)
    inputs = [x, *file.step(*STEPS["uint8"], "uint8"), *weight, *file.step(*OUT["uint8"], "uint8")]
    y = file.node("QLinearConv", inputs)
    file.output(file.dequantize(y, *OUT["uint8"], "uint8"))
    path, data = file.save(tmp_path), np.random.default_rng(8).normal(0, 2, SHAPE)
    data = data.astype(np.float32)
    np.testing.assert_array_equal(ours(path, [data])[0], theirs(path, [data])[0])
