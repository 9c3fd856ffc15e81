"""Runs of bytes with a constant behind each, which the DSP extension writes in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.test_arm import NOTHING, run

BODY = """
#include "htvm_intrinsics.h"
#include "htvm_runs.h"

enum { MOST = 9, ROOM = 4 + MOST * 8 + 4 };

static int8_t source[MOST * 5 + 8], made[ROOM], wanted[ROOM];

void first(uint32_t *to, const uint32_t *from)
{
    uint32_t state = from[0], wrong = 0, compared = 0;
    for (uint32_t i = 0; i < sizeof source; i++) {
        state = state * 1664525u + 1013904223u;
        source[i] = (int8_t)(state >> 24);
    }
    for (uint32_t runs = 0; runs <= MOST; runs++) {
        for (uint32_t bytes = 1; bytes <= 5; bytes++) {
            for (uint32_t more = 0; more <= 3; more++) {
                for (uint32_t at = 0; at < 4; at++) {
                    const int8_t value = (int8_t)(compared % 3u == 0u ? -128 : compared % 127u);
                    for (uint32_t i = 0; i < ROOM; i++) {
                        made[i] = wanted[i] = (int8_t)(i * 7u);
                    }
                    for (uint32_t i = 0; i < runs * (bytes + more); i++) {
                        const uint32_t byte = i % (bytes + more);
                        const uint32_t read = at + i / (bytes + more) * bytes + byte;
                        wanted[at + i] = byte < bytes ? source[read] : value;
                    }
                    htvm_copy_runs(made + at, source + at, runs, bytes, more, value);
                    for (uint32_t i = 0; i < ROOM; i++) {
                        wrong += made[i] != wanted[i];
                    }
                    compared++;
                }
            }
        }
    }
    to[0] = wrong;
    to[1] = compared;
}
"""


@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m4"])
def test_each_run_is_followed_by_the_constant_and_nothing_else_is_written(
    core: str, tmp_path: Path
) -> None:
    result = run(BODY + NOTHING, tmp_path, core, limit=10**7).outputs["result"]
    assert int.from_bytes(result[:4], "little") == 0
    assert int.from_bytes(result[4:8], "little") == 10 * 5 * 4 * 4
