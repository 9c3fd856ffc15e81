"""Signs are compared in C, as analysers object to a shift by all other bits."""

from __future__ import annotations

import pytest
from tvm import te, tirx

from htvm.aot.codegen_c import compare_signs


@pytest.mark.parametrize(
    ("dtype", "bits", "written"),
    [
        ("int32", 31, "A[v_i] - T.Cast(\"int32\", A[v_i] < 0)"),
        ("int32", 30, ">> 30"),
        ("int64", 63, "T.Cast(\"int64\", A[v_i] < T.int64(0))"),
        ("int64", 31, "T.int64(31)"),
        ("uint32", 31, "T.uint32(31)"),
    ],
)  # fmt: skip
def test_what_a_shift_becomes(dtype: str, bits: int, written: str) -> None:
    numbers = te.placeholder((4,), dtype, "A")
    result = te.compute((4,), lambda i: numbers[i] + (numbers[i] >> tirx.const(bits, dtype)))
    func = te.create_prim_func([numbers, result])
    assert written in compare_signs(func).script()
