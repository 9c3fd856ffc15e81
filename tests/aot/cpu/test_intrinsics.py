"""A core is an entry of the table of kernels; a row computes its pattern, or is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import tirx
from tvm.tirx.stmt import BufferStore, For, ForKind

from htvm import errors
from htvm.aot.calls import PRODUCTS, call_intrinsics
from htvm.aot.cpu import compile_cpu
from htvm.aot.intrinsics import KERNELS, SCALAR, Column, CoreKernels, Depthwise, Products
from htvm.aot.parallel import Cores
from tests.aot.cpu import native
from tests.aot.cpu.test_dot4 import random_cases

HEADER = """
#include <htvm_intrinsics.h>
#include <string.h>

static inline uint16_t htvm_made_up_load(const int8_t *at) {
    uint16_t pair;
    memcpy(&pair, at, 2);
    return pair;
}
#define htvm_made_up_load_any htvm_made_up_load

/* Two products, of bytes that a load has side by side. */
static inline int32_t htvm_made_up_two(uint16_t x, uint16_t w, int32_t sum) {
    return sum + (int8_t)x * (int8_t)w + (int8_t)(x >> 8) * (int8_t)(w >> 8);
}
"""


def products(sums, data, weights):
    return sums + (data.astype("int32") * weights.astype("int32")).sum(axis=1, dtype="int32")


def saturating(sums, data, weights):
    """Two products that are added with saturation to 16 bits."""
    total = (data.astype("int32") * weights.astype("int32")).sum(axis=1, dtype="int32")
    return sums + np.clip(total, -(2**15), 2**15 - 1)


def pairs(adds=products, least=-128) -> Products:
    """A row of a core that multiplies pairs of bytes, with registers for 3 x 2 sums."""
    blocks = {(3, 2): (1.0, 4), (1, 2): (1.5, 4), (2, 1): (1.5, 4), (1, 1): (2.0, 2)}
    return Products(
        "htvm_made_up_two",
        blocks,
        "register block of {} {} x {} channels, two products at once",
        width=2,
        load="htvm_made_up_load",
        adds=adds,
        least=least,
    )


MADE_UP = {
    **KERNELS,
    "made_up": CoreKernels((pairs(), SCALAR), (Depthwise(pixels=3),), header="made_up.h"),
}


@pytest.mark.parametrize(
    "count", [12, pytest.param(150, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_of_a_new_core_equal_numpy(count, tmp_path, compiler):
    cases = random_cases(count, 11000)
    codes = [
        compile_cpu(case.module, f"net{number}", simd="made_up", table=MADE_UP)
        for number, case in enumerate(cases)
    ]
    assert sum("htvm_made_up_two(" in native.source_of(code) for code in codes) > count // 3
    (tmp_path / "made_up.h").write_text(HEADER)

    def check() -> None:
        loaded = native.library(codes, tmp_path, native.trapping(compiler))
        for number, (case, code) in enumerate(zip(cases, codes, strict=True)):
            (made,) = native.run(code, loaded, case.inputs)
            wanted = case.expected.reshape(made.shape)
            np.testing.assert_array_equal(made, wanted, err_msg=f"case {number}")

    native.in_child(check)


def test_cores_share_kernels_of_a_new_core():
    """What the words of a row read is known without its name."""
    case = next(case for case in random_cases(8, 11000) if case.inputs["x"].ndim == 2)
    code = compile_cpu(
        case.module, "net", simd="made_up", table=MADE_UP, cores=Cores(2, 1 << 15, 1 << 11)
    )
    (kernel,) = code.kernels
    assert "shared by the cores" in kernel.schedule
    assert kernel.headers == ("htvm_parallel.h", "made_up.h")


def test_a_function_that_computes_another_pattern_is_refused():
    with pytest.raises(errors.DefectError, match=r"its function computes .*row 'htvm_made_up_two'"):
        pairs(saturating)
    assert pairs(saturating, least=-127).width == 2


def test_a_row_is_not_used_for_weights_that_are_too_small_for_it():
    """Its function would compute something else for a weight of -128."""

    def used(case, least: int) -> bool:
        row = CoreKernels((pairs(least=least), SCALAR), (Depthwise(),), header="made_up.h")
        code = compile_cpu(case.module, "net", simd="made_up", table={**KERNELS, "made_up": row})
        return "htvm_made_up_two(" in native.source_of(code)

    case = next(case for case in random_cases(8, 11000) if used(case, -128))
    assert not used(case, 127)


def test_kernels_of_an_unknown_core_are_a_typed_error():
    (case,) = random_cases(1, 11000)
    with pytest.raises(errors.TargetError, match="no CPU kernels for cores with 'mvee'.*mean mve"):
        compile_cpu(case.module, "net", simd="mvee")


def test_a_depthwise_function_is_checked_by_its_pattern():
    def in_16_bits(sums, data, weights):
        return sums + (data.astype("int16") * weights).sum(axis=1, dtype="int16")

    with pytest.raises(errors.DefectError, match="row 'htvm_taps'"):
        Depthwise("htvm_taps", width=2, adds=in_16_bits)
    assert Depthwise("htvm_taps", width=2, adds=in_16_bits, least=-127).pixels == 1


def test_a_function_must_say_what_it_computes():
    with pytest.raises(errors.DefectError, match="nothing says"):
        Products("htvm_made_up_two", {(1, 1): (1.0, 1)}, "{} {} {}", width=2)


def test_functions_that_generated_c_could_not_call_are_refused():
    with pytest.raises(errors.DefectError, match="'two'.*begin with htvm_"):
        replace(pairs(), name="two")
    with pytest.raises(errors.DefectError, match="'taps'.*begin with htvm_"):
        Depthwise("taps", width=2, adds=products)
    with pytest.raises(errors.DefectError, match="how words .* are loaded"):
        replace(pairs(), load="")
    column = Column("int16", 2, ("htvm_fill",))
    with pytest.raises(errors.DefectError, match=r"blocks of \(1, 1\) .*may be \(2, 2\)"):
        replace(pairs(), column=column)
    assert replace(pairs(), blocks={(1, 2): (1.0, 1)}, column=column).column == column


@pytest.mark.parametrize(
    ("core", "mark", "extent", "step", "dtype"),
    [
        ("corev", "htvm_dot4:1:1", 3, 1, "int8"),
        ("corev", "htvm_dot4:1:1", 4, 2, "int8"),
        ("corev", "htvm_dot4:1:1", 4, 1, "int16"),
        ("dsp", "htvm_:2:2", 4, 1, "int8"),
        ("mve", "htvm_rows_:1:1", 4, 1, "int8"),
        ("mve", "htvm_taps_sum:1:8", 4, 1, "int8"),
    ],
)
def test_a_loop_that_is_marked_for_other_products_is_refused(core, mark, extent, step, dtype):
    x, w = (tirx.decl_buffer((16,), dtype, name=name) for name in "xw")
    total, i = tirx.decl_buffer((1,), "int32", name="total"), tirx.Var("i", "int32")
    product = tirx.Cast("int32", x[i * step]) * tirx.Cast("int32", w[i])
    store = BufferStore(total, total[0] + product, [0])
    loop = For(i, 0, extent, ForKind.SERIAL, store, annotations={PRODUCTS: mark})
    with pytest.raises(errors.UnsupportedError, match="that it is marked for"):
        call_intrinsics(tirx.PrimFunc([x, w, total], loop), KERNELS[core])
