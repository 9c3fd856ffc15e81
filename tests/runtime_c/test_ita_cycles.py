"""Cycles of ITA and of the cluster's DMA, and what the timeline says of them.

Two published utilizations calibrate the model (products 82.1 %, single-head attention with sequence
128, embedding 128, projection 64: 69.5 %); the rest is arithmetic on its constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from htvm.sim.causes import EventLog
from tests.reference.ita import Requant
from tests.runtime_c import cluster as c
from tests.runtime_c.cluster import CORE, DMA, DMA_ENGINE, ITA, L1, L2, Cluster

TILE = 256 + 56
FILL = 32
DRAIN = 21
RECIPROCALS = 64 * 22 // 5 + 1 - 64
SHIFT = Requant(1, 8)
Task = tuple[
    tuple[int, int, int], tuple[int, int], tuple[int, int], tuple[int, int], dict[str, Any]
]


def run(cluster: Cluster, tasks: Sequence[Task]) -> int:
    """Each task is programmed as soon as a context is free; returns the cycles of all."""
    start = cluster.now
    for sizes, left, right, out, more in tasks:
        cluster.wait_for_context()
        cluster.program(sizes, left, right, out, SHIFT, **more)
    cluster.finish(ITA)
    return cluster.now - start


def gemm(rows: int, cols: int, inner: int, height: int = 64, width: int = 64) -> list[Task]:
    """A product, in tasks of a part each; all of them work on the same bytes, as if the DMA had
    replaced them in the meantime, but for the results, which alternate."""
    tasks: list[Task] = []
    for n in range(rows // height * (cols // width)):
        left, right = (0, inner), (32768, inner)
        out = (65536 + n % 2 * height * width, width)
        tasks.append(((height, width, inner), left, right, out, {}))
    return tasks


def head(seq: int, embed: int, proj: int) -> list[Task]:
    """Single-head attention: Q, K, V, and per 64 rows QK and AV, and the output projection.

    Weights share their place, as only cycles count.
    """
    x, w = 0, seq * embed
    q = w + proj * embed
    k = q + seq * proj
    vt = k + seq * proj
    scores = vt + seq * proj
    context = scores + 2 * 64 * seq
    out = context + seq * proj
    tasks: list[Task] = [
        ((seq, proj, embed), (x, embed), (w, embed), (q, proj), {}),
        ((seq, proj, embed), (x, embed), (w, embed), (k, proj), {}),
        ((proj, seq, embed), (w, embed), (x, embed), (vt, seq), {}),
    ]
    for row in range(0, seq, 64):
        block = (scores + row // 64 % 2 * 64 * seq, seq)
        query, result = (q + row * proj, proj), (context + row * proj, proj)
        tasks.append(((64, seq, proj), query, (k, proj), block, {"operation": c.QK}))
        tasks.append(((64, proj, seq), block, (vt, seq), result, {"operation": c.AV}))
    tasks.append(((seq, embed, proj), (context, proj), (w, proj), (out, embed), {}))
    return tasks


def utilization(cluster: Cluster, tasks: Sequence[Task]) -> float:
    """Array cycles over all cycles, first fill and last drain included."""
    macs = sum(rows * cols * inner for (rows, cols, inner), *_ in tasks)
    return macs / CORE.peak_macs / run(cluster, tasks)


def test_one_product(cluster: Cluster) -> None:
    (task,) = gemm(64, 64, 64)
    assert run(cluster, [task]) == FILL + TILE + DRAIN
    event = cluster.events()[0]
    assert (event["unit"], event["what"]) == ("ita", "linear")
    assert (event["start"], event["end"]) == (0, FILL + TILE + DRAIN)
    assert (event["array"], event["weights"], event["macs"]) == (256, FILL, 64**3)


def test_sizes_count_in_tiles(cluster: Cluster) -> None:
    (task,) = gemm(128, 192, 128, 128, 192)
    assert run(cluster, [task]) == FILL + 2 * 3 * 2 * TILE + DRAIN


def test_product_microbenchmark(cluster: Cluster) -> None:
    """512 x 512 x 512 in tasks of 64 x 64 x 512; published: 82.1 %."""
    got = utilization(cluster, gemm(512, 512, 512))
    assert got == pytest.approx(0.8204, abs=5e-4)
    assert got == pytest.approx(0.821, abs=0.01)


@pytest.mark.parametrize(("size", "want"), [(64, 0.701), (128, 0.804), (256, 0.818)])
def test_products_of_other_sizes(cluster: Cluster, size: int, want: float) -> None:
    assert utilization(cluster, gemm(size, size, size)) == pytest.approx(want, abs=1e-3)


def test_attention_microbenchmark(cluster: Cluster) -> None:
    """Published: 69.5 %."""
    got = utilization(cluster, head(128, 128, 64))
    assert got == pytest.approx(0.695, abs=1e-3)


@pytest.mark.parametrize(
    ("seq", "embed", "proj", "want"),
    [
        (64, 64, 64, 0.594),
        (64, 128, 64, 0.668),
        (128, 64, 64, 0.646),
        (128, 64, 128, 0.723),
        (192, 64, 64, 0.677),
    ],
)
def test_attention_of_other_sizes(
    cluster: Cluster, seq: int, embed: int, proj: int, want: float
) -> None:
    """What the calibration implies elsewhere, so that a change shows."""
    assert utilization(cluster, head(seq, embed, proj)) == pytest.approx(want, abs=1e-3)


def test_attention_is_the_sum_of_its_parts(cluster: Cluster) -> None:
    """24 tiles; each of two turns waits for reciprocals and a drain, the projection for one."""
    got = run(cluster, head(128, 128, 64))
    turns = 2 * CORE.attention_turn_cycles(128, 64)
    assert turns == 2 * (4 * TILE + RECIPROCALS + DRAIN + 400)
    assert got == FILL + 12 * TILE + turns + DRAIN + 4 * TILE + DRAIN


def test_description_and_model_agree(cluster: Cluster) -> None:
    assert (CORE.fill_cycles, CORE.reciprocal_cycles) == (FILL, RECIPROCALS)
    assert CORE.product_cycles(64, 128, 192) == 6 * TILE
    tasks = gemm(128, 128, 128)
    total = sum(CORE.product_cycles(*task[0]) for task in tasks)
    assert run(cluster, tasks) == FILL + total + DRAIN


def test_a_second_context_hides_weights_and_drain(cluster: Cluster) -> None:
    assert run(cluster, gemm(128, 64, 64)) == FILL + 2 * TILE + DRAIN


@pytest.mark.parametrize("late", [1, 10, 31, 32, 40, 300])
def test_a_task_programmed_late_waits_for_its_weights(cluster: Cluster, late: int) -> None:
    """``late`` cycles before the first task's array is free."""
    one, two = gemm(128, 64, 64)
    assert run(cluster, []) == 0
    cluster.program(*one[:4], SHIFT)
    cluster.now = FILL + TILE - late
    cluster.program(*two[:4], SHIFT)
    cluster.finish(ITA)
    assert cluster.now == FILL + TILE + max(0, FILL - late) + TILE + DRAIN


