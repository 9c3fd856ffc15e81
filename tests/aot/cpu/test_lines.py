"""Depthwise convolutions of one or two rows equal numpy, on the core and natively."""

from __future__ import annotations

from functools import partial

import pytest

from htvm.aot.cpu import compile_cpu
from htvm.aot.intrinsics import KERNELS_OF_ROWS
from tests.aot.cpu import native
from tests.aot.cpu.test_bands import band_case
from tests.aot.cpu.test_scaled import check_natively, check_on_the_core


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
    check_on_the_core(case, f"htvm_lines_{height}", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize("zero", [-128, -127])
@pytest.mark.parametrize("height", [1, 2])
def test_the_least_zero_point(height, zero, of_rows, tmp_path, compiler):
    case = band_case(height, 8, 8, zero=zero)
    check_on_the_core(case, f"htvm_lines_{height}", tmp_path, compiler)


@pytest.mark.parametrize(("height", "width"), [(1, 6), (2, 5), (3, 8)])
def test_other_rows_are_no_lines(height, width, of_rows):
    source = native.source_of(native.compiled(band_case(height, width, 8).module, "net", "dsp"))
    assert "htvm_lines_" not in source


def test_lines_are_for_chains():
    source = native.source_of(native.compiled(band_case(2, 8, 8).module, "net", "dsp"))
    assert "htvm_lines_" not in source
