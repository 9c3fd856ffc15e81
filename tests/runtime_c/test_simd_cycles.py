"""The cycle model of the kernels for SIMD: units of work explain the simulated cycles."""

from __future__ import annotations

import pytest

from benchmarks.simd_kernels import constants


@pytest.mark.slow
def test_units_of_work_explain_the_cycles() -> None:
    for kernel, _, _, worst in constants().rows:
        # Transposes of odd sizes differ in how many of their accesses lie across words.
        assert float(worst.rstrip(" %")) <= (20 if kernel == "transpose" else 10), kernel
