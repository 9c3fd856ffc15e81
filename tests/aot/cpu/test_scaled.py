"""Kernels with TFLite's requantization inside equal numpy, on the core and natively."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from tvm import tirx

from byoc_dory.layers import TfliteRequant
from byoc_dory.soc.registry import resolve
from htvm.aot.fixed_point import SCALE
from htvm.aot.intrinsics import HALFWORDS, KERNELS, Column
from htvm.aot.rescale import Rescaling
from htvm.aot.schedules.packing import WeightTaps, WeightWords, suit_pairs
from htvm.aot.schedules.products import _IMAGE_PLACES, _row_pixels
from htvm.firmware.arm import include_folders
from htvm.firmware.user_compiler import user_compiler
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import dense_of
from tests.aot.cpu import native
from tests.aot.cpu.modules import Case, bias_of, conv_case, int8, module, requantized, tflite
from tests.aot.cpu.on_the_core import on_the_core
from tests.reference import cpu_kernels as reference
from tests.tools import tool

CORE, DUAL = "cortex_m4", "cortex_m7"
NO_PADDING = (0, 0, 0, 0)


def check_natively(case, tmp_path, compiler):
    """The portable forms, under a sanitizer."""
    code = native.compiled(case.module, "net", "dsp")

    def check() -> None:
        loaded = native.library([code], tmp_path, native.trapping(compiler))
        (made,) = native.run(code, loaded, case.inputs)
        np.testing.assert_array_equal(made, case.expected.reshape(made.shape))

    native.in_child(check)


def check_on_the_core(case, call, tmp_path, compiler, core=CORE):
    kind = resolve(core).soc.host.simd
    assert f"{call}(" in native.source_of(native.compiled(case.module, "net", kind))
    (made,) = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core).outputs
    np.testing.assert_array_equal(made, case.expected.reshape(made.shape))


def only(monkeypatch, pixels, *, paired=False):
    """Let no other call multiply columns of several pixels."""
    together = Column.together

    def chosen(column, number, *rest, **options):
        wanted = (pixels, paired) if number > 1 else (1, False)
        ways = tuple(way for way in column.scaled if (way.pixels, way.paired) == wanted)
        return together(replace(column, scaled=ways), number, *rest, **options)

    monkeypatch.setattr(Column, "together", chosen)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(("c", "words"), [(4, 1), (8, 2), (12, 3), (16, 4), (20, 5), (28, 7)])
@pytest.mark.parametrize("k", [2, 4, 6, 8, 10])
def test_channels_in_threes_and_the_last_in_twos(c, words, k, tmp_path, compiler, monkeypatch):
    """Columns of any number of words; an odd number of pixels."""
    only(monkeypatch, 2)
    case = conv_case(7, 1, c, k, (1, 1), (1, 1), NO_PADDING, "tflite", least=-128)
    source = native.source_of(native.compiled(case.module, "net", "dsp"))
    assert f"(uint32_t){words}, (uint32_t){k}, (uint32_t){k}, " in source
    check_on_the_core(case, "htvm_scaled_two", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("shape", "c", "filters"),
    [
        ((3, 3), 4, (1, 1)),
        ((5, 1), 20, (1, 1)),  # the last three over their neighbours
        ((3, 1), 64, (1, 1)),
        ((3, 4), 68, (1, 1)),
        ((4, 5), 12, (2, 3)),  # rows of three pixels
        ((5, 7), 8, (3, 3)),
    ],
)
@pytest.mark.parametrize("k", [2, 4, 10])
def test_three_pixels(shape, c, filters, k, tmp_path, compiler, monkeypatch):
    only(monkeypatch, 3)
    case = conv_case(*shape, c, k, filters, (1, 1), NO_PADDING, "tflite", least=-128)
    check_on_the_core(case, "htvm_scaled_three", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("shape", "c", "filters"),
    [
        ((5, 1), 20, (1, 1)),  # the last two over their neighbours
        ((2, 1), 4, (1, 1)),  # two half steps
        ((2, 1), 64, (1, 1)),  # 31 of 32 half steps are left out
        ((2, 1), 68, (1, 1)),  # two more than 32
        ((2, 2), 132, (1, 1)),  # of a second turn, all but one
        ((4, 5), 12, (2, 3)),
        ((5, 5), 3, (3, 3)),  # windows
        ((4, 6), 16, (1, 1)),  # six pairs at once
        ((2, 8), 64, (1, 1)),  # twice two
    ],
)
@pytest.mark.parametrize("k", [4, 12])
@pytest.mark.parametrize("zero", [-128, 5])
def test_words_of_two_channels(shape, c, filters, k, zero, tmp_path, compiler, monkeypatch):
    only(monkeypatch, 2, paired=True)
    case = conv_case(*shape, c, k, filters, (1, 1), NO_PADDING, "tflite", zero=zero, least=-127)
    check_on_the_core(case, "htvm_scaled_two_paired", tmp_path, compiler)
    check_on_the_core(case, "htvm_scaled_two_dual_paired", tmp_path, compiler, DUAL)
    check_natively(case, tmp_path, compiler)


def test_loads_beside_products_in_llvms_model_of_the_core(tmp_path):
    """A half step of two pixels and four channels, a thousand times."""
    assert resolve(DUAL).soc.host.arm.dual
    mca, clang = tool("llvm-mca"), tool("clang")
    regions = "".join(
        f'"@ LLVM-MCA-BEGIN\\n" {order} "@ LLVM-MCA-END\\n"'
        for order in ("HTVM_TWINS", "HTVM_DUAL")
    )
    text = f'#include "htvm_intrinsics.h"\nvoid f(void) {{ __asm__ volatile({regions}); }}\n'
    file, core = tmp_path / "orders.s", ("--target=thumbv7em-none-eabi", "-mcpu=cortex-m7")
    headers = [f"-I{folder}" for folder in include_folders(resolve(DUAL).soc)]
    line = [clang, *core, "-O2", "-ffreestanding", *headers, "-S", "-x", "c", "-", "-o", str(file)]
    subprocess.run(line, input=text, text=True, check=True)
    model = [mca, "-mtriple=thumbv7em-none-eabi", core[1], "-iterations=1000", str(file)]
    said = subprocess.run(model, capture_output=True, text=True, check=True).stdout
    twins, dual = (int(cycles) for cycles in re.findall(r"Total Cycles: +(\d+)", said))
    assert dual < 0.8 * twins


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_of_words_of_two_channels(sign, tmp_path, compiler):
    """Both channels' sums as large as 24 bits take."""
    k, c = 4, 520
    weight = np.zeros((k, c, 1, 1), "int8")
    weight[:, :516], weight[:, 516] = 127 * sign, 3 * sign
    total = np.abs(weight.astype(int)).sum(axis=(1, 2, 3))
    bias = np.array([2**30, -(2**30), 5, -5], "int32")
    data = np.full((1, 2, c), -128, "int8")
    requant = TfliteRequant((2**30,) * 3 + (2**30 + 1,), (-22,) * 4, 3)
    op = conv2d_of(weight, bias, Window((1, 1)), requant, (-128, 127))
    shape = (1, *data.shape)
    built = module({"x": shape}, lambda bb, v: op.write(bb, [v], "conv2d_0"))
    acc = reference.conv2d(data, weight, bias, (1, 1), NO_PADDING, 0, 1)
    case = Case(
        built, {"x": data.reshape(shape)}, requantized(acc, requant, (-128, 127), reference)
    )
    assert (total == 65535).all() and suit_pairs(weight.transpose(2, 3, 1, 0))
    check_on_the_core(case, "htvm_scaled_two_paired", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize(
    ("values", "suits"),
    [
        ([[127] * 516, [1] * 516], True),  # 65,532
        ([[127] * 516 + [4], [1] * 517], False),
        ([[-127, 0], [127, 1]], True),
        ([[0, 0], [-128, 1]], False),
    ],
)
def test_weights_that_share_words(values, suits):
    assert suit_pairs(np.array(values, "int8").T) is suits
    assert not suit_pairs(np.array(values, "int16").T)
    assert not suit_pairs(np.array(3, "int8"))  # a constant without axes


def test_packed_weights_of_two_channels():
    rng = np.random.default_rng(0)
    weight = np.maximum(int8(rng, 6, 8), -127).astype("int8")
    packed = WeightWords(1, 4, whole=True, paired=True).apply(weight)
    words = packed.reshape(2, 2, 2, 2, 4).copy().view("<i2")  # block, word, parity, pair, taps
    for k, tap in np.ndindex(4, 8):
        want = 256 * int(weight[tap, 2 * k + 1]) + int(weight[tap, 2 * k]) if tap < 6 else 0
        assert words[k // 2, tap // 4, tap % 2, k % 2, tap % 4 // 2] == want


@pytest.mark.parametrize(
    ("pixels", "channels", "taps", "suited", "chosen"),
    [
        (36, 128, 128, True, (2, 4)),
        (576, 32, 16, True, (2, 4)),
        (9, 256, 128, True, (2, 4)),
        (3, 64, 64, True, (3, 2)),  # none is computed twice
        (36, 126, 128, True, (3, 2)),
        (36, 128, 128, False, (3, 2)),
        (4, 128, 128, False, (2, 3)),
        (16, 128, 128, False, (2, 3)),
        (2, 126, 128, True, (2, 3)),
        (1, 128, 128, True, (1, 4)),
    ],
)
def test_which_call_requantizes(pixels, channels, taps, suited, chosen):
    column = HALFWORDS.column
    assert column is not None
    way = column.together(pixels, channels, taps, alike=False, suited=suited)
    assert way is not None and (way.pixels, way.channels) == chosen


def test_which_call_requantizes_other_numbers():
    column = HALFWORDS.column
    assert column is not None
    assert column.together(1, 6, 64, alike=False, suited=True) is None
    assert column.together(1, 8, 64, alike=True, suited=True) is not None
    assert column.together(2, 8, 64, alike=True, suited=True) is None


@pytest.mark.parametrize(
    ("pixels", "taps", "spare", "pairs"),
    [
        (24, 16, None, 6),
        (16, 64, -100, 2),
        (125, 64, None, 1),
        (36, 128, 0, 1),
        (36, 128, 1023, 1),
        (36, 128, 1536, 3),
        (36, 128, 100_000, 6),
        (4, 600, None, 1),
    ],
)
def test_pairs_of_a_call(pixels, taps, spare, pairs):
    column = Column("int16", 2, ("htvm_widen_two",))
    assert column.pairs_together(pixels, taps, spare) == pairs


@pytest.mark.parametrize(("bias", "shift"), [(2**29 - 1, -23), (2**29, -23), (5, -24)])
def test_large_biases_and_shifts_of_rows(bias, shift, tmp_path, compiler):
    """Sums are doubled, and rounded by what is added to the product, where they are small."""
    rng = np.random.default_rng(1)
    k, data = 16, int8(rng, 4, 4, 8)
    weight, biases = int8(rng, k, 8, 1, 1), np.full(k, 3, "int32")
    biases[:4] = bias, -bias, bias - 1, 2**20
    requant = TfliteRequant((2**31 - 1, *[2**30] * (k - 1)), (shift,) * 3 + (-12,) * (k - 3), -128)
    acc = reference.conv2d(data, weight, biases, (1, 1), NO_PADDING, 0, 1)
    op = conv2d_of(weight, biases, Window((1, 1)), requant, (-128, 127))
    shape = (1, *data.shape)
    built = module({"x": shape}, lambda bb, v: op.write(bb, [v], "conv2d_0"))
    expected = requantized(acc, requant, (-128, 127), reference)
    case = Case(built, {"x": data.reshape(shape)}, expected)
    check_on_the_core(case, "htvm_scaled_row", tmp_path, compiler)


def image_case(y, x, k, zero=-128, least=-127):
    """An image of three colours, whose output has y times x pixels."""
    shape = (2 * y + 1, 2 * x + 1)
    return conv_case(*shape, 3, k, (3, 3), (2, 2), NO_PADDING, "tflite", zero=zero, least=least)


@pytest.mark.parametrize(("y", "x", "k"), [(2, 4, 4), (3, 6, 8), (1, 48, 12)])
def test_images(y, x, k, tmp_path, compiler):
    """A row at once, and two halves of one."""
    check_on_the_core(image_case(y, x, k), "htvm_scaled_image", tmp_path, compiler)
    check_natively(image_case(y, x, k), tmp_path, compiler)


@pytest.mark.parametrize(
    "case",
    [
        image_case(2, 5, 4),  # an odd number of pixels
        image_case(2, 2, 4),
        image_case(2, 4, 6),
        image_case(2, 4, 4, zero=-127),
        image_case(2, 4, 4, least=-128),
        conv_case(6, 6, 3, 4, (3, 3), (1, 1), NO_PADDING, "tflite", zero=-128, least=-127),
        conv_case(9, 9, 3, 4, (3, 2), (2, 2), NO_PADDING, "tflite", zero=-128, least=-127),
        conv_case(9, 9, 1, 4, (3, 3), (2, 2), NO_PADDING, "tflite", zero=-128, least=-127),
    ],
)
def test_other_windows_are_copied(case):
    assert "htvm_scaled_image" not in native.source_of(native.compiled(case.module, "net", "dsp"))


def test_packed_weights_of_an_image():
    """Eight of each row, then the last of the first two rows, and that of the third."""
    weight = np.arange(27 * 4, dtype="int8").reshape(3, 3, 3, 4)
    packing = WeightWords(1, 4, whole=True, places=_IMAGE_PLACES, paired=True)
    steps = packing.apply(weight).reshape(14, 2, 4).copy().view("<i2")  # step, pair, halves
    taps = [(8 * row + first, 8 * row + first + 2) for row in range(3) for first in (0, 1, 4, 5)]
    filled = [weight.reshape(3, 9, 4)[row, :8] for row in range(3)]
    elements = np.concatenate([*filled, weight.reshape(3, 9, 4)[:, 8]]).astype(int)
    for step, pair, half in np.ndindex(14, 2, 2):
        tap = [*taps, (24, 25), (None, 26)][step][half]
        want = 0 if tap is None else elements[tap, 2 * pair : 2 * pair + 2] @ (1, 256)
        assert steps[step, pair, half] == want


@pytest.mark.rotating(3)
@pytest.mark.parametrize(("y", "x"), [(4, 4), (3, 15), (12, 5), (9, 15)])
@pytest.mark.parametrize("k", [2, 6, 8])
def test_rows_of_pixels_of_eight_elements(y, x, k, tmp_path, compiler):
    case = conv_case(y, x, 8, k, (1, 1), (1, 1), NO_PADDING, "tflite")
    check_on_the_core(case, "htvm_scaled_row", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize(
    ("pixels", "chosen"),
    [(12, 0), (16, 16), (17, 0), (45, 24), (20, 20), (27, 0), (48, 48), (2304, 128)],
)
def test_pixels_of_a_row(pixels, chosen):
    assert _row_pixels(pixels) == chosen


def test_an_odd_number_of_channels_is_left_to_two_pixels():
    case = conv_case(3, 3, 8, 3, (1, 1), (1, 1), NO_PADDING, "tflite")
    assert "htvm_scaled_three" not in native.source_of(native.compiled(case.module, "net", "dsp"))


@pytest.mark.rotating(2)
@pytest.mark.parametrize("c", [4, 20, 36])
@pytest.mark.parametrize("k", [4, 8])
def test_one_pixel(c, k, tmp_path, compiler):
    case = conv_case(1, 1, c, k, (1, 1), (1, 1), NO_PADDING, "tflite")
    check_on_the_core(case, "htvm_scaled_one", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("c", [4, 32, 64, 68])
@pytest.mark.parametrize("zero", [8, -128])
def test_one_factor_for_all_channels(c, zero, tmp_path, compiler):
    rng = np.random.default_rng(c)
    weight, bias, data = int8(rng, 12, c), bias_of(rng, 12), int8(rng, 1, c)
    requant = tflite(rng, 1, -8, zero)
    op = dense_of((1,), weight, bias, requant, (-128, 127))
    built = module({"x": data.shape}, lambda bb, v: op.write(bb, [v], "dense_0"))
    acc = data.astype("int64") @ weight.T.astype("int64") + bias
    expected = requantized(acc, requant, (-128, 127), reference)
    case = Case(built, {"x": data}, expected)
    check_on_the_core(case, "htvm_scaled_one_alike", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    "kind", ["products", "paired", "image", "row", "three", "one pixel", "depthwise"]
)
def test_the_users_gcc(kind, tmp_path):
    """The same with GCC, which gives statements other registers than clang."""
    tool("arm-none-eabi-gcc")
    case, call = {
        "products": (
            conv_case(2, 2, 12, 8, (1, 1), (1, 1), NO_PADDING, "tflite", least=-128),
            "scaled_two",
        ),
        "paired": (
            conv_case(4, 4, 64, 8, (1, 1), (1, 1), NO_PADDING, "tflite", least=-127),
            "scaled_two_paired",
        ),
        "image": (image_case(2, 6, 8), "scaled_image"),
        "row": (conv_case(4, 4, 8, 6, (1, 1), (1, 1), NO_PADDING, "tflite"), "scaled_row"),
        "three": (conv_case(3, 3, 12, 8, (1, 1), (1, 1), NO_PADDING, "tflite"), "scaled_three"),
        "one pixel": (conv_case(1, 1, 36, 8, (1, 1), (1, 1), NO_PADDING, "tflite"), "scaled_one"),
        "depthwise": (
            conv_case(4, 6, 5, 5, (3, 3), (1, 1), NO_PADDING, "tflite", groups=5),
            "depthwise_4_1",
        ),
    }[kind]
    gcc = user_compiler("arm-none-eabi-gcc", resolve(CORE).soc)
    check_on_the_core(case, f"htvm_{call}", tmp_path, gcc)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("zero", [-128, -127])
@pytest.mark.parametrize(
    ("shape", "filters", "stride", "groups", "call"),
    [
        ((6, 6, 12, 8), (1, 1), 1, 1, "scaled_three"),
        ((4, 4, 8, 16), (1, 1), 1, 1, "scaled_row"),  # eight pixels at once
        ((4, 5, 8, 16), (1, 1), 1, 1, "scaled_row"),  # first four
        ((4, 4, 8, 8), (1, 1), 1, 1, "scaled_row"),
        ((3, 5, 3, 3), (3, 3), 1, 3, "depthwise_3_1"),
        ((3, 9, 3, 3), (3, 3), 2, 3, "depthwise_4_2"),
    ],
)
def test_the_least_zero_point(shape, filters, stride, groups, call, zero, tmp_path, compiler):
    """Negative numbers all become -128, however their halves are rounded."""
    strides = (stride, stride)
    case = conv_case(*shape, filters, strides, NO_PADDING, "tflite", groups, zero=zero)
    check_on_the_core(case, f"htvm_{call}", tmp_path, compiler)


def test_channels_first_stay_as_they_were():
    """Their outputs' channels are not side by side."""
    case = conv_case(5, 6, 8, 10, (3, 3), (2, 1), (1, 0, 1, 1), "tflite", layout="NCHW")
    assert "htvm_scaled_" not in native.source_of(native.compiled(case.module, "net", "dsp"))


@pytest.mark.rotating(4)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("x", "pixels"), [(3, 3), (4, 4), (5, 5), (6, 3), (7, 4), (10, 5)])
@pytest.mark.parametrize("c", [3, 8])
def test_depthwise(x, pixels, stride, c, tmp_path, compiler):
    """Blocks of three to five pixels, the last one over its neighbour."""
    shape = (3 + stride, (x - 1) * stride + 3)
    case = conv_case(*shape, c, c, (3, 3), (stride, stride), NO_PADDING, "tflite", groups=c)
    check_on_the_core(case, f"htvm_depthwise_{pixels}_{stride}", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


def test_rows_of_a_depthwise_filter_that_are_far_apart(tmp_path, compiler):
    case = conv_case(4, 42, 50, 50, (3, 3), (1, 1), NO_PADDING, "tflite", groups=50)
    assert 2 * 42 * 50 + 10 * 50 > 4095
    check_on_the_core(case, "htvm_depthwise_5_1", tmp_path, compiler)


@pytest.mark.parametrize(
    ("shape", "filters", "strides"),
    [
        ((9, 9, 1), (3, 2), (1, 1)),  # another filter
        ((9, 9, 2), (3, 3), (1, 2)),  # two strides
        ((9, 9, 2), (3, 3), (3, 3)),
        ((5, 4, 8), (3, 3), (1, 1)),  # two pixels wide
        ((4, 12, 700), (3, 3), (1, 1)),  # too far for a load
    ],
)
def test_other_depthwise_convolutions_stay_as_they_were(shape, filters, strides):
    c = shape[-1] if shape[-1] > 1 else 4
    case = conv_case(*shape[:2], c, c, filters, strides, NO_PADDING, "tflite", groups=c)
    assert "htvm_depthwise_" not in native.source_of(native.compiled(case.module, "net", "dsp"))


@pytest.mark.parametrize("scheme", ["shift", "mul_shift"])
def test_other_requantizations_stay_as_they_were(scheme):
    for case in (
        conv_case(5, 5, 8, 8, (3, 3), (1, 1), NO_PADDING, scheme),
        conv_case(5, 5, 8, 8, (3, 3), (1, 1), NO_PADDING, scheme, groups=8),
    ):
        source = native.source_of(native.compiled(case.module, "net", "dsp"))
        assert "htvm_scaled_" not in source and "htvm_depthwise_" not in source


def large_case(clip=(-128, 127), zero=3):
    """Sums up to 2**30 and more, divided by up to 2**31; a channel whose factor is 0."""
    rng = np.random.default_rng(0)
    weight, data = int8(rng, 4, 8, 1, 1), int8(rng, 3, 4, 8)
    bias = np.array([2**30, -(2**30), 2**30 + 2**28, 5], "int32")
    requant = TfliteRequant((2**31 - 1, 2**30, 3 * 2**29, 0), (-31, -24, -29, 0), zero)
    acc = reference.conv2d(data, weight, bias, (1, 1), NO_PADDING, 0, 1)
    op = conv2d_of(weight, bias, Window((1, 1), NO_PADDING, (1, 1), 1, "NHWC"), requant, clip)
    shape = (1, *data.shape)
    built = module({"x": shape}, lambda bb, v: op.write(bb, [v], "conv2d_0"))
    expected = requantized(acc, requant, clip, reference)
    return Case(built, {"x": data.reshape(shape)}, expected)


@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3", CORE])
def test_large_sums(core, tmp_path, compiler):
    call = "htvm_scaled_three" if core == CORE else "htvm_scale"
    check_on_the_core(large_case(), call, tmp_path, compiler, core)


def test_large_sums_natively(tmp_path, compiler):
    check_natively(large_case(), tmp_path, compiler)
    check_natively(large_case((0, 100)), tmp_path, compiler)
    check_natively(large_case((-128, 100), -128), tmp_path, compiler)


@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3"])
@pytest.mark.parametrize("large", [False, True])
def test_the_least_zero_point_without_long_products(large, core, tmp_path, compiler):
    """Sums that are not positive are -128 before they are multiplied."""
    case = conv_case(4, 5, 12, 6, (1, 1), (1, 1), NO_PADDING, "tflite", zero=-128)
    case = large_case((-128, 100), -128) if large else case
    check_on_the_core(case, "htvm_scale_least", tmp_path, compiler, core)


def test_a_store_of_another_form_has_no_parts():
    buffer = tirx.decl_buffer((4,), "int8", name="out")
    value = tirx.Cast("int8", tirx.const(3, "int32"))
    for store in (
        tirx.stmt.BufferStore(buffer, value, [tirx.const(0, "int32")]),
        tirx.stmt.Evaluate(value),
    ):
        assert Rescaling.of(store, SCALE) is None


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7, 8])
def test_packed_weights_of_channels_in_threes_and_twos(k):
    weight = np.arange(8 * k, dtype="int8").reshape(8, k)
    packed = WeightWords(1, 3, last=2 if k % 3 else 0).apply(weight).reshape(-1)
    threes = k - {0: 0, 1: 4, 2: 2}[k % 3]
    begin, at = 0, 0
    while begin < k:
        block = 3 if begin < threes else 2
        for word, own, element in np.ndindex(2, block, 4):
            assert packed[at] == weight[4 * word + element, begin + own]
            at += 1
        begin += block


def test_packed_weights_of_a_channel():
    weight = np.arange(9 * 4, dtype="int8").reshape(3, 3, 4, 1)
    packed = WeightTaps(1, 1).apply(weight)
    assert (packed.reshape(4, 9) == weight.reshape(9, 4).T).all()


def test_only_cores_with_long_products_take_large_sums():
    assert {kind for kind, core in KERNELS.items() if core.large} == {"dsp", "dsp_dual", "thumb"}


def test_a_dilated_depthwise_has_the_other_kernel(tmp_path, compiler):
    """Whose windows have as many rows between them as those of another stride."""
    case = conv_case(7, 7, 8, 8, (3, 3), (1, 1), NO_PADDING, "tflite", 8, dilation=2)
    assert "htvm_depthwise" not in native.source_of(native.compiled(case.module, "net", "dsp"))
    (made,) = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, CORE).outputs
    np.testing.assert_array_equal(made, case.expected.reshape(made.shape))


def test_columns_of_few_pixels_on_a_small_core(tmp_path, compiler):
    """Which the compiler died of, with all loops of a kernel in one function."""
    case = conv_case(5, 5, 4, 4, (3, 5), (2, 1), NO_PADDING, "tflite")
    (made,) = on_the_core(
        case.module, case.inputs["x"], compiler, tmp_path, "cortex_m0plus"
    ).outputs
    np.testing.assert_array_equal(made, case.expected.reshape(made.shape))


def test_a_depthwise_row_alone(tmp_path, compiler):
    case = conv_case(3, 9, 8, 8, (3, 3), (1, 1), NO_PADDING, "tflite", 8)
    check_on_the_core(case, "htvm_depthwise_4_1", tmp_path, compiler)


@pytest.mark.parametrize("core", ["cortex_m55", "rv32imcv"])
def test_shifts_beyond_those_of_vectors(core):
    rng = np.random.default_rng(4)
    requant = TfliteRequant((1 << 30,) * 4, (-40, -3, -2, -5), 7)
    op = conv2d_of(int8(rng, 4, 4, 1, 1), bias_of(rng, 4), Window((1, 1)), requant, (-128, 127))
    built = module({"x": (1, 2, 2, 4)}, lambda bb, v: op.write(bb, [v], "conv2d_0"))
    kind = resolve(core).soc.host.simd
    assert "rescale" not in native.source_of(native.compiled(built, "net", kind))
