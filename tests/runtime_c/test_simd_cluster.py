"""The cluster's kernels for SIMD on the simulated core, which plays one core, three or eight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runtime_c import simd_cluster as s
from tests.runtime_c.simd_cluster import Case, Kind, run


def random_kind(rng: np.random.Generator) -> Kind:
    """Return any types, now and then with limits, 64 bits or gaps."""
    in_type, out_type = (str(rng.choice(["int8", "uint8"])) for _ in range(2))
    choices = {"int8": [(-100, 90), (0, 127), (0, 60)], "uint8": [(3, 200), (0, 99)]}[out_type]
    limits = choices[rng.integers(len(choices))] if rng.random() < 0.5 else None
    gap = int(rng.integers(0, 6)) if rng.random() < 0.3 else 0
    return Kind(in_type, out_type, limits, bool(rng.random() < 0.2), gap)


def random_cases(rng: np.random.Generator, count: int) -> list[Case]:
    """Return cases of all kernels, of small sizes."""

    def size(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    cases = []
    for number in range(count):
        kind, flag = random_kind(rng), bool(rng.integers(2))
        rows, k, c = size(1, 18), size(1, 14), size(1, 21)
        if number % 2:  # as most networks have them
            k, c = 4 * size(1, 5), 4 * size(1, 6)
        image, taps = (size(1, 9), size(1, 14)), (size(1, 4), size(1, 4))
        stride = size(1, 2)
        preferred = (s.PLAIN, Kind(limits=(0, 127)), Kind("uint8", "uint8"))[number % 3]
        narrow = Kind(kind.in_type, kind.out_type, kind.limits, gap=kind.gap)
        cases += [
            s.gemm(rng, rows, k, c, kind, transposed=flag, mapped=bool(rng.integers(2))),
            s.conv(rng, k, c, image, taps, stride, kind),
            s.conv(rng, k, c, (size(3, 9), size(3, 14)), (3, 3), stride, narrow),
            s.conv(rng, 0, c, image, taps, stride, kind),
            s.conv(rng, 0, 4 * size(1, 4), (size(1, 11), size(1, 14)), (3, 3), stride, narrow),
            s.conv(rng, 0, size(1, 12), (3, 3), kind=preferred),
            s.conv(rng, 0, size(1, 12), (6, 6), stride=2, kind=preferred, before=int(flag)),
            s.conv(rng, 0, size(2, 12), (size(1, 15), size(1, 15)), stride=2, kind=preferred),
            s.matmul(rng, size(1, 3), rows, k, c, kind, by_rows=flag),
            s.matmul(rng, 1, rows, 4, 4, Kind(out_type=kind.out_type, limits=kind.limits)),
            s.add(rng, size(1, 70), size(1, 4), kind, size(-128, 127)),
            s.add(rng, size(1, 70), 2, narrow),
            s.add(rng, size(1, 300), 2, kind, looked_up=True),
            s.add(rng, size(1, 300), 2, kind, halved=True),
            s.lookup(rng, size(1, 70)),
            s.norm(rng, size(1, 12), size(1, 70), kind, centred=flag),
            s.table_softmax(rng, size(1, 12), size(1, 70), kind),
            s.transpose(rng, size(1, 20), size(1, 20)),
            s.attention(
                rng,
                size(1, 5),
                size(1, 3),
                size(1, 70),
                size(1, 3),
                apart=flag,
                mixed=not number % 3,
            ),
            s.attention(rng, size(1, 9), 1, size(17, 90), 1, apart=True),
            s.average(rng, c, (size(4, 12), size(4, 12)), (size(1, 4), size(2, 4)), stride),
            s.average(rng, k, (rows, image[1] + 1), (rows, image[1] + 1)),
        ]
    return cases


@pytest.mark.parametrize(
    "count", [12, pytest.param(60, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_equal_numpy(tmp_path: Path, count: int) -> None:
    cases = random_cases(np.random.default_rng(count), count)
    for case, outcomes in zip(cases, run(cases, tmp_path, (1, 3, 8)), strict=True):
        assert [outcome.wrong for outcome in outcomes] == [0, 0, 0], (case.kernel, case.shape)


def test_portable_kernels_equal_numpy_on_the_core(tmp_path: Path) -> None:
    cases = random_cases(np.random.default_rng(5), 2)
    for case, outcomes in zip(cases, run(cases, tmp_path, (8,), simd=False), strict=True):
        assert outcomes[0].wrong == 0, (case.kernel, case.shape)
