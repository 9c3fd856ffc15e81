"""The high half of products, which Armv6-M computes from four short ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.test_arm import NOTHING, run

BODY = """
#include "htvm_intrinsics.h"
static int32_t exact(int32_t sum, uint32_t doubled)
{
    return (int32_t)(((int64_t)sum * (int64_t)doubled + 0x80000000ll) >> 32);
}
void first(uint32_t *to, const uint32_t *from)
{
    static const int32_t edges[] = {0, 1, -1, 65535, 65536, -65536, (3 << 29) - 1, 1 - (3 << 29)};
    uint32_t state = from[0], wrong = 0, compared = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t any = state | 1u << 31;
        const uint32_t doubled = i % 3 == 0 ? 1u << 31 : i % 3 == 1 ? 0xffffffffu : any;
        state = state * 1664525u + 1013904223u;
        const int32_t sum = i % 5 == 0 ? edges[i / 5 % 8] : (int32_t)state >> (2 + i % 20);
        wrong += htvm_high_product(sum, doubled) != exact(sum, doubled);
        compared++;
    }
    to[0] = wrong;
    to[1] = compared;
}
"""


@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3"])
def test_it_is_exact(core: str, tmp_path: Path) -> None:
    result = run(BODY + NOTHING, tmp_path, core, limit=10**7).outputs["result"]
    assert int.from_bytes(result[:4], "little") == 0
    assert int.from_bytes(result[4:8], "little") == 3000
