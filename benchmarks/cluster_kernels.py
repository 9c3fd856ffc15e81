"""Cycles of the cluster's kernels, on the simulated harts, and the constants that predict them.

    python -m benchmarks.cluster_kernels

Operands lie in L1, results stay there.  Cycles are those of the host's call, fork and join
included; cycles per unit are those of each of the eight cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from byoc_dory.soc.cluster.work import Work, slowest
from htvm.tools.report.table import Column, Table, text
from tests.soc import cluster_draws as draws
from tests.soc.cluster_cases import Case, build, run
from tests.soc.cluster_draws import CORES, Drawn

_COUNTED = ("result",)  # of which blocks are made
_FLAGS = ("per_channel", "table", "wide")


def all_draws() -> list[Drawn]:
    """Shapes as networks have them, as far as they fit L1."""
    rng = np.random.default_rng(0)
    gemms = [
        (64, 64, 64), (64, 64, 128), (64, 64, 256), (64, 64, 512), (128, 128, 128), (128, 64, 64),
        (128, 256, 64), (32, 128, 128), (33, 48, 96), (63, 61, 77), (16, 64, 128), (8, 128, 128),
        (1, 128, 256), (1, 256, 128), (1, 64, 64), (17, 40, 128), (40, 15, 64), (72, 16, 27),
        (100, 12, 144), (256, 16, 16), (50, 31, 31), (128, 10, 64), (8, 10, 64), (3, 32, 96),
    ]  # fmt: skip
    flagged = ((64, 64, 64), (40, 15, 32), (17, 40, 64), (1, 128, 128), (128, 32, 16))
    attention = [
        (1, 64, 64, 64), (1, 128, 128, 64), (4, 32, 64, 128), (2, 64, 64, 32), (1, 17, 33, 64),
        (3, 20, 10, 16), (1, 1, 64, 128), (8, 5, 15, 32), (1, 81, 81, 20), (1, 50, 31, 49),
        (2, 7, 30, 12), (1, 8, 100, 40), (2, 9, 18, 90), (1, 40, 8, 50), (1, 64, 64, 200),
        (1, 40, 16, 16), (1, 64, 16, 128), (1, 64, 8, 16), (2, 32, 5, 100),
    ]  # fmt: skip
    convs = [
        (32, 32, (16, 16), 3, 1), (16, 3, (32, 32), 3, 1), (64, 64, (8, 8), 1, 1),
        (16, 16, (32, 32), 3, 1), (64, 32, (16, 16), 3, 2), (128, 64, (16, 16), 1, 1),
        (8, 16, (12, 10), 3, 1), (12, 8, (20, 7), 5, 1), (32, 8, (5, 5), 3, 1),
        (10, 1, (28, 28), 3, 1), (64, 64, (8, 8), 3, 1), (32, 16, (32, 8), 3, 2),
        (16, 3, (9, 32), 3, 1), (16, 16, (5, 32), 3, 1), (32, 16, (32, 32), 1, 2),
        (31, 7, (13, 11), 3, 1), (6, 1, (28, 28), 5, 1), (64, 16, (2, 16), 3, 1),
        (40, 24, (3, 8), 3, 1), (20, 20, (1, 40), 3, 1), (17, 5, (24, 6), 3, 2),
        (64, 128, (4, 4), 3, 1), (48, 32, (4, 4), 1, 1), (128, 128, (5, 5), 1, 1),
    ]  # fmt: skip
    channels = [
        (64, (16, 16), 3, 1), (32, (16, 16), 3, 2), (64, (25, 5), 3, 1), (16, (48, 24), 3, 1),
        (24, (12, 12), 5, 1), (8, (30, 9), 3, 1), (128, (6, 6), 3, 1), (33, (10, 14), 3, 2),
        (128, (3, 3), 3, 1), (256, (4, 4), 3, 1), (20, (7, 32), 3, 1), (64, (12, 12), 3, 2),
    ]  # fmt: skip
    rows = [(128, 128), (64, 128), (128, 64), (64, 256), (16, 512), (64, 64), (8, 64), (1, 256)]
    return [
        *(draws.gemm(rng, *sizes) for sizes in gemms),
        *(draws.gemm(rng, *sizes, flag) for flag in _FLAGS for sizes in flagged),
        *(draws.matmul(rng, *sizes, by_rows=True) for sizes in attention),
        *(draws.matmul(rng, *sizes, by_rows=False) for sizes in attention),
        *(draws.conv(rng, *sizes) for sizes in convs),
        *(draws.conv(rng, 0, *sizes) for sizes in channels),
        *(draws.add(rng, size, n) for size in (64, 200, 512, 1024, 8192, 16384) for n in (2, 3, 4)),
        *(draws.lookup(rng, size) for size in (64, 200, 512, 1024, 8192, 16384)),
        *(
            draws.transpose(rng, *sizes)
            for sizes in ((64, 64), (128, 128), (64, 256), (30, 50), (12, 16))
        ),
        *(draws.rows_of(rng, name, *sizes) for name in draws.ROW_KERNELS for sizes in rows),
    ]


def fitted(
    cases: Sequence[Drawn], cycles: Sequence[int], fork: int
) -> tuple[dict[str, float], float]:
    """Constants, in cycles, with the least relative errors of one kernel's, and the worst one.

    Constants that would be negative are left out.
    """
    seen = np.array(cycles, float)
    works = [case.works[0] for case in cases]
    for _ in range(4):  # which core has most to do is known only with the constants
        found = _least(works, seen, fork)
        slow = tuple(found.items())
        works = [max(case.works, key=lambda work: slowest([work], slow)) for case in cases]
    guessed = np.array([slowest(case.works, slow) + fork for case in cases])
    return found, float((np.abs(guessed - seen) / seen).max())


def _least(works: Sequence[Work], seen: NDArray[np.float64], fork: int) -> dict[str, float]:
    names = [
        name
        for name in dict.fromkeys(name for work in works for name in work)
        if name not in _COUNTED and any(work.get(name, 0) for work in works)
    ]
    while True:
        counts = np.array([[work.get(name, 0) for name in names] for work in works], float)
        least, *_ = np.linalg.lstsq(counts / seen[:, None], (seen - fork) / seen, rcond=None)
        if least.min() >= 0:
            return dict(zip(names, least.tolist(), strict=True))
        names.pop(int(least.argmin()))


def tables() -> tuple[Table, Table]:
    """Cycles of each case, and the constants of each kernel."""
    cases = all_draws()
    with tempfile.TemporaryDirectory() as folder:
        firmware = build(Path(folder))
        fork, *outcomes = run(firmware, [Case("nothing"), *(drawn.case for drawn in cases)])
    rows = []
    for drawn, outcome in zip(cases, outcomes, strict=True):
        assert np.array_equal(outcome.result, drawn.expected), (drawn.kernel, drawn.shape)
        each = CORES * outcome.cycles / drawn.units
        rows.append((drawn.kernel, drawn.shape, f"{outcome.cycles:,}", f"{each:.2f}"))
    columns = (
        Column("kernel"), Column("shape"), Column("cycles", True), Column("unit and core", True),
    )  # fmt: skip
    constants = []
    for name in dict.fromkeys(drawn.kernel for drawn in cases):
        own = [index for index, drawn in enumerate(cases) if drawn.kernel == name]
        found, worst = fitted(
            [cases[index] for index in own], [outcomes[index].cycles for index in own], fork.cycles
        )
        terms = ", ".join(f"{term} {value:.2f}" for term, value in found.items())
        constants.append((name, terms, f"{100 * worst:.1f} %"))
    return (
        Table(columns, tuple(rows), f"cluster kernels; fork and join alone {fork.cycles} cycles"),
        Table(
            (Column("kernel"), Column("cycles of the core with most to do"), Column("worst", True)),
            tuple(constants),
            f"cycles = {fork.cycles} + ...",
        ),
    )


def main() -> None:
    """Command line."""
    for table in tables():
        print(text(table))


if __name__ == "__main__":
    main()
