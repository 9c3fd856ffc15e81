"""The kernels for SIMD cores on the RTL: results, and cycles of every call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.rtl.core import RtlRun, build_bench
from tests.runtime_c import simd_cluster as s
from tests.runtime_c.simd import Depthwise, Product, program
from tests.runtime_c.test_simd_cluster import random_cases
from tests.sim.bare import bare_corev

pytestmark = pytest.mark.rtl

CORES = (1, 8)


@pytest.fixture(scope="module")
def bench(compiler: Compiler) -> Path:
    return build_bench(compiler.cache)


def _compare(cases: list[s.Case], bench: Path, folder: Path, simd: bool = True) -> None:
    elf = s.program(cases, folder, CORES, simd)
    rtl = s.read_outcomes(RtlRun(bench, elf, folder).output, len(cases), CORES)
    iss = s.read_outcomes(run_elf(elf, bare_corev()).output, len(cases), CORES)
    for case, seen, simulated in zip(cases, rtl, iss, strict=True):
        assert seen == simulated, (case.kernel, case.shape)
        assert not any(outcome.wrong for outcome in seen), (case.kernel, case.shape)


@pytest.mark.parametrize("seed", range(8))
def test_random_cases(seed: int, bench: Path, tmp_path: Path) -> None:
    _compare(random_cases(np.random.default_rng(seed), 3), bench, tmp_path)


def test_without_simd(bench: Path, tmp_path: Path) -> None:
    _compare(random_cases(np.random.default_rng(99), 1), bench, tmp_path, simd=False)


def test_layers(bench: Path, tmp_path: Path) -> None:
    """Sizes of networks, in which loops turn often."""
    rng = np.random.default_rng(0)
    cases = [
        s.conv(rng, 16, 16, (8, 32)), s.conv(rng, 16, 16, (8, 16), (1, 1)),
        s.conv(rng, 16, 8, (8, 16), stride=2), s.conv(rng, 16, 3, (8, 16)),
        s.conv(rng, 0, 16, (25, 5)), s.conv(rng, 0, 16, (12, 12), stride=2),
        s.conv(rng, 0, 32, (3, 3)), s.conv(rng, 0, 32, (6, 6), stride=2),
        s.gemm(rng, 1, 10, 64), s.gemm(rng, 16, 16, 64),
        s.matmul(rng, 4, 1, 32, 64), s.matmul(rng, 2, 8, 16, 32, by_rows=False),
        s.add(rng, 2048), s.add(rng, 2048, looked_up=True), s.lookup(rng, 1024),
        s.transpose(rng, 32, 64),
    ]  # fmt: skip
    _compare(cases, bench, tmp_path)


SINGLE = [
    Product(4, 8, 8, 16, 3, 3), Product(1, 8, 16, 64), Product(1, 1, 16, 64),
    Product(2, 5, 7, 8, 2, 3, 2, "multiply"), Product(3, 6, 5, 12, scaling="tflite", gap=3),
    Depthwise(9, 12, 8), Depthwise(9, 12, 4, stride=2), Depthwise(7, 9, 4, 5, 4, scaling="tflite"),
    Depthwise(6, 13, 4, scaling="multiply", pad=1),
]  # fmt: skip


@pytest.mark.parametrize("case", SINGLE, ids=str)
def test_one_core(
    case: Product | Depthwise, bench: Path, compiler: Compiler, tmp_path: Path
) -> None:
    elf = program(case, tmp_path)
    rtl, iss = RtlRun(bench, elf, tmp_path), run_elf(elf, bare_corev(), compiler=compiler)
    wrong, cycles = (int(word, 16) for word in iss.output.split())
    assert wrong == 0 and cycles > 100
    assert rtl.output == iss.output
