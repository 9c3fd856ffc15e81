"""Generated C for the cluster and ITA with the real kernels, drivers and device models, compiled
for this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.layers import Layer, MulShift, Shift, add_layer, gemm_layer, matrix, rows_layer
from byoc_dory.layers.rowwise import AffineNorm
from byoc_dory.options import TilingOptions
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.program import Case, main_program, packed
from tests.byoc_dory.snitch_cases import (
    attention_layer,
    case_of,
    random_cluster_layer,
    random_gemm,
    try_case,
)

SMALL = (1_500, 6_000, 24_000, None)


def check(cases: list[Case], folder: Path, sanitize: bool) -> None:
    """Build and run all cases in one program, and compare every output."""
    source = folder / "main.c"
    source.write_text(main_program(cases))
    program = host.build([source], [], SNITCH_ITA, folder / "out", Compiler.zig(), sanitize)
    expected = packed(cases, outputs=True)
    (got,) = run_host(program, [packed(cases, outputs=False)], [len(expected)])
    at = 0
    for case in cases:
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            part = np.frombuffer(got, np.uint8, values.size, at)
            at += values.size
            wrong = int((part != values).sum())
            kernel = case.code.kernels[-1]
            assert not wrong, f"{tensor.name}: {wrong} of {values.size} differ; {kernel.source}"


def cluster_cases(count: int, start: int) -> list[Case]:
    cases = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        layer = random_cluster_layer(rng, f"l{seed}")
        schedule = ("overlapped", "published")[seed % 4 == 0]
        budgets = (300, *SMALL) if seed % 2 else SMALL
        cases.append(try_case(layer, budgets, f"c{seed}", "cluster", schedule))
    return cases


def ita_cases(count: int, start: int) -> list[Case]:
    cases = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        schedule = ("overlapped", "published")[seed % 4 == 0]
        if seed % 3:
            sizes = tuple(int(size) for size in rng.integers(1, 5, 3) * 64)
            if seed % 2:
                sizes = tuple(int(size) for size in rng.integers(1, 200, 3))
            layer = random_gemm(rng, f"g{seed}", sizes)  # type: ignore[arg-type]
        else:
            rows = int(rng.integers(1, 4)) * 64 if seed % 2 else int(rng.integers(1, 150))
            embedding = int(rng.integers(1, 3)) * 64 if seed % 2 else int(rng.integers(8, 130))
            layer = attention_layer(
                rng, f"a{seed}", rows, embedding, int(rng.integers(1, 4)), bool(seed % 4 // 2)
            )
        budgets = (16_000, 34_000, 60_000, None)[seed % 4 :]
        cases.append(try_case(layer, budgets, f"i{seed}", "ita", schedule))
    return cases


def feed_forward() -> tuple[Layer, ...]:
    """Layers on both that hand tensors on in L1."""
    rng = np.random.default_rng(9)
    x = matrix("x", 128, 128)
    first = replace(random_gemm(rng, "first", (128, 128, 256)), inputs=(x,), transposed=False)
    first = gemm_layer(
        "first", x, rng.integers(-9, 9, (256, 128)).astype(np.int8), None,
        requant=MulShift((3,), (8,), (128,)), clip=(0, 127),
    )  # fmt: skip
    second = gemm_layer(
        "second", first.output, rng.integers(-9, 9, (128, 256)).astype(np.int8), None,
        requant=MulShift((3,), (9,), (256,)),
    )  # fmt: skip
    total = add_layer("sum", x, second.output, "sum", requant=MulShift((1,), (1,), (0,)))
    total = replace(total, output=matrix("sum", 128, 128))
    weight = rng.integers(1, 90, 128).astype(np.int32)
    norm = rows_layer("norm", total.output, AffineNorm(weight, weight, 3, 6))
    return first, second, total, norm


@pytest.mark.rotating(1)
@pytest.mark.parametrize("sanitize", [False, True])
def test_cores(tmp_path: Path, sanitize: bool) -> None:
    cases = cluster_cases(24, 1000 if sanitize else 0)
    cases.append(case_of(feed_forward(), TilingOptions(), "ff", "cluster"))
    check(cases, tmp_path, sanitize)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("sanitize", [False, True])
def test_ita(tmp_path: Path, sanitize: bool) -> None:
    cases = ita_cases(12, 1000 if sanitize else 0)
    layer = random_gemm(np.random.default_rng(2), "shifted", (70, 64, 100))
    for shift in (0, 9):  # whose half step is among the biases
        shifted = replace(layer, requant=Shift(shift))
        cases.append(case_of((shifted,), TilingOptions(), f"shift{shift}", "ita"))
    check(cases, tmp_path, sanitize)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(2000, 2300, 50))
def test_more_on_ita(tmp_path: Path, start: int) -> None:
    """300 random products and attentions, odd sizes, small budgets of L1."""
    check(ita_cases(50, start), tmp_path, sanitize=start == 2000)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(3000, 3300, 100))
def test_more_on_the_cores(tmp_path: Path, start: int) -> None:
    check(cluster_cases(100, start), tmp_path, sanitize=start == 3000)
