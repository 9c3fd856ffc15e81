"""Cycles of the kernels for cores with SIMD, and the constants that predict them.

    python -m benchmarks.simd_kernels

One simulated core executes the shares of eight cores one after another, so that there are no bank
conflicts, and no fork and join.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from byoc_dory.soc.cluster import simd_work
from byoc_dory.soc.cluster.work import ConvolutionTile, Work, rowwise
from htvm.tools.report.table import Column, Table, text
from tests.runtime_c import simd_cluster as s
from tests.runtime_c.simd_cluster import Case, Kind, Outcome

_CORES = 8
_NOT_FITTED = ("result",)
_conv = partial(s.conv, kind=Kind(shifts=False))


def networks() -> dict[str, list[Case]]:
    """The layers of networks, with a factor per channel and a shift per layer, as retargeted."""
    rng = np.random.default_rng(0)
    resnet = [
        _conv(rng, 16, 3, (32, 32)), _conv(rng, 16, 16, (32, 32)), _conv(rng, 16, 16, (32, 32)),
        s.add(rng, 16384, halved=True),
        _conv(rng, 32, 16, (32, 32), stride=2), _conv(rng, 32, 32, (16, 16)),
        _conv(rng, 32, 16, (32, 32), (1, 1), 2), s.add(rng, 8192, halved=True),
        _conv(rng, 64, 32, (16, 16), stride=2), _conv(rng, 64, 64, (8, 8)),
        _conv(rng, 64, 32, (16, 16), (1, 1), 2), s.add(rng, 4096, halved=True),
        s.gemm(rng, 1, 10, 64),
    ]  # fmt: skip
    keyword = [_conv(rng, 64, 1, (49, 10), (10, 4), 2)]
    for _ in range(4):
        keyword += [_conv(rng, 0, 64, (25, 5)), _conv(rng, 64, 64, (25, 5), (1, 1))]
    keyword.append(s.gemm(rng, 1, 12, 64))
    mobile, c, size = [_conv(rng, 8, 3, (96, 96), stride=2)], 8, 48
    pairs = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for k, stride in (*pairs, (256, 2), (256, 1)):
        mobile.append(_conv(rng, 0, c, (size, size), stride=stride))
        size //= stride
        mobile.append(_conv(rng, k, c, (size, size), (1, 1)))
        c = k
    mobile.append(s.gemm(rng, 1, 2, 256))
    return {"ResNet-8": resnet, "DS-CNN": keyword, "MobileNetV1 0.25": mobile}


def samples() -> list[tuple[Case, tuple[Work, ...]]]:
    """Cases of all kernels for the fit, with what each of eight cores has to do."""
    rng = np.random.default_rng(1)
    found = []
    for rows, k, c in (
        (64, 64, 64), (1, 64, 64), (1, 256, 64), (1, 64, 256), (16, 64, 64), (33, 48, 96),
        (63, 60, 76), (40, 32, 128), (128, 32, 32), (17, 40, 128), (100, 12, 144), (8, 128, 128),
        (128, 10, 64), (3, 32, 96), (2, 64, 64), (250, 16, 16), (72, 16, 27), (8, 10, 64),
        (5, 64, 64), (256, 8, 8), (1, 10, 64), (1, 12, 256), (6, 100, 32), (48, 16, 12),
    ):  # fmt: skip
        found.append((s.gemm(rng, rows, k, c), simd_work.product(rows, k, c, _CORES)))
    for k, c, size, taps, stride in (
        (32, 32, (16, 16), (3, 3), 1), (16, 3, (32, 32), (3, 3), 1), (64, 64, (8, 8), (1, 1), 1),
        (16, 16, (32, 32), (3, 3), 1), (64, 32, (16, 16), (3, 3), 2), (8, 16, (12, 10), (3, 3), 1),
        (12, 8, (20, 7), (5, 5), 1), (32, 8, (5, 5), (3, 3), 1), (10, 1, (28, 28), (3, 3), 1),
        (64, 64, (8, 8), (3, 3), 1), (32, 16, (32, 8), (3, 3), 2), (16, 3, (9, 32), (3, 3), 1),
        (16, 16, (5, 32), (3, 3), 1), (32, 16, (32, 32), (1, 1), 2), (64, 1, (49, 10), (10, 4), 2),
        (64, 1, (15, 10), (10, 4), 2), (8, 3, (96, 96), (3, 3), 2), (8, 3, (20, 96), (3, 3), 2),
        (64, 64, (25, 5), (1, 1), 1), (20, 20, (3, 40), (3, 3), 1), (64, 128, (4, 4), (3, 3), 1),
        (48, 32, (4, 4), (1, 1), 1), (128, 128, (5, 5), (1, 1), 1), (64, 16, (2, 16), (3, 3), 1),
        (128, 128, (1, 6), (1, 1), 1), (256, 128, (1, 3), (1, 1), 1), (128, 256, (2, 3), (1, 1), 1),
        (32, 64, (3, 6), (1, 1), 1), (64, 16, (1, 2), (3, 3), 1), (40, 20, (2, 5), (1, 1), 1),
        (16, 32, (5, 6), (3, 3), 1), (48, 48, (1, 7), (1, 1), 1), (24, 12, (3, 3), (3, 3), 2),
        (16, 8, (48, 48), (1, 1), 1), (32, 16, (24, 24), (1, 1), 1), (24, 4, (10, 10), (3, 3), 1),
    ):  # fmt: skip
        found.append((_conv(rng, k, c, size, taps, stride), _conv_work(k, c, size, taps, stride)))
    for c, size, stride in (
        (64, (16, 16), 1), (32, (16, 16), 2), (64, (25, 5), 1), (16, (48, 24), 1),
        (24, (12, 12), 1), (8, (30, 9), 1), (128, (6, 6), 1), (128, (3, 3), 1), (256, (3, 3), 1),
        (20, (7, 32), 1), (64, (12, 12), 2), (128, (6, 6), 2), (8, (48, 48), 1), (16, (48, 48), 2),
        (32, (24, 24), 1), (64, (5, 10), 1), (64, (6, 20), 2), (64, (2, 10), 1), (64, (9, 9), 1),
        (32, (24, 24), 2), (32, (11, 13), 2), (16, (7, 9), 2), (64, (5, 5), 2), (14, (9, 9), 2),
        (66, (3, 3), 1), (64, (18, 7), 1), (32, (23, 6), 1), (32, (6, 6), 2), (14, (5, 6), 2),
    ):  # fmt: skip
        work = _conv_work(0, c, size, (3, 3), stride)
        found.append((_conv(rng, 0, c, size, stride=stride), work))
    attention = [
        (1, 64, 64, 64), (1, 128, 128, 64), (4, 32, 64, 128), (2, 64, 64, 32), (1, 17, 33, 64),
        (16, 1, 64, 4), (16, 1, 256, 4), (1, 81, 81, 20), (1, 48, 32, 48), (2, 7, 30, 12),
        (1, 8, 100, 40), (1, 1, 64, 128), (16, 16, 16, 4), (8, 5, 16, 32),
    ]  # fmt: skip
    for c in (8, 32, 128):
        work = _conv_work(0, c, (6, 6), (3, 3), 2, before=1)
        found.append((_conv(rng, 0, c, (6, 6), stride=2, before=1), work))
    for sizes in attention:
        for by_rows in (True, False):
            work = simd_work.products(*sizes, _CORES, by_rows=by_rows)
            found.append((s.matmul(rng, *sizes, by_rows=by_rows), work))
    for elements in (64, 200, 1000, 1024, 2500, 4096, 16384):
        for operands in (2, 3, 4):
            way = simd_work.sum_way(operands)
            work = simd_work.elementwise(elements, _CORES, operands, way)
            found.append((s.add(rng, elements, operands), work))
        for way in ("looked", "half"):
            work = simd_work.elementwise(elements, _CORES, 2, way)
            case = s.add(rng, elements, looked_up=way == "looked", halved=way == "half")
            found.append((case, work))
        found.append((s.lookup(rng, elements), simd_work.elementwise(elements, _CORES)))
    for c, size, window, stride in (
        (64, (25, 5), (25, 5), 1), (256, (3, 3), (3, 3), 1), (64, (8, 8), (8, 8), 1),
        (128, (4, 4), (4, 4), 1), (32, (16, 16), (2, 2), 2), (16, (20, 20), (5, 5), 5),
        (24, (7, 7), (7, 7), 1), (100, (7, 6), (7, 6), 1), (30, (9, 9), (9, 9), 1),
        (16, (10, 10), (3, 3), 1), (512, (1, 16), (1, 16), 1), (64, (12, 12), (6, 4), 2),
    ):  # fmt: skip
        (oy, ox) = ((size[axis] - window[axis]) // stride + 1 for axis in (0, 1))
        work = simd_work.averages(oy * ox, c, window, size[1], _CORES)
        found.append((s.average(rng, c, size, window, stride), work))
    for rows, columns in ((64, 64), (128, 128), (64, 256), (30, 50), (12, 16), (41, 35), (64, 3)):
        work = simd_work.transposition(rows, columns, _CORES)
        found.append((s.transpose(rng, rows, columns), work))
    for rows, n in (
        (1, 64), (1, 128), (1, 256), (2, 64), (4, 64), (8, 64), (16, 128), (33, 96), (3, 200),
        (1, 512), (1, 48), (1, 100), (81, 40), (12, 30), (5, 24), (128, 128),
    ):  # fmt: skip
        work = rowwise(rows, n, _CORES)
        found.append((s.norm(rng, rows, n), work))
        found.append((s.norm(rng, rows, n, centred=False), work))
        longer = rowwise(rows, n, _CORES, long=True)
        for centred in (True, False):
            found.append((s.norm(rng, rows, n, centred=centred, long=True), longer))
        found.append((s.table_softmax(rng, rows, n), work))
    return found


def _conv_work(
    k: int,
    c: int,
    size: tuple[int, int],
    taps: tuple[int, int],
    stride: int,
    before: int | None = None,
) -> tuple[Work, ...]:
    (iy, ix), (fy, fx) = size, taps
    oy, ox = -(-iy // stride), -(-ix // stride)
    top, left = (max((o - 1) * stride + f - i, 0) // 2 for o, f, i in ((oy, fy, iy), (ox, fx, ix)))
    if before is not None:
        top = left = before
    tile = ConvolutionTile(
        c, k or c, iy, ix, oy, ox, fy, fx, (stride, stride), (top, left), depthwise=not k
    )
    return simd_work.convolution(tile, _CORES)


def fitted(
    works: Sequence[Work], cycles: Sequence[int]
) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Constants with the least relative errors, none below 0, and the errors of all samples."""
    seen = np.array(cycles, float)
    names = sorted({name for work in works for name in work} - set(_NOT_FITTED))
    names = [name for name in names if any(work.get(name, 0) for work in works)]
    while True:
        counts = np.array([[work.get(name, 0) for name in names] for work in works], float)
        least, *_ = np.linalg.lstsq(counts / seen[:, None], np.ones(len(seen)), rcond=None)
        if least.min() >= 0:
            break
        names.pop(int(least.argmin()))
    return dict(zip(names, least.tolist(), strict=True)), counts @ least / seen - 1


