"""The cluster's kernels on the simulated harts: what they compute there, and how fast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.soc import cluster_draws as draws
from tests.soc.cluster_cases import Case, Outcome, build, run
from tests.soc.cluster_draws import CORES, Drawn

# Cycles per unit and core that networks' shapes may take; products are published at 9.
LIMITS = {
    "gemm": 3.5, "matmul": 3.5, "matmul (rows)": 3.5, "conv2d": 3.5, "depthwise": 9.5, "add": 12.0,
    "map": 6.0, "transpose": 5.0, "table_softmax": 24.5, "ita_softmax": 19.0, "layer_norm": 20.5,
    "rms_norm": 16.5, "affine_norm": 9.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Drawn, Outcome]]:
    rng = np.random.default_rng(3)
    large = [
        draws.gemm(rng, 64, 64, 128),
        draws.matmul(rng, 1, 128, 64, 128, by_rows=False),
        draws.matmul(rng, 4, 32, 64, 128, by_rows=True),
        draws.conv(rng, 32, 32, (12, 12), 3, 1),
        draws.conv(rng, 0, 64, (16, 16), 3, 1),
        draws.add(rng, 8192, 2),
        draws.lookup(rng, 8192),
        draws.transpose(rng, 128, 128),
        *(draws.rows_of(rng, name, 128, 128) for name in draws.ROW_KERNELS),
    ]
    odd = [
        draws.gemm(rng, 13, 7, 19),
        draws.gemm(rng, 1, 21, 33),
        draws.gemm(rng, 37, 5, 6),
        draws.matmul(rng, 3, 5, 7, 9, by_rows=True),
        draws.matmul(rng, 2, 21, 6, 10, by_rows=False),
        draws.conv(rng, 9, 5, (7, 9), 3, 2),
        draws.conv(rng, 0, 11, (7, 9), 3, 1),
        draws.add(rng, 101, 3),
        draws.add(rng, 77, 5),
        draws.lookup(rng, 53),
        draws.transpose(rng, 13, 9),
        *(draws.rows_of(rng, name, rows, 39) for name in draws.ROW_KERNELS for rows in (1, 21)),
    ]
    cases = [*large, *odd]
    firmware = build(tmp_path_factory.mktemp("cluster"))
    results = run(firmware, [drawn.case for drawn in cases])
    return list(zip(cases, results, strict=True))


def test_results(outcomes: list[tuple[Drawn, Outcome]]) -> None:
    for drawn, outcome in outcomes:
        message = f"{drawn.kernel} {drawn.shape}"
        np.testing.assert_array_equal(outcome.result, drawn.expected, message)
        assert drawn.units < 100 or len(np.unique(drawn.expected)) > 8, message


def test_cycles(outcomes: list[tuple[Drawn, Outcome]]) -> None:
    slow = [
        f"{drawn.kernel} {drawn.shape}: {CORES * outcome.cycles / drawn.units:.2f}"
        for drawn, outcome in outcomes
        if drawn.units >= 8192 and CORES * outcome.cycles > LIMITS[drawn.kernel] * drawn.units
    ]
    assert not slow


def test_fork_and_join(tmp_path: Path) -> None:
    (alone,) = run(build(tmp_path), [Case("nothing")])
    assert 40 < alone.cycles < 100
