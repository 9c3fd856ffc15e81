"""Depthwise convolutions by bands of rows equal numpy, on the core and natively."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.layers import TfliteRequant
from byoc_dory.soc.registry import resolve
from htvm.aot import cpu
from htvm.aot.intrinsics import BAND
from htvm.aot.schedules import depthwise
from htvm.firmware.user_compiler import user_compiler
from patterns.ops.convolution import Window, conv2d_of
from tests.aot.cpu import native
from tests.aot.cpu.modules import Case, conv_case, int8, module, requantized
from tests.aot.cpu.on_the_core import on_the_core
from tests.aot.cpu.test_overlay import Call
from tests.aot.cpu.test_scaled import CORE, NO_PADDING, check_natively, check_on_the_core
from tests.reference import cpu_kernels as reference
from tests.tools import tool


def band_case(height, width, channels, stride=1, zero=None):
    """A convolution with an output of so many rows and columns."""
    shape = ((height - 1) * stride + 3, (width - 1) * stride + 3)
    strides = (stride, stride)
    return conv_case(
        *shape, channels, channels, (3, 3), strides, NO_PADDING, "tflite", channels, zero=zero
    )


def in_bands(monkeypatch, rows):
    """Let bands have so many rows."""
    monkeypatch.setattr(depthwise, "_band_rows", lambda *_: rows)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("channels", [4, 12])
@pytest.mark.parametrize(
    ("height", "width", "rows"),
    [
        (2, 2, 2),
        (6, 6, 6),
        (3, 4, 3),
        (7, 8, 5),
        (9, 2, 4),
        (4, 3, 4),
        (5, 5, 5),
        (13, 5, 7),
        (25, 5, 25),
        (11, 7, 6),
        (8, 9, 8),
    ],
)
def test_bands(height, width, rows, channels, tmp_path, compiler, monkeypatch):
    """Odd and even numbers of rows and columns; the last band over its neighbour."""
    in_bands(monkeypatch, rows)
    case = band_case(height, width, channels)
    check_on_the_core(case, "htvm_band_1", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize("zero", [-128, -127])
@pytest.mark.parametrize(("height", "width", "rows"), [(6, 6, 6), (7, 5, 5)])
def test_the_least_zero_point(height, width, rows, zero, tmp_path, compiler, monkeypatch):
    in_bands(monkeypatch, rows)
    case = band_case(height, width, 8, zero=zero)
    check_on_the_core(case, "htvm_band_1", tmp_path, compiler)


def large_case(rows, bias, shift):
    """Of so many rows, two channels have this bias and this shift."""
    rng = np.random.default_rng(1)
    weight, data = int8(rng, 4, 1, 3, 3), int8(rng, rows + 2, 6, 4)
    biases = np.array([bias, -bias, 3, 2**20], "int32")
    requant = TfliteRequant((2**31 - 1, 2**30, 2**30, 3 * 2**29), (shift, shift, -6, -12), -128)
    op = conv2d_of(weight, biases, Window((1, 1), NO_PADDING, (1, 1), 4), requant, (-128, 127))
    shape = (1, *data.shape)
    built = module({"x": shape}, lambda bb, v: op.write(bb, [v], "conv2d_0"))
    acc = reference.conv2d(data, weight, biases, (1, 1), NO_PADDING, 0, 4)
    expected = requantized(acc, requant, (-128, 127), reference)
    return Case(built, {"x": data.reshape(shape)}, expected)


LARGE = pytest.mark.parametrize(("bias", "shift"), [(2**29 - 1, -23), (2**29, -23), (5, -24)])


@LARGE
def test_large_biases_and_shifts(bias, shift, tmp_path, compiler, monkeypatch):
    """Sums are doubled, and rounded by what is added to the product, where they are small."""
    in_bands(monkeypatch, 4)
    case = large_case(4, bias, shift)
    source = native.source_of(native.compiled(case.module, "net", "dsp"))
    small = bias < 2**29 and shift >= -23
    assert f", -128, (uint32_t){small:d});" in source
    check_on_the_core(case, "htvm_band_1", tmp_path, compiler)


@pytest.mark.parametrize("core", ["cortex_m7", "cortex_m33"])
def test_other_cores(core, tmp_path, compiler, monkeypatch):
    in_bands(monkeypatch, 5)
    case = band_case(7, 5, 8)
    (made,) = on_the_core(case.module, case.inputs["x"], compiler, tmp_path, core).outputs
    np.testing.assert_array_equal(made, case.expected.reshape(made.shape))


def test_the_users_gcc(tmp_path, monkeypatch):
    tool("arm-none-eabi-gcc")
    in_bands(monkeypatch, 5)
    gcc = user_compiler("arm-none-eabi-gcc", resolve(CORE).soc)
    check_on_the_core(band_case(7, 5, 8), "htvm_band_1", tmp_path, gcc)


@pytest.mark.parametrize(
    ("height", "width", "channels"),
    [(6, 6, 6), (1, 8, 8), (3, 3, 8), (8, 1, 8)],
)
def test_other_shapes_stay_in_blocks_of_pixels(height, width, channels, monkeypatch):
    """Channels that make no fours, and few pixels."""
    monkeypatch.setattr(cpu, "_largest_tensor", lambda main: 1 << 20)
    case = band_case(height, width, channels)
    assert "htvm_band_" not in native.source_of(native.compiled(case.module, "net", "dsp"))


def test_bands_need_room(monkeypatch):
    """A layer alone has the largest tensor."""
    module = band_case(12, 12, 8).module
    assert "htvm_band_" not in native.source_of(native.compiled(module, "net", "dsp"))
    monkeypatch.setattr(cpu, "_largest_tensor", lambda main: 1 << 20)
    assert "htvm_band_1(" in native.source_of(native.compiled(module, "net", "dsp"))


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_a_band_over_its_input(rows, tmp_path, compiler, monkeypatch):
    """At the distance that the kernel promises, and not at one much smaller."""
    in_bands(monkeypatch, rows)
    case = conv_case(12, 8, 8, 8, (3, 3), (1, 1), (1, 1, 1, 1), "tflite", 8)
    code = native.compiled(case.module, "net", "dsp")
    call = code.calls[-1]
    kernel = next(each for each in code.kernels if each.symbol == call.target)
    (overlay,) = kernel.overlays
    function = getattr(native.library([code], tmp_path, compiler), kernel.symbol)
    function.restype = None
    data = int8(np.random.default_rng(rows), *kernel.params[0][2])
    arguments = [data, *(code.constants[name].data for name in call.inputs[1:])]
    made = Call(function, arguments, call.outputs[0].bytes, kernel.workspaces)
    np.testing.assert_array_equal(made.over(0, -overlay.below), made.apart())
    assert not np.array_equal(made.over(0, -(overlay.below // 4)), made.apart())


def test_rows_of_a_band():
    rows = depthwise._band_rows
    assert rows((6, 6, 128), 1, BAND, 8192, None, True) == 6
    assert rows((12, 12, 64), 1, BAND, 12544, 38416, True) == 12
    # The output must lie over the input, and few rows behind it.
    assert rows((48, 48, 8), 1, BAND, 20000, 38416, True) == 4
    assert rows((48, 48, 8), 1, BAND, 20000, 38416, False) == 16
    assert rows((25, 5, 64), 1, BAND, 12096, 12096, True) is None
    assert rows((3, 3, 256), 1, BAND, 6400, None, True) is None


def test_the_words_of_a_band():
    assert BAND.pairs(6, 6, 1) == 4 * 8 * 4
    assert BAND.pairs(6, 5, 1) == 4 * 8 * 4
    assert BAND.pairs(3, 3, 2) == 4 * 7 * 4
