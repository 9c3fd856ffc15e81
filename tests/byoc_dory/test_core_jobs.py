"""Random jobs of Siracusa's cores: all kinds of layers, weight bits, strides, paddings, odd sizes,
small budgets of L1, against definitions that share no code with the product.

    pytest -m "slow or not slow" tests/byoc_dory/test_core_jobs.py

runs 512 jobs as portable C, 250 of them with sanitizers, and 79 on the simulated cores.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.byoc_dory.core_jobs import SOC, random_jobs, simulate
from tests.byoc_dory.test_neureka_native import check

_SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("start", "count"),
    [(0, 12), *(pytest.param(start, 50, marks=_SLOW) for start in range(100, 600, 50))],
)
def test_portable_c_is_exact(start: int, count: int, tmp_path: Path) -> None:
    jobs = random_jobs(count, start)
    check([job.case for job in jobs], tmp_path, start % 100 == 0 and start != 0, SOC)


@pytest.mark.parametrize(
    ("start", "count"),
    [(600, 4), *(pytest.param(start, 25, marks=_SLOW) for start in (700, 725, 750))],
)
def test_simulated_cores_are_exact(start: int, count: int, tmp_path: Path) -> None:
    measured = simulate(random_jobs(count, start), tmp_path)
    errors = [kernel.predicted_cycles / cycles - 1 for kernel, cycles in measured]
    # Many of the jobs are a few hundred cycles, in which calls and odd sizes weigh most.
    assert np.median(np.abs(errors)) < 0.15
