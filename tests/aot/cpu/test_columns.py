"""Kernels over columns equal numpy, on Cortex-M cores and natively under a sanitizer."""

from __future__ import annotations

import numpy as np
import pytest

from htvm.aot import cpu
from htvm.aot.cpu import compile_cpu
from htvm.aot.schedules.packing import WeightColumns, WeightTaps, WeightWords
from htvm.sim.qemu import PROGRAM
from tests.aot.cpu import modules, native
from tests.aot.cpu.modules import conv_case
from tests.aot.cpu.on_the_core import on_the_core
from tests.aot.cpu.test_dot4 import random_cases
from tests.tools import tool

CALLS = {"dsp": "htvm_widen_", "mve": "htvm_rows_", "thumb": "htvm_spread_"}
MVE = "cortex_m55"
CORES = ("cortex_m0plus", "cortex_m3", "cortex_m4")


def need_emulator(core):
    if core == MVE:
        tool(PROGRAM)


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


@pytest.mark.rotating(2)
@pytest.mark.parametrize("core", [*CORES, MVE])
@pytest.mark.parametrize(
    "count", [3, pytest.param(40, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_on_a_core_equal_numpy(count, core, tmp_path, compiler):
    need_emulator(core)
    for number, case in enumerate(random_cases(count, 7000)):
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        (made,) = result.outputs
        wanted = case.expected.reshape(made.shape)
        np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")


@pytest.mark.rotating(4)
@pytest.mark.parametrize(
    ("shape", "filters", "call", "dsp"),
    [
        ((5, 5, 8, 6), (3, 3), "two_by_two", "scaled_three"),
        ((5, 1, 8, 8), (3, 1), "one_by_four", "scaled_one"),
        ((5, 1, 8, 6), (3, 1), "one_by_two", "one_by_two"),
        ((9, 7, 1, 4), (3, 4), "two_by_two", "scaled_two_paired"),
        ((5, 5, 8, 7), (3, 3), "htvm_mac", "htvm_mac"),
    ],
)
@pytest.mark.parametrize("core", CORES)
def test_each_block_equals_numpy(core, shape, filters, call, dsp, tmp_path, compiler):
    """Pixels and channels in pairs or threes; an odd last pixel twice; odd channels alone."""
    y, x, c, k = shape
    case = conv_case(y, x, c, k, filters, (1, 1), (0, 0, 0, 0), "tflite")
    kind, call = ("dsp", dsp) if core == "cortex_m4" else ("thumb", call)
    code = native.compiled(case.module, "net", kind)
    assert f"{call}(" in native.source_of(code)
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))


@pytest.mark.parametrize("zero", [-128, 4])
@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3"])
def test_one_function_requantizes_long_columns(core, zero, tmp_path, compiler):
    """From 144 products on; an odd last pixel twice.  Fewer ones, or odd channels, are requantized
    by each kernel itself."""
    case = conv_case(5, 5, 16, 6, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", zero=zero)
    code = native.compiled(case.module, "net", "thumb")
    source = native.source_of(code)
    assert "htvm_spread_scaled_two(" in source
    assert f"(uint32_t)36, (uint32_t)6, (uint32_t)6, {zero});" in source
    (made,) = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core).outputs
    np.testing.assert_array_equal(made, case.expected.reshape(made.shape))

    def check() -> None:
        loaded = native.library([code], tmp_path, native.trapping(compiler))
        (made,) = native.run(code, loaded, case.inputs)
        np.testing.assert_array_equal(made, case.expected.reshape(made.shape))

    native.in_child(check)
    for c, k in ((12, 6), (16, 5)):
        other = conv_case(5, 5, c, k, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", zero=zero)
        source = native.source_of(native.compiled(other.module, "net", "thumb"))
        assert "htvm_spread_scaled_two(" not in source


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("shape", "filters", "call"),
    [
        ((7, 5, 3, 8), (3, 3), "scaled_three"),  # 27 elements are 7 words, as colours have
        ((7, 6, 3, 10), (3, 3), "scaled_two"),
        ((5, 1, 3, 4), (3, 1), "scaled_one"),
        ((9, 6, 1, 6), (3, 3), "scaled_two"),
        ((4, 4, 10, 4), (1, 1), "scaled_three"),
        ((6, 5, 2, 4), (2, 3), "scaled_three"),
    ],
)
@pytest.mark.parametrize("scheme", ["tflite", "mul_shift"])
def test_rows_of_a_filter_that_are_no_words(shape, filters, call, scheme, tmp_path, compiler):
    """Windows are copied first: with TFLite's requantization, and with another behind the sums."""
    case = conv_case(*shape, filters, (1, 1), (0, 0, 0, 0), scheme)
    code = native.compiled(case.module, "net", "dsp")
    source, expected = native.source_of(code), case.expected
    assert "htvm_window(" in source and (scheme != "tflite" or f"htvm_{call}(" in source)
    (made,) = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, "cortex_m4").outputs
    np.testing.assert_array_equal(made, expected.reshape(made.shape))

    def check() -> None:
        loaded = native.library([code], tmp_path, native.trapping(compiler))
        (made,) = native.run(code, loaded, case.inputs)
        np.testing.assert_array_equal(made, expected.reshape(made.shape))

    native.in_child(check)


