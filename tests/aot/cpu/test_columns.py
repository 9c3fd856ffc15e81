"""Kernels over columns equal numpy, on Cortex-M cores and natively under a sanitizer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aot.cpu import native
from tests.aot.cpu.modules import conv_case
from tests.aot.cpu.on_the_core import on_the_core
from tests.aot.cpu.test_dot4 import random_cases

CALLS = {"dsp": "htvm_widen_", "thumb": "htvm_spread_"}
CORES = ("cortex_m0plus", "cortex_m3", "cortex_m4")


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    "count", [8, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_portable_kernels_equal_numpy(count, kind, tmp_path, compiler):
    cases = random_cases(count, 5000)
    codes = [
        native.compiled(case.module, f"net{number}", kind) for number, case in enumerate(cases)
    ]
    source = native.source_of(*codes)
    assert source.count(CALLS[kind]) > count // 4

    def check() -> None:
        loaded = native.library(codes, tmp_path, native.trapping(compiler))
        for number, (case, code) in enumerate(zip(cases, codes, strict=True)):
            (made,) = native.run(code, loaded, case.inputs)
            wanted = case.expected.reshape(made.shape)
            np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")

    native.in_child(check)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "count", [3, pytest.param(40, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_on_a_core_equal_numpy(count, core, tmp_path, compiler):
    pytest.importorskip("unicorn", reason="the emulator is not installed: pip install unicorn")
    for number, case in enumerate(random_cases(count, 7000)):
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        (made,) = result.outputs
        wanted = case.expected.reshape(made.shape)
        np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")


@pytest.mark.parametrize(
    ("shape", "filters", "call"),
    [
        ((5, 5, 8, 6), (3, 3), "two_by_two"),
        ((5, 1, 8, 8), (3, 1), "one_by_four"),
        ((5, 1, 8, 6), (3, 1), "one_by_two"),
        ((9, 7, 1, 4), (3, 4), "two_by_two"),
        ((5, 5, 8, 7), (3, 3), "htvm_mac"),
    ],
)
@pytest.mark.parametrize("core", CORES)
def test_each_block_equals_numpy(core, shape, filters, call, tmp_path, compiler):
    """Pixels and channels in pairs; an odd last pixel is computed twice; odd channels alone."""
    pytest.importorskip("unicorn", reason="the emulator is not installed: pip install unicorn")
    y, x, c, k = shape
    case = conv_case(y, x, c, k, filters, (1, 1), (0, 0, 0, 0), "tflite")
    code = native.compiled(case.module, "net", "dsp" if core == "cortex_m4" else "thumb")
    assert f"{call}(" in native.source_of(code)
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))


# 14 instructions for 16 products, and 2 for every fourth of these steps; 12 for 4, and 3 for 16.
@pytest.mark.parametrize(
    ("core", "per_mac", "per_element"),
    [("cortex_m4", 14.5 / 16, 7 / 8), ("cortex_m0plus", 51 / 16, 6.4)],
)
def test_instructions_of_an_inner_loop(core, per_mac, per_element, tmp_path, compiler):
    pytest.importorskip("unicorn", reason="the emulator is not installed: pip install unicorn")
    counts = []
    for channels in (64, 128):
        case = conv_case(4, 4, channels, 64, (3, 3), (1, 1), (0, 0, 0, 0), "tflite")
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        counts.append(result.instructions or 0)
    macs = 2 * 2 * 64 * 64 * 9
    # Writing an element into a column is done once for 64 channels.
    columns = 2 * 2 * 64 * 9 * per_element
    assert (counts[1] - counts[0] - columns) / macs == pytest.approx(per_mac, abs=0.03)
