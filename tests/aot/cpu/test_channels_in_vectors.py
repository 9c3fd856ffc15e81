"""Kernels with channels in vectors equal numpy: in vectors of two lengths, and as plain C."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aot.cpu import native
from tests.aot.cpu.modules import conv_case
from tests.aot.cpu.on_the_core import on_the_core
from tests.aot.cpu.test_dot4 import random_cases
from tests.tools import tool

CORES = ("rv32imcv", "rv64gcv:vlen=256", "rv32imcv:vlen=1024")


def emulator(core: str) -> None:
    """Skip a test where QEMU is missing."""
    tool("qemu-riscv64" if core.startswith("rv64") else "qemu-riscv32")


@pytest.mark.parametrize(
    "count", [8, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_portable_kernels_equal_numpy(count, tmp_path, compiler):
    cases = random_cases(count, 5000)
    codes = [
        native.compiled(case.module, f"net{number}", "rvv") for number, case in enumerate(cases)
    ]
    assert native.source_of(*codes).count("htvm_vectors_") > count // 2

    def check() -> None:
        loaded = native.library(codes, tmp_path, native.trapping(compiler))
        for number, (case, code) in enumerate(zip(cases, codes, strict=True)):
            (made,) = native.run(code, loaded, case.inputs)
            wanted = case.expected.reshape(made.shape)
            np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")

    native.in_child(check)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "count", [3, pytest.param(40, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_on_a_core_equal_numpy(count, core, tmp_path, compiler):
    emulator(core)
    for number, case in enumerate(random_cases(count, 9000)):
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        (made,) = result.outputs
        wanted = case.expected.reshape(made.shape)
        np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")


PRODUCTS, SUMS = "htvm_vectors_products(", "htvm_vectors_sums("


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("shape", "filters", "stride", "groups", "layout", "calls"),
    [
        ((8, 10, 3, 8), (3, 3), (1, 1), 1, "NHWC", (PRODUCTS, "(uint32_t)24,")),
        ((7, 5, 4, 16), (3, 2), (2, 1), 1, "NHWC", (PRODUCTS, "(uint32_t)12,")),
        ((5, 5, 8, 40), (1, 1), (1, 1), 1, "NHWC", (PRODUCTS,)),
        ((3, 3, 8, 70), (3, 3), (1, 1), 1, "NHWC", (PRODUCTS, "(uint32_t)1,")),
        ((4, 3, 5, 1), (2, 2), (1, 1), 1, "NHWC", (PRODUCTS,)),
        ((4, 3, 5, 7), (2, 2), (1, 1), 1, "NHWC", (PRODUCTS, "htvm_vectors_rescale(")),
        ((4, 3, 5, 23), (2, 2), (1, 1), 1, "NHWC", (PRODUCTS, "htvm_many_rescale(")),
        ((7, 6, 12, 6), (3, 2), (2, 1), 1, "NCHW", (PRODUCTS,)),
        ((6, 9, 8, 8), (3, 3), (1, 1), 8, "NHWC", (SUMS, "htvm_vectors_rescale(")),
        ((6, 9, 12, 12), (3, 3), (2, 2), 12, "NHWC", (SUMS,)),
        ((6, 7, 3, 3), (3, 2), (1, 1), 3, "NHWC", (SUMS,)),
        ((5, 6, 64, 64), (2, 3), (1, 1), 64, "NHWC", (SUMS,)),
        ((3, 3, 40, 40), (3, 3), (1, 1), 40, "NHWC", (SUMS,)),
    ],
)
@pytest.mark.parametrize("core", CORES)
def test_each_way_equals_numpy(
    core, shape, filters, stride, groups, layout, calls, tmp_path, compiler
):
    """Blocks of pixels, channels that fill a part of a vector or several, depthwise rows."""
    emulator(core)
    y, x, c, k = shape
    none = (0, 0, 0, 0)
    case = conv_case(y, x, c, k, filters, stride, none, "tflite", groups, layout)
    source = native.source_of(native.compiled(case.module, "net", "rvv"))
    assert all(text in source for text in calls)
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))


# Three pixels with 32 channels of 128 bits: 12 instructions for a step, and 1 for every fourth.
@pytest.mark.rotating(1)
@pytest.mark.parametrize(("core", "lanes"), [("rv32imcv", 32), ("rv64gcv:vlen=256", 64)])
def test_instructions_of_the_inner_loop(core, lanes, tmp_path, compiler):
    emulator(core)
    counts = []
    for channels in (64, 128):
        case = conv_case(6, 6, channels, 64, (1, 1), (1, 1), (0, 0, 0, 0), "tflite")
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        counts.append(result.instructions or 0)
    macs = 6 * 6 * 64 * 64
    assert (counts[1] - counts[0]) / macs < 13 / (3 * lanes)
