"""QDQ files of one operator: what is imported equals onnxruntime, element for element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.onnx.affine_files import Array, File, ours, theirs

TYPES = ("int8", "uint8")
SHAPE = (1, 6, 9, 8)


def zero_of(dtype: str, signed: int) -> int:
    return signed + 128 if dtype == "uint8" else signed


def data(shape=SHAPE, seed: int = 0, spread: float = 2.0) -> Array:
    return np.random.default_rng(seed).normal(0.2, spread, shape).astype(np.float32)


def check(file: File, folder, inputs, *, least: float = 1.0, worst: float = 1.0) -> Array:
    """At least that part of the elements is equal, no one off by more steps of the output."""
    path = file.save(folder)
    (made,), (wanted,) = ours(path, inputs), theirs(path, inputs)
    assert made.shape == wanted.shape and made.dtype == wanted.dtype
    values = np.unique(wanted)
    assert values.size > 5
    step = np.diff(values).min()
    assert np.mean(made == wanted) >= least
    assert np.abs(made.astype(np.float64) - wanted).max() <= worst * step * 1.001
    return made


def weights(file: File, rng, shape, per_channel: bool, axis: int = 0) -> tuple[str, Array]:
    """A dequantized weight and its scales."""
    integers = rng.integers(-127, 128, shape).astype(np.int8)
    scale = np.float32(0.004)
    if per_channel:
        scale = rng.uniform(0.001, 0.008, shape[axis]).astype(np.float32)
    zeros = np.zeros(scale.shape, np.int8)
    name = file.constant(integers)
    return file.dequantize(name, scale, zeros, axis=axis if per_channel else None), scale


def bias(file: File, rng, scale: Array, channels: int) -> str:
    integers = rng.integers(-3000, 3000, channels).astype(np.int32)
    product = np.float32(0.031) * np.broadcast_to(scale, (channels,)).astype(np.float32)
    zeros = np.zeros(channels, np.int32)
    return file.dequantize(file.constant(integers), product, zeros, "int32", axis=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("relu", ["", "Relu", "Clip"])
def test_convolution(dtype: str, per_channel: bool, relu: str, tmp_path) -> None:
    rng, file = np.random.default_rng(1), File()
    x = file.through(file.input("x", SHAPE), 0.031, zero_of(dtype, -9), dtype)
    weight, scale = weights(file, rng, (7, 6, 3, 3), per_channel)
    y = file.node("Conv", [x, weight, bias(file, rng, scale, 7)], pads=[1, 0, 1, 1],
                  strides=[2, 1], kernel_shape=[3, 3])  # fmt: skip
    if relu == "Relu":
        y = file.node("Relu", [y])
    elif relu == "Clip":
        low, high = file.constant(0, "float32"), file.constant(6, "float32")
        y = file.node("Clip", [y, low, high])
    file.nodes[-1].output[0] = "y0"
    out = file.through("y0", 0.04, zero_of(dtype, -128 if relu else 3), dtype)
    file.output(out)
    check(file, tmp_path, [data()])


def test_depthwise_and_dilation(tmp_path) -> None:
    rng, file = np.random.default_rng(2), File()
    x = file.through(file.input("x", SHAPE), 0.031, 4)
    weight, scale = weights(file, rng, (6, 1, 3, 3), True)
    y = file.node("Conv", [x, weight, bias(file, rng, scale, 6)], group=6, auto_pad="SAME_UPPER")
    y = file.through(y, 0.02, -7)
    weight, scale = weights(file, rng, (5, 6, 2, 2), False)
    y = file.node("Conv", [y, weight], dilations=[2, 3])
    file.output(file.through(y, 0.02, 11))
    check(file, tmp_path, [data()], least=0.99)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm(dtype: str, trans_b: int, tmp_path) -> None:
    rng, file = np.random.default_rng(3), File()
    x = file.through(file.input("x", (1, 40)), 0.031, zero_of(dtype, 5), dtype)
    axis = 0 if trans_b else 1
    shape = (30, 40) if trans_b else (40, 30)
    weight, scale = weights(file, rng, shape, bool(trans_b), axis)
    y = file.node("Gemm", [x, weight, bias(file, rng, scale, 30)], transB=trans_b)
    file.output(file.through(y, 0.05, zero_of(dtype, -4), dtype))
    check(file, tmp_path, [data((1, 40))])


def test_matmul_of_several_rows_with_a_bias_added(tmp_path) -> None:
    rng, file = np.random.default_rng(4), File()
    x = file.through(file.input("x", (1, 5, 24)), 0.031, 5)
    weight, scale = weights(file, rng, (24, 13), False, 1)
    y = file.node("MatMul", [x, weight])
    shape = file.constant([13], "int64")
    summand = file.node("Reshape", [bias(file, rng, scale, 13), shape])
    y = file.node("Add", [y, summand])
    file.output(file.through(y, 0.05, -4))
    # onnxruntime adds in float32 here.
    check(file, tmp_path, [data((1, 5, 24))], least=0.97)


def test_product_that_stays_a_real(tmp_path) -> None:
    rng, file = np.random.default_rng(5), File()
    x = file.through(file.input("x", (1, 24)), 0.031, 5)
    weight, _ = weights(file, rng, (24, 13), False, 1)
    file.output(file.node("MatMul", [x, weight]))
    path, inputs = file.save(tmp_path), [data((1, 24))]
    np.testing.assert_allclose(ours(path, inputs)[0], theirs(path, inputs)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", TYPES)
def test_sums_and_products(op: str, dtype: str, tmp_path) -> None:
    # Round decimals would make many sums ties, which onnxruntime's kernels round as the order of
    # their float32 terms has it: another on each instruction set.
    file = File()
    a = file.through(file.input("a", SHAPE), 0.0313717, zero_of(dtype, 4), dtype)
    b = file.through(file.input("b", SHAPE), 0.0268331, zero_of(dtype, -30), dtype)
    y = file.node(op, [a, b])
    file.output(file.through(y, 0.0611197, zero_of(dtype, 7), dtype))
    check(file, tmp_path, [data(), data(seed=1)], least=0.999)


def test_constant_operands(tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", SHAPE), 0.031, 4)
    constant = np.random.default_rng(6).integers(-128, 128, (6, 1, 1)).astype(np.int8)
    y = file.node("Mul", [x, file.dequantize(file.constant(constant), 0.01, 2)])
    y = file.through(y, 0.02, -3)
    y = file.node("Add", [y, file.constant(0.37, "float32")])
    file.output(file.through(y, 0.02, 9))
    check(file, tmp_path, [data()], least=0.999)


@pytest.mark.parametrize("op", ["Add", "Mul", "Sub", "Div"])
def test_quantized_numbers_without_axes(op: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", SHAPE), 0.031, 4)
    number = file.dequantize(file.constant(np.int8(37)), 0.0123, 2)
    file.output(file.through(file.node(op, [x, number]), 0.03, 9))
    check(file, tmp_path, [data()], least=0.98)


@pytest.mark.parametrize("dtype", TYPES)
def test_pools(dtype: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", SHAPE), 0.031, zero_of(dtype, 4), dtype)
    y = file.node("MaxPool", [x], kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    y = file.through(y, 0.031, zero_of(dtype, 4), dtype)
    y = file.node("AveragePool", [y], kernel_shape=[2, 3], strides=[1, 2])
    file.output(file.through(y, 0.02, zero_of(dtype, -3), dtype))
    check(file, tmp_path, [data()], least=0.999)


@pytest.mark.parametrize("dtype", TYPES)
def test_global_average(dtype: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 40, 6, 5)), 0.031, zero_of(dtype, 4), dtype)
    y = file.node("GlobalAveragePool", [x])
    file.output(file.through(y, 0.011, zero_of(dtype, -3), dtype))
    check(file, tmp_path, [data((1, 40, 6, 5))])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("HardSigmoid", {}),
        ("HardSwish", {}),
        ("Elu", {}),
        ("Erf", {}),
        ("Exp", {}),
        ("Relu", {}),
        ("Neg", {}),
    ],
)
def test_functions(op: str, attributes, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 256)), 0.031, 4)
    y = file.node(op, [x], **attributes)
    file.output(file.through(y, 0.017, -20))
    every = (np.arange(-128, 128, dtype=np.float32)[None] - 4) * np.float32(0.031)
    # Exponentials differ in their last bits between mathematical libraries.
    check(file, tmp_path, [every], least=0.99)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax(dtype: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 6, 50)), 0.07, zero_of(dtype, 4), dtype)
    y = file.node("Softmax", [x], axis=-1)
    file.output(file.through(y, 1 / 256, zero_of(dtype, -128), dtype))
    check(file, tmp_path, [data((1, 6, 50))], least=0.99)


def test_movement(tmp_path) -> None:
    file = File()
    a = file.through(file.input("a", SHAPE), 0.031, 4)
    b = file.through(file.input("b", SHAPE), 0.05, -9)
    y = file.through(file.node("Concat", [a, b], axis=1), 0.05, -9)
    y = file.node("Pad", [y, file.constant([0, 1, 0, 2, 0, 0, 1, 1], "int64")])
    y = file.through(y, 0.05, -9)
    y = file.through(file.node("Transpose", [y], perm=[0, 2, 3, 1]), 0.05, -9)
    parts = [file.constant(part, "int64") for part in ([1, 0], [9, 11], [1, 2], [1, 2])]
    y = file.through(file.node("Slice", [y, *parts]), 0.05, -9)
    y = file.through(file.node("Reshape", [y, file.constant([1, -1, 13], "int64")]), 0.05, -9)
    y = file.through(file.node("Unsqueeze", [y, file.constant([0], "int64")]), 0.05, -9)
    y = file.through(file.node("Squeeze", [y, file.constant([0], "int64")]), 0.05, -9)
    file.output(file.through(file.node("Flatten", [y], axis=2), 0.05, -9))
    check(file, tmp_path, [data(), data(seed=1)])


@pytest.mark.parametrize("dtype", TYPES)
def test_integer_interface_keeps_its_type(dtype: str, tmp_path) -> None:
    file = File()
    x = file.dequantize(file.input("x", (1, 256), dtype), 0.031, zero_of(dtype, 4), dtype)
    y = file.node("Tanh", [x])
    file.output(file.quantize(y, 0.008, zero_of(dtype, 1), dtype), dtype)
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1).astype(dtype)[None]
    made = check(file, tmp_path, [every], least=0.99)
    assert made.dtype == dtype
