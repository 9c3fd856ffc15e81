"""ITA driven by firmware: the microbenchmarks with the harts' own cycles and real transfers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htvm.firmware import rv32
from htvm.firmware.host import driver_sources
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32
from tests.reference import ita as reference
from tests.reference.ita import Requant
from tests.runtime_c.cluster import CORE, SOC, bias_bytes

PRODUCT, ATTENTION = 1, 2


@dataclass(frozen=True)
class Bench:
    """One run: what was computed, from what, and the cycles between the marks of each case."""

    left: reference.Array
    right: reference.Array
    x: reference.Array
    head: reference.Head
    run: rv32.FirmwareRun

    def span(self, case: int) -> tuple[int, int]:
        times = {event: cycle for cycle, event in self.run.marks}
        return times[case << 1], times[case << 1 | 1]

    def events(self, case: int, unit: str) -> list[dict[str, Any]]:
        begin, end = self.span(case)
        return [e for e in self.run.events if e["unit"] == unit and begin <= e["start"] < end]

    def utilization(self, case: int) -> float:
        begin, end = self.span(case)
        return sum(e["array"] for e in self.events(case, "ita")) / (end - begin)


def draw_head(rng: np.random.Generator) -> reference.Head:
    weights = rng.integers(-128, 128, (3, 64, 128)).astype(np.int8)
    output = rng.integers(-128, 128, (128, 64)).astype(np.int8)
    biases = [rng.integers(-9000, 9000, n) for n in (64, 64, 64, 128)]
    steps = [Requant(int(m), 16, int(a)) for m, a in zip((99, 120, 90), (2, -3, 1), strict=True)]
    scores, context = Requant(150, 15, -4), Requant(120, 13, 1)
    return reference.Head(*weights, output, *biases, *steps, scores, context, Requant(200, 16, 7))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    compiler = Compiler.zig()
    firmware = rv32.build_firmware(
        [Path(__file__).with_name("ita_tasks.c"), *driver_sources(SOC)],
        driver_folders(SOC),
        machine_of(SOC),
        tmp_path_factory.mktemp("ita_tasks"),
        compiler,
        SOC.host.stack,
        ("-Wall", "-Wextra", "-Werror"),
    )
    rng = np.random.default_rng(1)
    left, right = rng.integers(-128, 128, (2, 512, 512)).astype(np.int8)
    x = rng.integers(-128, 128, (128, 128)).astype(np.int8)
    head = draw_head(rng)
    parts = [x, head.wq, head.wk, head.wv, head.wo]
    parts += [bias_bytes(bias) for bias in (head.bq, head.bk, head.bv, head.bo)]
    steps = [[r.mult, r.shift, r.add & 255, 0] for r in (head.q, head.k, head.v)]
    steps += [[r.mult, r.shift, r.add & 255, 0] for r in (head.qk, head.av, head.o)]
    run = run_rv32(
        firmware,
        {
            "left": left.tobytes(),
            "right": right.tobytes(),
            "image": b"".join(part.tobytes() for part in parts),
            "requants": bytes(sum(steps, [])),
        },
        {"product": 512 * 512, "attention": 128 * 128},
        compiler=compiler,
    )
    return Bench(left, right, x, head, run)


def test_results(bench: Bench) -> None:
    want = reference.requantize(
        reference.product(bench.left, bench.right), Requant(181, 17, 5)
    ).ravel()
    np.testing.assert_array_equal(np.frombuffer(bench.run.outputs["product"], np.int8), want)
    head = reference.run_head(bench.x, bench.head)
    got = np.frombuffer(bench.run.outputs["attention"], np.int8).reshape(128, 128)
    np.testing.assert_array_equal(got, head.out)
    assert len(np.unique(head.scores)) > 100  # the test would notice


def test_product_from_l2_reaches_the_published_utilization(bench: Bench) -> None:
    """82.1 %, transfers of the first operands and the last result included."""
    assert bench.utilization(PRODUCT) == pytest.approx(0.821, abs=0.01)


def test_attention_reaches_the_published_utilization(bench: Bench) -> None:
    assert bench.utilization(ATTENTION) == pytest.approx(0.695, abs=0.02)


def test_ita_never_starves(bench: Bench) -> None:
    """Each task but the first begins as soon as the array is free, while the DMA loads."""
    tasks = bench.events(PRODUCT, "ita")
    assert len(tasks) == 64
    assert [task["weights"] for task in tasks] == [CORE.fill_cycles] + [0] * 63
    free = [task["end"] - CORE.drain_cycles for task in tasks]
    assert [task["start"] for task in tasks[1:]] == free[:-1]
    begin, end = tasks[0]["start"], tasks[-1]["end"]
    transfers = [e for e in bench.events(PRODUCT, "dma") if begin <= e["start"] < end]
    assert len(transfers) == 63 + 63  # an operand and a result beside each task


def test_programming_a_task_costs_little(bench: Bench) -> None:
    """What the host spends on a task, hidden behind the one before."""
    tasks = bench.events(ATTENTION, "ita")
    begin, end = bench.span(ATTENTION)
    assert len(tasks) == 8
    exposed = (end - begin) - (tasks[-1]["end"] - tasks[0]["start"])
    assert exposed < 100  # the first task's registers, and noticing the end
