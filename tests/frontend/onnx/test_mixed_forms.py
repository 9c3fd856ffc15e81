"""Forms that quantizers write beside the usual ones, against onnxruntime, element by element.

Maps of one axis, transposed convolutions, products of two tensors, parts of a concatenation that
are constant, and pools whose input or result is not quantized.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.frontend.onnx.affine_files import Array, File, ours, theirs

MS = "com.microsoft"
STEP = (0.031, 4, "int8")


def data(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0.2, 2.0, shape).astype(np.float32)


def check(file: File, folder, inputs: list[Array], *, atol: float = 0.0) -> None:
    path = file.save(folder)
    (made,), (wanted,) = ours(path, inputs), theirs(path, inputs)
    assert np.unique(wanted).size > 2
    np.testing.assert_allclose(made, wanted, rtol=0, atol=atol)


def weight(file: File, shape: tuple[int, ...], axis: int | None = None) -> str:
    rng = np.random.default_rng(1)
    integers = file.constant(rng.integers(-127, 128, shape).astype(np.int8))
    if axis is None:
        return file.dequantize(integers, 0.004, 0)
    scale = rng.uniform(0.001, 0.008, shape[axis]).astype(np.float32)
    return file.dequantize(integers, scale, np.zeros(shape[axis], np.int8), axis=axis)


@pytest.mark.parametrize("groups", [1, 4])
def test_convolution_over_one_axis(groups: int, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 4, 21)), *STEP)
    y = file.node(
        "Conv", [x, weight(file, (8, 4 // groups, 5), 0)], group=groups, strides=[2],
        pads=[2, 1], dilations=[2],
    )  # fmt: skip
    file.output(file.through(y, 0.05, -3))
    check(file, tmp_path, [data((1, 4, 21))])


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 2]},
        {"strides": [2, 3], "pads": [1, 0, 2, 1], "output_padding": [1, 0]},
        {"dilations": [2, 1], "pads": [3, 2, 0, 1]},
        {"strides": [2, 1], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 2], "group": 2},
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolution(attributes, bias: bool, tmp_path) -> None:
    file, groups = File(), attributes.get("group", 1)
    x = file.through(file.input("x", (1, 4, 5, 6)), *STEP)
    channels = 6 // groups
    operands = [x, weight(file, (4, channels, 3, 2), None if bias else 1)]
    if bias:
        drawn = np.random.default_rng(2).integers(-3000, 3000, 6).astype(np.int32)
        step = np.float32(0.031) * np.float32(0.004)
        operands.append(file.dequantize(file.constant(drawn), step, 0, "int32"))
    y = file.node("ConvTranspose", operands, **attributes)
    file.output(file.through(y, 0.0513, -3))
    check(file, tmp_path, [data((1, 4, 5, 6))])


def test_transposed_convolution_over_one_axis(tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 4, 9)), *STEP)
    y = file.node("ConvTranspose", [x, weight(file, (4, 5, 3))], strides=[2], pads=[1, 0])
    file.output(file.through(y, 0.0513, -3))
    check(file, tmp_path, [data((1, 4, 9))])


def test_a_product_of_two_tensors(tmp_path) -> None:
    file = File()
    steps = [file.step(*STEP), file.step(0.027, -9, "int8"), file.step(0.37, 2, "int8")]
    a, b = file.input("a", (1, 2, 6, 20), "int8"), file.input("b", (1, 2, 20, 5), "int8")
    file.output(file.node("QLinearMatMul", [a, *steps[0], b, *steps[1], *steps[2]]), "int8")
    rng = np.random.default_rng(4)
    shapes = ((1, 2, 6, 20), (1, 2, 20, 5))
    check(file, tmp_path, [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes])


@pytest.mark.parametrize("first", [False, True])
def test_a_concatenation_with_a_constant(first: bool, tmp_path) -> None:
    file = File()
    x, out = file.input("x", (1, 3, 8), "int8"), file.step(0.05, 2, "int8")
    constant = file.constant(np.random.default_rng(5).integers(-128, 128, (1, 2, 8), np.int8))
    parts = [[x, *file.step(*STEP)], [constant, *file.step(0.04, -5, "int8")]]
    parts = parts[::-1] if first else parts
    inputs = [*out, *parts[0], *parts[1]]
    file.output(file.node("QLinearConcat", inputs, domain=MS, axis=1), "int8")
    given = np.random.default_rng(6).integers(-128, 128, (1, 3, 8)).astype(np.int8)
    check(file, tmp_path, [given])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_an_average_over_one_axis(dtype: str, tmp_path) -> None:
    file, zero = File(), 128 if dtype == "uint8" else 0
    x = file.input("x", (1, 3, 16), dtype)
    inputs = [x, *file.step(0.031, 4 + zero, dtype), *file.step(0.022, zero - 7, dtype)]
    y = file.node("QLinearAveragePool", inputs, domain=MS, kernel_shape=[3], strides=[2])
    file.output(y, dtype)
    limits = np.iinfo(dtype)
    given = np.random.default_rng(7).integers(limits.min, limits.max + 1, (1, 3, 16))
    check(file, tmp_path, [given.astype(dtype)])


@pytest.mark.parametrize("quantized", [False, True])
def test_a_maximum_of_a_rectified_result(quantized: bool, tmp_path) -> None:
    """As quantizers leave it where zero is in the middle of the integers."""
    file = File()
    x = file.through(file.input("x", (1, 4, 9, 8)), *STEP)
    y = file.node("Relu", [file.node("Conv", [x, weight(file, (5, 4, 3, 3), 0)])])
    y = file.node("MaxPool", [y], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1])
    file.output(file.through(y, 0.05, 0) if quantized else y)
    check(file, tmp_path, [data((1, 4, 9, 8))], atol=0 if quantized else 1e-5)


@pytest.mark.parametrize("op", ["AveragePool", "GlobalAveragePool", "MaxPool", "ReduceMean"])
def test_a_pool_whose_result_stays_real(op: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 4, 9, 8)), *STEP)
    attributes = {"ReduceMean": {"axes": [2, 3], "keepdims": 0}, "GlobalAveragePool": {}}
    y = file.node(op, [x], **attributes.get(op, {"kernel_shape": [3, 2]}))
    file.output(file.node("Relu", [y]))
    check(file, tmp_path, [data((1, 4, 9, 8))], atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads"), [((3, 1), (3, 1), (2, 0, 0, 0)), ((3, 2), (2, 3), (1, 1, 0, 0))]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_windows_count_nothing_behind_the_padding(kernel, strides, pads, dtype, tmp_path) -> None:
    """With ceil_mode, as the operator is defined; onnxruntime's kernel of integers counts that."""
    shape, zero = (1, 2, 8, 6), 4 + 128 * (dtype == "uint8")
    file = File()
    x = file.through(file.input("x", shape), 0.031, zero, dtype)
    pool = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    y = file.node("AveragePool", [x], **pool, ceil_mode=1, count_include_pad=1)
    file.output(file.through(y, 0.0203, zero, dtype))
    path = file.save(tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": data(shape)})
    (made,) = ours(path, [data(shape)])
    np.testing.assert_array_equal(made, wanted)