def constants() -> Table:
    """The constants of each kernel, fitted to all cores of all samples."""
    found = samples()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = s.run([case for case, _ in found], Path(folder), (_CORES,))
    rows = []
    for kernel in (*s.KERNELS, *s.ROW_KERNELS):
        works: list[Work] = []
        cycles: list[int] = []
        for (case, own), (outcome,) in zip(found, outcomes, strict=True):
            assert not outcome.wrong, (case.kernel, case.shape)
            if case.kernel == kernel:
                works += own
                cycles += outcome.cycles if len(own) == _CORES else [max(outcome.cycles)]
        if not works:
            continue
        terms, errors = fitted(works, cycles)
        shown = ", ".join(f"{name} {value:.2f}" for name, value in terms.items())
        busy = np.array(cycles) > 1000
        rows.append(
            (
                kernel,
                shown,
                f"{100 * np.abs(errors).max():.1f} %",
                f"{100 * np.abs(errors[busy]).max():.1f} %",
            )
        )
    return Table(
        (Column("kernel"), Column("cycles"), Column("worst", True), Column("above 1000", True)),
        tuple(rows),
        "constants of the cycle model",
    )


def layers() -> list[Table]:
    """Cycles of the layers of networks."""
    tables = []
    for name, cases in networks().items():
        with tempfile.TemporaryDirectory() as folder:
            outcomes = s.run(cases, Path(folder), (1, _CORES))
        rows = [_row(case, *pair) for case, pair in zip(cases, outcomes, strict=True)]
        one = sum(pair[0].cycles[0] for pair in outcomes)
        eight = sum(max(pair[1].cycles) for pair in outcomes)
        rows.append(("all", "", f"{one:,}", "", f"{eight:,}", ""))
        columns = (
            Column("kernel"), Column("shape"), Column("one core", True), Column("a unit", True),
            Column("slowest of eight", True), Column("a unit and core", True),
        )  # fmt: skip
        tables.append(Table(columns, tuple(rows), f"{name}: cycles; units are MAC or elements"))
    return tables


def _row(case: Case, one: Outcome, eight: Outcome) -> tuple[str, ...]:
    assert not one.wrong and not eight.wrong, (case.kernel, case.shape)
    slowest = max(eight.cycles)
    return (
        case.kernel, case.shape, f"{one.cycles[0]:,}", f"{one.cycles[0] / case.units:.3f}",
        f"{slowest:,}", f"{_CORES * slowest / case.units:.3f}",
    )  # fmt: skip


def main() -> None:
    """Command line."""
    for table in [*layers(), constants()]:
        print(text(table))


if __name__ == "__main__":
    main()