@pytest.mark.parametrize("after", [0, 5, 20])
def test_a_task_programmed_during_the_drain_begins_at_once(cluster: Cluster, after: int) -> None:
    one, two = gemm(128, 64, 64)
    cluster.program(*one[:4], SHIFT)
    cluster.now = FILL + TILE + after
    cluster.program(*two[:4], SHIFT)
    cluster.finish(ITA)
    assert cluster.now == FILL + TILE + after + FILL + TILE + DRAIN


def test_a_task_that_reads_the_result_before_it_waits_for_the_drain(cluster: Cluster) -> None:
    one, two = gemm(128, 64, 64)
    as_left = (two[0], one[3], two[2], two[3], {})
    assert run(cluster, [one, as_left]) == FILL + TILE + DRAIN + TILE + DRAIN


def test_weights_that_are_the_result_before_are_not_loaded_ahead(cluster: Cluster) -> None:
    one, two = gemm(128, 64, 64)
    as_right = (two[0], two[1], one[3], two[3], {})
    assert run(cluster, [one, as_right]) == FILL + TILE + DRAIN + FILL + TILE + DRAIN


def test_only_the_first_av_behind_a_qk_pays_for_the_turn(cluster: Cluster) -> None:
    qk: Task = ((64, 64, 64), (0, 64), (4096, 64), (8192, 64), {"operation": c.QK})
    av: Task = ((64, 64, 64), (8192, 64), (12288, 64), (16384, 64), {"operation": c.AV})
    again: Task = ((64, 64, 64), (8192, 64), (12288, 64), (20480, 64), {"operation": c.AV})
    assert run(cluster, [qk, av, again]) == (
        FILL + TILE + RECIPROCALS + DRAIN + 400 + TILE + TILE + DRAIN
    )
    assert [event["what"] for event in cluster.events() if event["unit"] == "ita"] == [
        "qk",
        "av",
        "av",
    ]


def test_every_cycle_has_its_cause(cluster: Cluster) -> None:
    """DMA beside ITA; the stalls of attention are the trigger's."""
    cluster.dma(L2.base, L1.base + 90_000, 4096)
    total = run(cluster, head(128, 128, 64))
    cluster.finish(DMA)
    causes = EventLog(cluster.events()).causes(0, total)
    assert causes.array == 24 * 256
    assert causes.weights == FILL
    assert causes.trigger == total - 24 * 256 - FILL
    assert causes.dma == 50 + 64
    assert causes.dma_alone == 0
    assert causes.host_alone == 0
    assert causes.waiting == 0  # which the simulator adds
    assert causes.array + causes.weights + causes.trigger == total


@pytest.mark.parametrize(
    ("size", "rows", "cycles"),
    [(1, 1, 51), (64, 1, 51), (65, 1, 52), (4096, 1, 114), (1, 7, 57), (65, 3, 56), (128, 64, 178)],
)
def test_transfers(cluster: Cluster, size: int, rows: int, cycles: int) -> None:
    """50 cycles, and for each row its bytes over 64, rounded up."""
    cluster.dma(L2.base, L1.base, size, rows, 200, 200)
    assert cluster.finish(DMA) == cycles
    event = cluster.events()[0]
    assert (event["unit"], event["what"], event["bytes"]) == ("dma", "in", size * rows)
    assert event["end"] - event["start"] == cycles


def test_transfers_follow_each_other(cluster: Cluster) -> None:
    for n in range(DMA_ENGINE.queue_depth):
        assert cluster.read(DMA + c.ROOM) == DMA_ENGINE.queue_depth - n
        cluster.dma(L1.base + n * 64, L2.base + n * 64, 64)
    assert cluster.read(DMA + c.STARTED) == 4
    ends = []
    for n in range(4):
        cluster.now = cluster.next_event()
        assert cluster.read(DMA + c.COMPLETED) == n + 1
        ends.append(cluster.now)
    assert ends == [51, 102, 153, 204]
    assert {event["what"] for event in cluster.events()} == {"out"}
