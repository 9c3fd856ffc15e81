"""Generated C for N-EUREKA with the real driver and device model, compiled for this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.base import Memory, Soc
from byoc_dory.soc.siracusa.memories import L1, MRAM, SRAM
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.verdict import Refused
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.neureka_cases import evaluate, random_layer
from tests.byoc_dory.program import Case, main_program, packed
from tests.reference.matrix_layers import stored

SOC = replace(
    SNITCH_ITA,
    name="neureka_test",
    driver="siracusa",
    memories=(Memory("L2", 0x1C000000, 2 << 20), L1, MRAM, SRAM),
    accelerators=(NEUREKA,),
    targets=(),
    powers=(),
)

# Moves bytes only when somebody waits for them.
DMA_H = """
#include <stdint.h>
typedef struct { void *to; const void *from; uint32_t bytes, rows, to_stride, from_stride; } snitch_dma_t;
uint32_t snitch_dma_start(const snitch_dma_t *what);
void snitch_dma_wait(uint32_t ticket);
void snitch_dma_wait_all(void);
"""
DMA_C = """
#include <string.h>
#include "snitch_dma.h"
static snitch_dma_t queue[64];
static uint32_t started, done;
void snitch_dma_wait(uint32_t ticket) {
    for (; done != ticket && done != started; done++) {
        const snitch_dma_t *t = &queue[done % 64u];
        for (uint32_t r = 0; r < t->rows; r++)
            memcpy((char *)t->to + (size_t)r * t->to_stride, (const char *)t->from + (size_t)r * t->from_stride, t->bytes);
    }
}
uint32_t snitch_dma_start(const snitch_dma_t *what) {
    if (started - done == 64u) snitch_dma_wait(done + 1u);
    queue[started++ % 64u] = *what;
    return started;
}
void snitch_dma_wait_all(void) { snitch_dma_wait(started); }
"""
CLUSTER_H = """
#include "htvm_hal.h"
#include "htvm_soc.h"
typedef struct { void *data; uint32_t rows, bytes, pitch; } cluster_relu_t;
static inline void cluster_relu(const void *args, uint32_t core) {
    const cluster_relu_t *r = args;
    for (uint32_t i = 0; core == 0 && i < r->rows; i++)
        for (uint32_t j = 0; j < r->bytes; j++) {
            int8_t *at = (int8_t *)r->data + i * r->pitch + j;
            *at = *at < 0 ? 0 : *at;
        }
}
#define snitch_cluster_run(kernel, args) kernel(args, 0)
static inline void *snitch_l1(uint32_t offset) { return htvm_hal_pointer(HTVM_L1_BASE + offset); }
"""


def case_of(layer: Layer, options: TilingOptions, prefix: str, soc: Soc = SOC) -> Case:
    region = Region(prefix, (layer,), layer.inputs, (layer.output,))
    code = generate(region, soc, options, prefix, "neureka")
    rng = np.random.default_rng(len(prefix))
    (tensor,) = layer.inputs
    limits = np.iinfo(tensor.dtype)
    x = rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
    return Case(code, (stored(x),), (stored(evaluate(layer, x)),))


def cases(count: int, start: int) -> list[Case]:
    found = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        layer = random_layer(rng, f"l{seed}")
        verdict = NEUREKA.judge(layer, SOC)
        assert not isinstance(verdict, Refused), verdict
        schedule = ("overlapped", "published")[seed % 4 == 0]
        budgets = (None,) if seed % 3 == 0 else (3_000, 9_000, 30_000, 90_000, None)
        for budget in budgets:
            try:
                options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
                found.append(case_of(layer, options, f"c{seed}"))
                break
            except TilingError:
                continue
    assert len(found) == count
    return found


def check(found: list[Case], folder: Path, sanitize: bool) -> None:
    """Build and run all cases in one program, and compare every output."""
    (folder / "snitch_dma.h").write_text(DMA_H)
    (folder / "snitch_cluster.h").write_text(CLUSTER_H)
    (folder / "dma.c").write_text(DMA_C)
    source = folder / "main.c"
    source.write_text(main_program(found))
    program = host.build(
        [source, folder / "dma.c"], [folder], SOC, folder / "out", Compiler.zig(), sanitize
    )
    expected = packed(found, outputs=True)
    (got,) = run_host(program, [packed(found, outputs=False)], [len(expected)])
    at = 0
    for case in found:
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            part = np.frombuffer(got, np.uint8, values.size, at)
            at += values.size
            wrong = int((part != values).sum())
            kernel = case.code.kernels[-1]
            assert not wrong, f"{tensor.name}: {wrong} of {values.size} differ; {kernel.source}"


@pytest.mark.parametrize("sanitize", [False, True])
def test_layers(tmp_path: Path, sanitize: bool) -> None:
    check(cases(40, 1000 if sanitize else 0), tmp_path, sanitize)
