"""Every kind of kernel, compiled natively, equals numpy: odd sizes, strides, one-sided padding."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op as R

from byoc_dory.layers import Shift
from htvm.aot.cpu import compile_cpu
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from tests.aot.cpu import native
from tests.aot.cpu.modules import (
    Case,
    bias_of,
    conv_case,
    int8,
    module,
    mul_shift,
    requantized,
    tflite,
)
from tests.reference import cpu_kernels as reference

MODES = native.MODES


def check_all(cases: dict[str, Case], mode: str, folder, compiler) -> None:
    """All cases in one library: starting a compiler takes longer than compiling."""
    codes = {
        label: native.compiled(case.module, f"net{number}", mode)
        for number, (label, case) in enumerate(cases.items())
    }
    loaded = native.library(codes.values(), folder, compiler)
    for label, case in cases.items():
        (result,) = native.run(codes[label], loaded, case.inputs)
        expected = case.expected.reshape(result.shape)
        np.testing.assert_array_equal(result, expected, err_msg=label)


def check(case: Case, mode: str, folder, compiler) -> None:
    check_all({"": case}, mode, folder, compiler)


def check_defined(case: Case, mode: str, folder, compiler) -> None:
    """The same, and nothing on the way is undefined behaviour."""
    native.in_child(lambda: check(case, mode, folder, native.trapping(compiler)))


CONVOLUTIONS = {
    "3x3": dict(y=7, x=7, c=16, k=18, filter=(3, 3), stride=(1, 1), padding=(1, 1, 1, 1)),
    "first": dict(y=9, x=8, c=3, k=16, filter=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    "one output": dict(y=3, x=3, c=5, k=1, filter=(3, 3), stride=(1, 1), padding=(0, 0, 0, 0)),
    "odd": dict(y=5, x=11, c=7, k=5, filter=(5, 3), stride=(2, 1), padding=(2, 0, 1, 1)),
    "one channel": dict(y=13, x=10, c=1, k=8, filter=(10, 4), stride=(2, 2), padding=(4, 1, 5, 1)),
    "1x1": dict(y=5, x=5, c=12, k=7, filter=(1, 1), stride=(1, 1), padding=(0, 0, 0, 0)),
    "1x1 wide": dict(y=1, x=1, c=33, k=9, filter=(1, 1), stride=(1, 1), padding=(0, 0, 0, 0)),
    "1x1 stride 2": dict(y=7, x=6, c=16, k=6, filter=(1, 1), stride=(2, 2), padding=(0, 0, 0, 0)),
    "7x7": dict(y=9, x=9, c=2, k=3, filter=(7, 7), stride=(1, 1), padding=(3, 3, 3, 3)),
}


@pytest.mark.rotating(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scheme", ["tflite", "shift", "mul_shift"])
def test_conv2d(scheme, mode, tmp_path, compiler):
    cases = {name: conv_case(**sizes, scheme=scheme) for name, sizes in CONVOLUTIONS.items()}
    check_all(cases, mode, tmp_path, compiler)


DEPTHWISE = {
    "3x3": dict(y=7, x=5, c=10, filter=(3, 3), stride=(1, 1), padding=(1, 1, 1, 1)),
    "stride 2": dict(y=9, x=9, c=6, filter=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    "5x1": dict(y=8, x=3, c=3, filter=(5, 1), stride=(1, 1), padding=(2, 0, 2, 0)),
    "narrow": dict(y=3, x=3, c=4, filter=(3, 3), stride=(1, 1), padding=(0, 0, 0, 0)),
}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scheme", ["tflite", "shift"])
def test_depthwise(scheme, mode, tmp_path, compiler):
    cases = {
        name: conv_case(**sizes, k=sizes["c"], groups=sizes["c"], scheme=scheme)
        for name, sizes in DEPTHWISE.items()
    }
    check_all(cases, mode, tmp_path, compiler)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_channels_first(mode, tmp_path, compiler):
    sizes = dict(y=7, x=9, c=6, k=6, filter=(3, 3), stride=(2, 1), padding=(1, 0, 0, 1))
    cases = {
        f"{groups} groups, {scheme}": conv_case(
            **sizes, groups=groups, scheme=scheme, layout="NCHW"
        )
        for groups in (1, 6)
        for scheme in ("shift", "tflite")
    }
    check_all(cases, mode, tmp_path, compiler)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_dilated_and_grouped_convolutions(mode, tmp_path, compiler):
    """Rare enough to have no schedule of their own."""
    sizes = dict(y=9, x=9, c=4, k=6, filter=(3, 3), stride=(1, 1), padding=(2, 2, 2, 2))
    cases = {
        "dilated": conv_case(**sizes, scheme="tflite", dilation=2),
        "dilated, NCHW": conv_case(**sizes, scheme="shift", dilation=2, layout="NCHW"),
        "2 groups": conv_case(**sizes, scheme="tflite", groups=2),
        "multiplier 2": conv_case(**{**sizes, "k": 8}, scheme="tflite", groups=4),
    }
    check_all(cases, mode, tmp_path, compiler)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_dense(mode, tmp_path, compiler):
    cases = {}
    for channels, k in [(16, 10), (33, 128), (8, 1), (128, 13)]:
        rng = np.random.default_rng([channels, k])
        data, weight, bias = int8(rng, 1, channels), int8(rng, k, channels), bias_of(rng, k)
        acc = data.astype("int64") @ weight.T.astype("int64") + bias
        for requant in (tflite(rng, k, -7), tflite(rng, 1, -7), Shift(9), mul_shift(rng, k)):
            built = module(
                {"x": data.shape},
                lambda bb, v, w=weight, b=bias, r=requant: Dense(w, b, r).write(bb, [v], "dense_0"),
            )
            expected = requantized(acc, requant, (-128, 127), reference)
            cases[f"{channels} to {k}, {requant}"] = Case(built, {"x": data}, expected)
    check_all(cases, mode, tmp_path, compiler)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factors", [(0, 3), (1, 2), (-3, 0), (-1, 0)])
def test_requantize_by_any_factor(factors, mode, tmp_path, compiler):
    """Factors above 1/2 and above 1 too, where the short form does not hold."""
    rng = np.random.default_rng(5)
    data, weight, bias = int8(rng, 1, 4), int8(rng, 8, 4) // 32, bias_of(rng, 8, 30)
    requant = tflite(rng, 8, 0)
    shifts = tuple(int(s) for s in rng.integers(factors[0], factors[1] + 1, 8))
    requant = type(requant)(requant.multiplier, shifts, requant.output_zero_point)
    acc = data.astype("int64") @ weight.T.astype("int64") + bias
    built = module(
        {"x": (1, 4)}, lambda bb, v: Dense(weight, bias, requant).write(bb, [v], "dense_0")
    )
    expected = requantized(acc, requant, (-128, 127), reference)
    check_defined(Case(built, {"x": data}, expected), mode, tmp_path, compiler)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "scales", [(0.1, 0.1, 0.2), (0.03, 0.7, 0.4), (0.5, 0.1, 0.11), (1.0, 1e-4, 0.9)]
)
def test_add_of_tflite(scales, mode, tmp_path, compiler):
    rng = np.random.default_rng(3)
    a, b = int8(rng, 1, 3, 5, 6), int8(rng, 1, 3, 5, 6)
    parameters = AddFactors.from_scales(scales, (-128, 5, 127))
    built = module(
        {"a": a.shape, "b": b.shape},
        lambda bb, v, w: TfliteAdd(parameters).write(bb, [v, w], "add_0"),
    )
    largest = 2 * max(scales[:2])
    parts = [
        reference.fixed_point(real)
        for real in (scales[0] / largest, scales[1] / largest, largest / (2**20 * scales[2]))
    ]
    expected = reference.add_tflite(
        a, b, [m for m, _ in parts], [s for _, s in parts], (-128, 5, 127)
    )
    check(Case(built, {"a": a, "b": b}, expected), mode, tmp_path, compiler)


@pytest.mark.parametrize("mode", MODES)
def test_add_by_shift_and_convert(mode, tmp_path, compiler):
    rng = np.random.default_rng(4)
    a, b = int8(rng, 1, 5, 3, 7), int8(rng, 1, 5, 3, 7)

    def write(bb, v, w):
        total = Add(Shift(1), (0, 127)).write(bb, [v, w], "add_0")
        return Convert(mul_shift(np.random.default_rng(1), 1), offset=-9).write(
            bb, [total], "convert_0"
        )

    total = reference.requantize_shift(a.astype("int64") + b, 1, (0, 127)).astype("int64") - 9
    scale = mul_shift(np.random.default_rng(1), 1)
    expected = reference.requantize_mul_shift(total, scale.mul[0], scale.add[0], scale.shift[0])
    built = module({"a": a.shape, "b": b.shape}, write)
    check(Case(built, {"a": a, "b": b}, expected), mode, tmp_path, compiler)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 0, 1, 1)])
def test_average_pool(padding, mode, tmp_path, compiler):
    data = int8(np.random.default_rng(6), 1, 7, 6, 5)
    kernel, strides = (3, 2), (2, 2)
    built = module(
        {"x": data.shape},
        lambda bb, v: AveragePool(kernel=kernel, strides=strides, padding=padding).write(
            bb, [v], "average_pool_0"
        ),
    )
    expected = reference.average_pool(data[0], kernel, strides, padding)
    check(Case(built, {"x": data}, expected), mode, tmp_path, compiler)


@pytest.mark.parametrize("mode", MODES)
def test_max_pool(mode, tmp_path, compiler):
    data = int8(np.random.default_rng(6), 1, 7, 6, 5)
    built = module(
        {"x": data.shape},
        lambda bb, v: MaxPool(kernel=(3, 2), strides=(2, 2)).write(bb, [v], "max_pool_0"),
    )
    expected = reference.max_pool(data[0], (3, 2), (2, 2))
    check(Case(built, {"x": data}, expected), mode, tmp_path, compiler)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (0, 2, 3, 0), (0, 0, 0, 1)])
def test_pad(padding, mode, tmp_path, compiler):
    data = int8(np.random.default_rng(6), 1, 4, 6, 5)
    built = module({"x": data.shape}, lambda bb, v: Pad(-7, padding).write(bb, [v], "pad_0"))
    top, left, bottom, right = padding
    widths = ((0, 0), (top, bottom), (left, right), (0, 0))
    expected = np.pad(data, widths, constant_values=-7)
    check(Case(built, {"x": data}, expected), mode, tmp_path, compiler)


def test_a_pad_writes_each_byte_once(tmp_path, compiler):
    built = module({"x": (1, 4, 6, 5)}, lambda bb, v: Pad(-7, (1, 1, 1, 1)).write(bb, [v], "pad_0"))
    (kernel,) = compile_cpu(built, "net").kernels
    assert kernel.schedule == "borders filled, rows copied"
    assert "if" not in kernel.source.split("*/")[1]


@pytest.mark.parametrize("mode", MODES)
def test_a_left_shift_of_negative_numbers_is_defined(mode, tmp_path, compiler):
    data = np.arange(-128, 128, dtype="int8").reshape(1, 256)

    def write(bb, x):
        wide = bb.emit(R.left_shift(bb.emit(R.astype(x, "int32")), relax.const(9, "int32")))
        back = bb.emit(R.right_shift(wide, relax.const(10, "int32")))
        return bb.emit(R.astype(back, "int8"))

    case = Case(module({"x": data.shape}, write), {"x": data}, data >> 1)
    check_defined(case, mode, tmp_path, compiler)


@pytest.mark.parametrize("mode", MODES)
def test_softmax_is_within_a_step_of_the_real_one(mode, tmp_path, compiler):
    data = int8(np.random.default_rng(7), 1, 12)
    built = module(
        {"x": data.shape}, lambda bb, v: TfliteSoftmax.of_scale(1 / 16).write(bb, [v], "softmax_0")
    )
    code = native.compiled(built, "net", mode)
    (result,) = native.run(code, native.library([code], tmp_path, compiler), {"x": data})
    expected = reference.softmax_real(data, 1 / 16)
    assert np.abs(result.astype(int) - expected).max() <= 1


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_a_residual_network(mode, tmp_path, compiler):
    """Fusion across operators, an alias, constants shared by equal content; no undefined
    behaviour."""
    rng = np.random.default_rng(8)
    weight, bias = int8(rng, 8, 8, 3, 3), bias_of(rng, 8)
    requant = tflite(rng, 8, -8, 3)
    matrix, offset, last = int8(rng, 5, 8), bias_of(rng, 5), tflite(rng, 5, -7)
    sums = AddFactors.from_scales((0.1, 0.07, 0.12), (2, 3, -4))

    def write(bb, x):
        y = Pad(2, (1, 1, 1, 1)).write(bb, [x], "pad_0")
        y = conv2d_of(weight, bias, Window(), requant).write(bb, [y], "conv2d_0")
        y = TfliteAdd(sums).write(bb, [x, y], "add_0")
        y = AveragePool(kernel=(6, 6), strides=(6, 6)).write(bb, [y], "average_pool_0")
        y = Reshape((1, 8)).write(bb, [y], "reshape_0")
        return Dense(matrix, offset, last).write(bb, [y], "dense_0")

    x = int8(rng, 1, 6, 6, 8)
    y = reference.conv2d(x[0], weight, bias, (1, 1), (1, 1, 1, 1), 2)
    y = requantized(y, requant, (-128, 127), reference)
    parameters = (sums.multipliers, sums.shifts, sums.zero_points)
    y = reference.average_pool(reference.add_tflite(x[0], y, *parameters), (6, 6), (6, 6))
    acc = y.reshape(1, 8).astype("int64") @ matrix.T.astype("int64") + offset
    expected = requantized(acc, last, (-128, 127), reference)
    case = Case(module({"x": x.shape}, write), {"x": x}, expected)
    check_defined(case, mode, tmp_path, compiler)
