"""What a network's header says to the code around it: sizes, axes, quantization, conversions."""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.aot.entry import model_sources
from htvm.firmware.toolchain import Compiler
from htvm.model import TensorInfo
from tests.aot import tiny

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
INPUTS = (
    TensorInfo("away", (1, 2, 3, 4), "int8", 0.25, -3, layout="NHWC"),
    TensorInfo("even", (1, 2), "uint8", 0.1, 7, True),
    TensorInfo("wide", (5,), "int16", 2.0**-9, 0, True),
    TensorInfo("real", (), "float32"),
)
OUTPUTS = (TensorInfo("o", (1, 3), "int8", 0.0625, 5), TensorInfo("p", (2,), "int32", 0.5, 0))


def header(name: str) -> str:
    program = replace(tiny.program(name), inputs=INPUTS, outputs=OUTPUTS, stack_bytes=2_048)
    return model_sources(program)[f"{name}.h"]


USER = """
#include "one.h"
#include "two.h"
int32_t shape[ONE_INPUT_0_AXES] = ONE_INPUT_0_SHAPE;
const char *layout = TWO_INPUT_0_LAYOUT;
uint32_t sizes[3] = {ONE_ARENA_BYTES, ONE_STACK_BYTES, ONE_INPUT_0_ELEMENTS};
float scales[2] = {ONE_INPUT_1_SCALE, TWO_OUTPUT_1_SCALE};
int32_t zeros[2] = {ONE_INPUT_0_ZERO_POINT, TWO_OUTPUT_0_ZERO_POINT};
int8_t away(float real) { return one_input_0_quantize(real); }
uint8_t even(float real) { return two_input_1_quantize(real); }
int16_t wide(float real) { return one_input_2_quantize(real); }
float back(int8_t number) { return two_output_0_dequantize(number); }
#if defined(ONE_INPUT_1_LAYOUT) || defined(ONE_INPUT_3_SCALE)
#error "what is not known is not said"
#endif
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Both networks' headers in one file of C11."""
    folder = tmp_path_factory.mktemp("interface")
    for name in ("one", "two"):
        (folder / f"{name}.h").write_text(header(name))
    (folder / "user.c").write_text(USER)
    flags = ("-std=c11", "-ffp-contract=off", *STRICT)
    out = Compiler.zig().compile_host(
        [folder / "user.c"], folder / "lib.so", [folder], flags, shared=True
    )
    found = ctypes.CDLL(str(out))
    for function, result in (
        ("away", ctypes.c_int8), ("even", ctypes.c_uint8), ("wide", ctypes.c_int16),
    ):  # fmt: skip
        getattr(found, function).argtypes = [ctypes.c_float]
        getattr(found, function).restype = result
    found.back.restype = ctypes.c_float
    return found


def test_numbers_are_data(library: ctypes.CDLL) -> None:
    assert list((ctypes.c_int32 * 4).in_dll(library, "shape")) == [1, 2, 3, 4]
    assert ctypes.c_char_p.in_dll(library, "layout").value == b"NHWC"
    sizes = list((ctypes.c_uint32 * 3).in_dll(library, "sizes"))
    assert sizes == [tiny.program().plan.peak, 2_048, 24]
    scales = list((ctypes.c_float * 2).in_dll(library, "scales"))
    assert scales == [np.float32(0.1), np.float32(0.5)]
    assert list((ctypes.c_int32 * 2).in_dll(library, "zeros")) == [-3, 5]


def _away(reals: np.ndarray) -> np.ndarray:
    """Halves away from zero, in numbers wide enough for the sum to be exact."""
    wide = reals.astype("float64")
    return np.sign(wide) * np.floor(np.abs(wide) + 0.5)


@pytest.mark.parametrize(
    ("function", "info", "rounded"),
    [("away", INPUTS[0], _away), ("even", INPUTS[1], np.rint), ("wide", INPUTS[2], np.rint)],
)
def test_conversions_round_as_the_source_does(
    function: str, info: TensorInfo, rounded: object, library: ctypes.CDLL
) -> None:
    """On halves, their neighbours, far beyond the ends, and what is no number."""
    assert info.scale is not None and info.zero_point is not None and callable(rounded)
    scale, limits = np.float32(info.scale), np.iinfo(info.dtype)
    halves = (np.arange(-800, 800) / 2).astype("float32") * scale
    far = np.array([1e30, -1e30, np.inf, -np.inf, 0.0, -0.0], "float32")
    reals = np.concatenate(
        [halves, np.nextafter(halves, np.float32(9e9)), np.nextafter(halves, np.float32(-9e9)), far]
    ).astype("float32")
    wanted = rounded(np.clip(reals / scale, -1e6, 1e6).astype("float32")) + info.zero_point
    wanted = np.clip(wanted, limits.min, limits.max)
    found = [getattr(library, function)(ctypes.c_float(real)) for real in reals]
    np.testing.assert_array_equal(found, wanted)
    assert getattr(library, function)(ctypes.c_float(np.nan)) == limits.max


def test_outputs_become_real_numbers(library: ctypes.CDLL) -> None:
    found = [library.back(ctypes.c_int8(number)) for number in range(-128, 128)]
    np.testing.assert_array_equal(found, (np.arange(-128, 128) - 5) * 0.0625)


@pytest.mark.parametrize("standard", ["c++17", "c++11"])
def test_cplusplus_takes_both_headers(standard: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.h").write_text(header(name))
    (tmp_path / "user.cpp").write_text(USER)
    compiler = Compiler.zig()
    line = [*compiler.host[:-1], "c++", f"-std={standard}", *STRICT, f"-I{tmp_path}", "-c"]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(compiler.cache / "zig")}
    done = subprocess.run(
        [*line, str(tmp_path / "user.cpp"), "-o", str(tmp_path / "user.o")],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_an_integer_interface_keeps_the_conversion_s_rounding() -> None:
    """``io="int8"`` takes the conversion out of the network: its rounding is in the header."""
    model = htvm.with_integer_io(htvm.zoo.digits())
    (info,) = model.inputs
    assert info.halves_to_even
    (described,) = model.interface_with_layouts[0]
    assert described.layout == "NCHW"


def test_layouts_follow_the_operators() -> None:
    inputs, outputs = htvm.zoo.resnet8().interface_with_layouts
    assert [info.layout for info in inputs] == ["NHWC"]
    assert [info.layout for info in outputs] == [None], "scores have no rows and columns"