def test_columns_of_windows_are_not_dilated():
    case = conv_case(9, 9, 3, 4, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", dilation=2)
    assert "htvm_window(" not in native.source_of(native.compiled(case.module, "net", "dsp"))


@pytest.mark.rotating(2)
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
@pytest.mark.parametrize("core", [*CORES, MVE])
def test_channels_first(core, stride, tmp_path, compiler):
    """Rows of an NCHW input are copied with channels last, a row of the output at a time."""
    need_emulator(core)
    kind = {"cortex_m4": "dsp", MVE: "mve"}.get(core, "thumb")
    case = conv_case(7, 6, 12, 6, (3, 2), stride, (1, 0, 1, 1), "tflite", layout="NCHW")
    assert CALLS[kind] in native.source_of(native.compiled(case.module, "net", kind))
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))


@pytest.mark.parametrize("first", [False, True])
def test_packed_weights_of_rows(first):
    weight = np.arange(2 * 3 * 3 * 6, dtype="int8").reshape(2, 3, 3, 6)  # fy, fx, C, K
    given = weight.transpose(3, 2, 0, 1) if first else weight
    packed = WeightWords(1, 2, width=16, whole=True, first=first).apply(given)
    assert packed.shape == (3, 2, 2, 16)
    assert not packed[:, 1, :, 2:].any()
    for fy, fx, c, k in np.ndindex(2, 3, 3, 6):
        at = (fy * 3 + fx) * 3 + c
        assert packed[k // 2, at // 16, k % 2, at % 16] == weight[fy, fx, c, k]


def test_packed_weights_of_taps():
    weight = np.arange(2 * 3 * 32, dtype="int8").reshape(2, 3, 32, 1)
    packed = WeightTaps(1, 16).apply(weight)
    for fy, fx, c in np.ndindex(2, 3, 32):
        assert packed[c // 16, fy * 3 + fx, c % 16] == weight[fy, fx, c, 0]


def test_packed_weights_of_columns():
    weight = np.arange(1, 46, dtype="int8").reshape(3, 3, 5, 1)
    packed = WeightColumns(1).apply(weight)
    assert packed.shape == (5 * 12 + 4,)
    for c, fx, fy in np.ndindex(5, 3, 4):
        wanted = weight[fy, fx, c, 0] if fy < 3 else 0
        assert packed[12 * c + 4 * fx + fy] == wanted


# 21 instructions for 24 products, and 3 for every fourth of these steps (four of 64 channels take
# 14 for 16); 12 for 4, and 3 for 16.
@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("core", "per_mac", "per_element"),
    [("cortex_m4", 24.1 / 24, 7 / 8), ("cortex_m0plus", 51 / 16, 6.4)],
)
def test_instructions_of_an_inner_loop(core, per_mac, per_element, tmp_path, compiler):
    counts = []
    for channels in (64, 128):
        case = conv_case(4, 4, channels, 64, (3, 3), (1, 1), (0, 0, 0, 0), "tflite")
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core)
        counts.append(result.instructions or 0)
    macs = 2 * 2 * 64 * 64 * 9
    # Writing an element into a column is done once for 64 channels.
    columns = 2 * 2 * 64 * 9 * per_element
    assert (counts[1] - counts[0] - columns) / macs == pytest.approx(per_mac, abs=0.03)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("shape", "filters", "stride", "groups", "call"),
    [
        ((5, 5, 8, 8), (3, 3), (1, 1), 1, "(uint32_t)5, (uint32_t)3, (uint32_t)8, (uint32_t)4)"),
        ((4, 5, 3, 7), (3, 2), (1, 2), 1, "(uint32_t)2, (uint32_t)1, (uint32_t)7, (uint32_t)1)"),
        ((6, 2, 5, 8), (3, 2), (1, 1), 1, "(uint32_t)2, (uint32_t)3, (uint32_t)8, (uint32_t)4)"),
        ((6, 7, 16, 20), (1, 1), (1, 1), 1, "(uint32_t)1, (uint32_t)3, (uint32_t)20, (uint32_t)4)"),
        ((3, 3, 4, 12), (3, 3), (1, 1), 1, "(uint32_t)3, (uint32_t)1, (uint32_t)12, (uint32_t)4)"),
        # As many rows as elements of one: operands of the assembly that are equal.
        ((5, 5, 1, 4), (3, 3), (1, 1), 1, "(uint32_t)1, (uint32_t)3, (uint32_t)4, (uint32_t)4)"),
        ((4, 3, 4, 6), (3, 3), (1, 1), 1, "(uint32_t)3, (uint32_t)1, (uint32_t)6, (uint32_t)1)"),
        ((5, 7, 12, 12), (3, 3), (1, 1), 12, "htvm_nines("),
        ((6, 6, 3, 3), (3, 3), (1, 1), 3, "htvm_nines("),
        ((7, 17, 5, 5), (3, 3), (2, 2), 5, "htvm_nines("),
        ((5, 5, 16, 16), (3, 3), (2, 1), 16, "htvm_taps_sum("),
        ((5, 5, 24, 24), (2, 3), (1, 1), 24, "htvm_taps_sum("),
        ((4, 3, 32, 32), (1, 1), (1, 1), 32, "htvm_taps_sum("),
        ((4, 3, 12, 12), (3, 3), (1, 1), 12, "htvm_mac("),
    ],
)
def test_each_block_of_rows_equals_numpy(
    shape, filters, stride, groups, call, tmp_path, compiler, monkeypatch
):
    """Columns of three pixels or one, blocks of channels, groups of 8 and 16, whole rows."""
    need_emulator(MVE)
    y, x, c, k = shape
    monkeypatch.setattr(modules, "int8", without_least)
    # As beside a larger tensor: a layer alone has the largest.
    monkeypatch.setattr(cpu, "_largest_tensor", lambda main: 1 << 16)
    case = conv_case(y, x, c, k, filters, stride, (0, 0, 0, 0), "tflite", groups)
    assert call in native.source_of(native.compiled(case.module, "net", "mve"))
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, MVE)
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))


