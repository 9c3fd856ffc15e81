"""Files with scales and zero points that are refused: what, where, and what to do."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import File, ours, theirs


def refused(file: File, folder, kind: type[HtvmError], *words: str) -> HtvmError:
    path = file.save(folder)
    with pytest.raises(kind) as caught:
        htvm.load(path)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def conv(file: File, x: str, shape=(4, 6, 3, 3), **options) -> str:
    weight = file.constant(np.ones(shape, np.int8))
    options.setdefault("scale", np.float32(0.01))
    zero = np.zeros(np.shape(options["scale"]), np.int8)
    axis = 0 if np.size(options["scale"]) > 1 else None
    dequantized = file.dequantize(weight, options["scale"], zero, axis=axis)
    return file.node("Conv", [x, dequantized], **options.get("attributes", {}))


def started(shape=(1, 6, 8, 8), scale: float = 0.1, zero: int = 0) -> tuple[File, str]:
    file = File()
    return file, file.through(file.input("x", shape), scale, zero)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scales_that_are_none(scale: float, tmp_path) -> None:
    file, x = started(scale=scale)
    file.output(file.through(conv(file, x), 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "scale", "QuantizeLinear_0", "1 of 6", "positive")


def test_weight_scale_that_is_zero(tmp_path) -> None:
    file, x = started()
    file.output(file.through(conv(file, x, scale=np.asarray([1, 0, 1, 1], "f4")), 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "scale 0.0", "DequantizeLinear_2", "calibrate")


def test_scale_that_is_missing(tmp_path) -> None:
    file = File()
    x = file.node("QuantizeLinear", [file.input("x", (1, 4)), ""])
    file.output(x, "uint8")
    refused(file, tmp_path, ModelError, "input 1 is missing", "QuantizeLinear_0")


@pytest.mark.parametrize("inputs", [[], [0.0, 0], [0.1, 0.5], [np.zeros(0), 0]])
def test_a_quantization_that_is_none_behind_a_rectifier(inputs, tmp_path) -> None:
    """Which kernel the sum has depends on it."""
    file, x = started((1, 4))
    ends = [file.constant(end, "float32") for end in (0, 6)]
    y = file.node("Clip", [file.node("Add", [x, x]), *ends])
    types = ["float32", "float32" if inputs[1:] == [0.5] else "int8"]
    given = [file.constant(item, dtype) for item, dtype in zip(inputs, types, strict=False)]
    file.output(file.node("QuantizeLinear", [y, *given]), "int8")
    refused(file, tmp_path, HtvmError, "QuantizeLinear_4")


def test_channels_that_do_not_match(tmp_path) -> None:
    file, x = started()
    file.output(file.through(conv(file, x, scale=np.full(3, 0.1, "f4")), 0.1, 0))
    refused(file, tmp_path, ModelError, "3 scales for 4 channels", "DequantizeLinear_2")


@pytest.mark.parametrize(
    ("scale", "zero", "words"),
    [
        ((2, 2), (2, 2), "scales of shape [2, 2] in 'c"),
        ((1, 1), (1, 1), "scales of shape [1, 1] in 'c"),
        ((4,), (), "scales of shape [4], and zero points of shape []"),
        ((4,), (1,), "scales of shape [4], and zero points of shape [1]"),
        ((4,), (4, 1), "scales of shape [4], and zero points of shape [4, 1]"),
        ((4,), (3,), "scales of shape [4], and zero points of shape [3]"),
        ((), (4,), "scales of shape [], and zero points of shape [4]"),
        ((), (1, 1), "scales of shape [], and zero points of shape [1, 1]"),
        ((6,), (6,), "6 scales for 4 channels"),
    ],
)
def test_scales_and_zero_points_of_other_shapes(scale, zero, words: str, tmp_path) -> None:
    file, x = started()
    scales, zeros = np.full(scale, 0.1, "f4"), np.zeros(zero, "int8")
    weight = file.constant(np.ones((4, 6, 3, 3), np.int8))
    weight = file.dequantize(weight, scales, zeros, axis=0)
    file.output(file.through(file.node("Conv", [x, weight]), 0.1, 0))
    refused(file, tmp_path, ModelError, words, "DequantizeLinear_2")


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_zero_points_of_an_activation_with_one_scale(op: str, tmp_path) -> None:
    file = File()
    x, ends = file.input("x", (1, 4)), {True: np.zeros(4, "int8"), False: 0}
    made = file.quantize(x, 0.1, ends[op == "QuantizeLinear"])
    file.output(file.dequantize(made, 0.1, ends[op == "DequantizeLinear"]))
    refused(file, tmp_path, ModelError, "[], and zero points of shape [4]", op)


def test_a_scale_in_a_row_of_one_is_a_number(tmp_path) -> None:
    file = File()
    x = file.quantize(file.input("x", (1, 4)), np.full(1, 0.1), 0)
    file.output(file.dequantize(x, 0.1, np.zeros(1, "int8")))
    data = np.asarray([[0.11, -0.3, 5.0, 99.0]], "f4")
    path = file.save(tmp_path)
    np.testing.assert_array_equal(ours(path, [data])[0], theirs(path, [data])[0])


def test_input_channels_that_do_not_match(tmp_path) -> None:
    file, x = started((1, 5, 8, 8))
    file.output(file.through(conv(file, x), 0.1, 0))
    refused(file, tmp_path, ModelError, "5 input channels", "Conv_3")


def test_bias_of_another_size(tmp_path) -> None:
    file, x = started()
    weight = file.dequantize(file.constant(np.ones((4, 6, 1, 1), np.int8)), 0.01, 0)
    bias = file.dequantize(file.constant(np.zeros(3), "int32"), 0.001, 0, "int32")
    file.output(file.through(file.node("Conv", [x, weight, bias]), 0.1, 0))
    refused(file, tmp_path, ModelError, "a bias of 3 values for 4 output channels", "Conv_4")


def test_zero_point_of_another_type(tmp_path) -> None:
    file = File()
    x = file.quantize(file.input("x", (1, 4)), 0.1, 0, "uint8")
    file.output(file.dequantize(x, 0.1, 0, "int8"))
    refused(file, tmp_path, ModelError, "data of type uint8 with a zero point of type int8")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"auto_pad": "NEAREST"}, ("auto_pad", "SAME_UPPER")),
        ({"pads": [1, 1]}, ("pads", "four")),
        ({"strides": [0, 1]}, ("strides", "positive")),
        ({"group": 4}, ("groups", "weights")),
        ({"kernel_shape": [2, 2]}, ("kernel_shape",)),
    ],
)
def test_attributes(attributes, words, tmp_path) -> None:
    file, x = started()
    file.output(file.through(conv(file, x, attributes=attributes), 0.1, 0))
    refused(file, tmp_path, HtvmError, "Conv_3", *words)


def test_operator_that_is_not_known(tmp_path) -> None:
    file, x = started()
    file.output(file.through(file.node("GlobalLpPool", [x]), 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "GlobalLpPool_2", "nearest supported form is Global")


def test_weights_computed_at_run_time(tmp_path) -> None:
    file, x = started()
    y = file.through(file.input("y", (4, 6, 1, 1)), 0.1, 0)
    file.output(file.through(file.node("Conv", [x, y]), 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "run time", "constant")


def test_products_of_shapes_that_do_not_fit(tmp_path) -> None:
    file, x = started((1, 6))
    y = file.through(file.input("y", (7, 3)), 0.1, 0)
    file.output(file.through(file.node("MatMul", [x, y]), 0.1, 0))
    refused(file, tmp_path, ModelError, "[1, 6] and [7, 3]")


def test_layer_norm_with_factors_of_another_shape(tmp_path) -> None:
    file, x = started((1, 6))
    factors = file.constant(np.ones(7), "float32")
    file.output(file.through(file.node("LayerNormalization", [x, factors]), 0.1, 0))
    refused(file, tmp_path, ModelError, "(1, 6) and (7,)")


def test_power_that_is_none_of_the_supported_ones(tmp_path) -> None:
    file, x = started((1, 6))
    y = file.node("Pow", [x, file.constant(1.7, "float32")])
    file.output(file.through(y, 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "a power of 1.7", "2.0")


def test_accumulators_beyond_32_bits(tmp_path) -> None:
    file, x = started((1, 6))
    weight = file.dequantize(file.constant(np.ones((6, 3), np.int8)), 1e-6, 0)
    bias = file.constant(np.full(3, 5e6), "float32")
    y = file.node("Add", [file.node("MatMul", [x, weight]), bias])
    file.output(file.through(y, 0.1, 0))
    refused(file, tmp_path, UnsupportedError, "does not fit int32")
