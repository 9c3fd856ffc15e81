"""Depthwise convolutions of one or two rows equal numpy, on the core and natively."""

from __future__ import annotations

from functools import partial

import pytest

from byoc_dory.soc.registry import resolve
from htvm.aot.cpu import compile_cpu
from htvm.aot.intrinsics import KERNELS_OF_ROWS
from htvm.firmware.user_compiler import user_compiler
from tests.aot.cpu import native
from tests.aot.cpu.test_bands import LARGE, band_case, large_case
from tests.aot.cpu.test_scaled import CORE, check_natively, check_on_the_core
from tests.tools import tool

_FUNCTION = {1: "htvm_line_1", 2: "htvm_lines_2"}
"""By the rows of a map."""


@pytest.fixture
def of_rows(monkeypatch):
    """Compile kernels as a chain's, with room for pairs."""
    made = partial(compile_cpu, table=KERNELS_OF_ROWS, spare=1 << 12)
    monkeypatch.setattr(native, "compile_cpu", made)


@pytest.mark.parametrize("channels", [4, 12])
@pytest.mark.parametrize(
    ("height", "width"), [(1, 4), (1, 8), (1, 20), (2, 2), (2, 6), (2, 11 * 2)]
)
def test_lines(height, width, channels, of_rows, tmp_path, compiler):
    case = band_case(height, width, channels)
    check_on_the_core(case, _FUNCTION[height], tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


def test_a_row_of_far_elements(of_rows, tmp_path, compiler):
    """Two rows down from an address are more than a constant of a load."""
    case = band_case(1, 20, 96)
    check_on_the_core(case, "htvm_lines_1", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize("channels", [2, 3, 6])
def test_a_row_of_any_channels(channels, of_rows, tmp_path, compiler):
    case = band_case(1, 8, channels)
    check_on_the_core(case, "htvm_line_1", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize("zero", [-128, -127])
@pytest.mark.parametrize("height", [1, 2])
def test_the_least_zero_point(height, zero, of_rows, tmp_path, compiler):
    case = band_case(height, 8, 8, zero=zero)
    check_on_the_core(case, _FUNCTION[height], tmp_path, compiler)


@LARGE
@pytest.mark.parametrize("height", [1, 2])
def test_large_biases_and_shifts(height, bias, shift, of_rows, tmp_path, compiler):
    case = large_case(height, bias, shift)
    check_on_the_core(case, _FUNCTION[height], tmp_path, compiler)


def test_the_users_gcc(of_rows, tmp_path):
    tool("arm-none-eabi-gcc")
    gcc = user_compiler("arm-none-eabi-gcc", resolve(CORE).soc)
    check_on_the_core(band_case(1, 8, 8), "htvm_line_1", tmp_path, gcc)


@pytest.mark.parametrize(("height", "width"), [(1, 6), (2, 5), (3, 8)])
def test_other_rows_are_no_lines(height, width, of_rows):
    source = native.source_of(native.compiled(band_case(height, width, 8).module, "net", "dsp"))
    assert "htvm_line" not in source


@pytest.mark.parametrize("height", [1, 2])
def test_lines_are_for_chains(height):
    source = native.source_of(native.compiled(band_case(height, 8, 8).module, "net", "dsp"))
    assert "htvm_line" not in source