def test_whole_rows_need_room():
    """Where memory is scarce, a layer that has the largest tensor gets no workspace for rows."""
    case = conv_case(6, 6, 16, 16, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", 16)
    called = [
        "htvm_nines("
        in native.source_of(compile_cpu(case.module, "net", simd="mve", scarce=scarce))
        for scarce in (False, True)
    ]
    assert called == [True, False]


def without_least(rng, *shape):
    """Weights and data of -127 to 127."""
    return rng.integers(-127, 128, shape).astype("int8")


def test_a_depthwise_weight_of_the_least_number_is_left_to_scalar_code(monkeypatch):
    """Two products with it may exceed 16 bits."""
    monkeypatch.setattr(modules, "int8", lambda rng, *shape: np.full(shape, -128, "int8"))
    case = conv_case(5, 5, 16, 16, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", 16)
    source = native.source_of(native.compiled(case.module, "net", "mve"))
    assert "htvm_taps_sum(" not in source and "htvm_mac(" in source


def test_instructions_of_the_loop_over_rows(tmp_path, compiler):
    """12 instructions for 96 products of three pixels with two channels."""
    need_emulator(MVE)
    counts = []
    for channels in (64, 128):
        case = conv_case(3, 5, channels, 64, (3, 3), (1, 1), (0, 0, 0, 0), "tflite")
        result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, MVE)
        counts.append(result.instructions or 0)
    macs = 3 * 64 * 64 * 9
    columns = 3 * 64 * 9 * 2 / 16  # a load and a store of 16 elements, once for 64 channels
    assert (counts[1] - counts[0] - columns) / macs == pytest.approx(12 / 96, abs=0.003)


def test_five_pixels_of_a_channel_at_once(tmp_path, compiler):
    """As many as registers of cores with the DSP extension hold: no pixel is computed twice."""
    need_emulator("cortex_m4")
    case = conv_case(6, 7, 8, 8, (3, 3), (1, 1), (0, 0, 0, 0), "tflite", 8)
    result = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, "cortex_m4")
    np.testing.assert_array_equal(result.outputs[0], case.expected.reshape(result.outputs[0].shape))
    assert (result.instructions or 0) / (4 * 5 * 8 * 9) < 3
