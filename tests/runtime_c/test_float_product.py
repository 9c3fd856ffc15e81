"""onnxruntime's requantization in integers equals the float32 arithmetic of the same compiler."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.aot.cpu.native import FOLDERS, STRICT, trapping
from tests.sim.test_arm import NOTHING, run

COMPARE = """
#include <string.h>
#include "htvm_float_product.h"
static float power(int32_t exponent) /* 2^exponent */
{
    const uint32_t bits = (uint32_t)(127 + exponent) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static int32_t limited(int32_t value)
{
    return value < -255 ? -255 : value > 255 ? 255 : value;
}
static int32_t exact(int32_t sum, float scale)
{
    const float product = (float)sum * scale;
    if (product >= 256.0f || product <= -256.0f) {
        return product < 0 ? -255 : 255;
    }
    const volatile float raised = product + 12582912.0f; /* its floats are integers */
    return limited((int32_t)(raised - 12582912.0f));
}
static void compare(uint32_t state, uint32_t *wrong, uint32_t *ties)
{
    for (uint32_t i = 0; i < 4000; i++) {
        state = state * 1664525u + 1013904223u;
        /* A factor of few bits has exact ties. */
        const uint32_t bits = i % 3 == 0 ? 0x80000000u | (state & 0x7c000000u) : state | 1u << 31;
        const int32_t mantissa = (int32_t)(bits >> 8), factor = mantissa << 7;
        const int32_t drop = 1 + (int32_t)(i % 30);
        const int32_t nudge = (1 << (drop - 1)) + (drop >= 17 ? 1 << (drop - 17) : 0);
        const float scale = (float)mantissa * power(-25 - drop);
        state = state * 1664525u + 1013904223u;
        int32_t sum = (int32_t)state >> (state & 7u);
        if (drop <= 20 && i % 4 != 0) {
            const int64_t half = 2 * (int64_t)(state >> 23) - 511;
            sum = (int32_t)(half * ((int64_t)1 << (31 + drop)) / factor) + (int32_t)(i % 3) - 1;
            (*ties)++;
        }
        if (drop > 13) {
            sum = sum < 0 ? -(int32_t)((uint32_t)-sum & 0xffffffu) : sum & 0xffffff;
        }
        const int32_t made = limited(htvm_float_product(sum, factor, drop, nudge));
        *wrong += made != exact(sum, scale);
    }
}
"""

ON_THE_CORE = """
void first(uint32_t *to, const uint32_t *from)
{
    to[0] = to[1] = 0;
    compare(from[0], &to[0], &to[1]);
}
"""


@pytest.mark.rotating(1)  # zig makes a library of floats for each core
@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3", "cortex_m4"])
def test_on_cores(core: str, tmp_path: Path) -> None:
    result = run(COMPARE + ON_THE_CORE + NOTHING, tmp_path, core, limit=10**7).outputs["result"]
    assert int.from_bytes(result[:4], "little") == 0
    assert int.from_bytes(result[4:8], "little") > 1000


def test_on_this_machine(tmp_path, compiler) -> None:
    source = tmp_path / "product.c"
    source.write_text(
        COMPARE + "void all(uint32_t s, uint32_t *w, uint32_t *t);\n"
        "void all(uint32_t s, uint32_t *w, uint32_t *t) { compare(s, w, t); }\n"
    )
    library = trapping(compiler).compile_host(
        [source], tmp_path / "product.so", FOLDERS, STRICT, shared=True
    )
    wrong, ties = ctypes.c_uint32(0), ctypes.c_uint32(0)
    for seed in range(500):
        ctypes.CDLL(str(library)).all(
            ctypes.c_uint32(seed), ctypes.byref(wrong), ctypes.byref(ties)
        )
    assert (wrong.value, ties.value > 500_000) == (0, True)
