"""Kernels with intrinsics equal numpy, on the simulated core and natively under a sanitizer."""

from __future__ import annotations

import numpy as np
import pytest

from htvm.aot.cpu import compile_cpu
from htvm.aot.schedules.packing import WeightWords
from patterns.ops.dense import Linear
from tests.aot.cpu import native
from tests.aot.cpu.modules import Case, bias_of, conv_case, int8, module, requantized, tflite
from tests.aot.cpu.on_the_core import on_the_core


def random_convolution(seed: int) -> Case:
    """A convolution of any size; channels are often multiples of 4, or few."""
    rng = np.random.default_rng(seed)
    c = int(rng.choice([1, 2, 3, 4, 8, 12, 16, int(rng.integers(1, 20))]))
    k = int(rng.choice([1, 2, 3, 4, 8, 12, int(rng.integers(1, 20))]))
    fy, fx = (int(n) for n in rng.choice([1, 1, 2, 3, 3, 4, 5], 2))
    top, left, bottom, right = (int(n) for n in rng.integers(0, 2, 4))
    y = int(rng.integers(max(1, fy - top), fy + 8))
    x = int(rng.integers(max(1, fx - left), fx + 10))
    groups = c if rng.random() < 0.2 else 1
    return conv_case(
        y, x, c, c if groups > 1 else k, (fy, fx),
        stride=tuple(int(n) for n in rng.integers(1, 3, 2)),
        padding=(top, left, bottom, right),
        scheme=("tflite", "shift", "mul_shift")[seed % 3],
        groups=groups,
        layout="NCHW" if rng.random() < 0.15 else "NHWC",
    )  # fmt: skip


def random_product(seed: int) -> Case:
    """A product of several rows with a constant matrix."""
    rng = np.random.default_rng(seed)
    rows, c, k = (int(n) for n in rng.integers(1, (9, 40, 24)))
    c = c // 4 * 4 + 4 if rng.random() < 0.7 else c
    weight, bias, requant = int8(rng, k, c), bias_of(rng, k), tflite(rng, k, -7)
    data = int8(rng, rows, c)
    acc = data.astype("int64") @ weight.T.astype("int64") + bias
    op = Linear(weight, bias, requant)
    built = module({"x": data.shape}, lambda bb, v: op.write(bb, [v], "linear_0"))
    return Case(built, {"x": data}, requantized(acc, requant, (-128, 127)))


def random_cases(count: int, seed: int) -> list[Case]:
    return [
        (random_product if number % 4 == 3 else random_convolution)(seed + number)
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "count", [24, pytest.param(300, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_portable_kernels_equal_numpy(count, tmp_path, compiler):
    cases = random_cases(count, 1000)
    codes = [
        native.compiled(case.module, f"net{number}", "simd") for number, case in enumerate(cases)
    ]
    assert sum("htvm_dot4(" in native.source_of(code) for code in codes) > count // 2

    def check() -> None:
        loaded = native.library(codes, tmp_path, native.trapping(compiler))
        for number, (case, code) in enumerate(zip(cases, codes, strict=True)):
            (made,) = native.run(code, loaded, case.inputs)
            wanted = case.expected.reshape(made.shape)
            np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")

    native.in_child(check)


@pytest.mark.parametrize(
    "count", [6, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_on_the_core_equal_numpy(count, tmp_path, compiler):
    for number, case in enumerate(random_cases(count, 2000)):
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, "simd")
        (made,) = result.outputs
        wanted = case.expected.reshape(made.shape)
        np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")


def test_weights_are_packed_in_words():
    weight = np.arange(2 * 8 * 4, dtype="int8").reshape(2, 8, 4)  # fx, C, K
    packed = WeightWords(1, 2).apply(weight)
    assert packed.shape == (2, 2, 2, 2, 4)
    for k, fx, c in np.ndindex(4, 2, 8):
        assert packed[k // 2, fx, c // 4, k % 2, c % 4] == weight[fx, c, k]


def test_a_padding_makes_words_of_channels():
    """No padding without them: the padding before the convolution is replaced."""
    case = conv_case(6, 6, 3, 8, (3, 3), (1, 1), (1, 1, 1, 1), "tflite")
    code = compile_cpu(case.module, "net", simd="corev")
    assert [kernel.symbol for kernel in code.kernels] == ["net_conv2d_0_pad", "net_conv2d_0"]
    assert code.kernels[0].params[-1][2] == (8 * 8 * 4,)
    assert [call.macs for call in code.calls] == [0, 6 * 6 * 8 * 27]


def test_requantizations_that_might_overflow_stay_exact(tmp_path, compiler):
    """Sums beyond 2**29 are out of the range of htvm_scale."""
    rng = np.random.default_rng(1)
    weight, bias = int8(rng, 8, 16), np.full(8, 2**29, "int32")
    requant, data = tflite(rng, 8, -22), int8(rng, 4, 16)
    acc = data.astype("int64") @ weight.T.astype("int64") + bias
    op = Linear(weight, bias, requant)
    built = module({"x": data.shape}, lambda bb, v: op.write(bb, [v], "linear_0"))
    (kernel,) = compile_cpu(built, "net", simd="corev").kernels
    assert "htvm_dot4(" in kernel.source and "htvm_scale(" not in kernel.source
    (made,) = on_the_core(built, data, compiler, tmp_path, "simd").outputs
    np.testing.assert_array_equal(made, requantized(acc, requant, (-128, 127)))
