"""N-EUREKA's device model: its cycles, those of planning, and its queue of jobs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.soc.siracusa.neureka import NEUREKA, cautious
from byoc_dory.soc.siracusa.neureka_jobs import job_cycles
from tests.reference import neureka as reference
from tests.reference.neureka import Job, Kind, Places
from tests.runtime_c.neureka_jobs import L1, L1_BYTES, MRAM, SRAM, planned, random_job
from tests.runtime_c.siracusa import (
    ACQUIRE,
    CAUTIOUS,
    CLEAR,
    FINISHED,
    FULL,
    JOB,
    LOCKED,
    RUNNING,
    SOC,
    STATUS,
    TRIGGER,
    Engine,
    library,
)

# Kind, rows, columns, channels in and out; MAC; cycles and MAC per cycle, without and with
# prefetch.  From GVSoC's model of the engine, by hand: 8 bits, uint8 scales and biases, and where
# the filter is 3x3 a padding of 1.
TABLE: list[tuple[Kind, int, int, int, int, int, tuple[int, int], tuple[int, int]]] = [
    ("3x3", 36, 36, 112, 128, 167_215_104, (203_681, 821), (170_309, 982)),
    ("3x3", 32, 32, 16, 16, 2_359_296, (9_206, 256), (7_526, 313)),
    ("3x3", 16, 16, 32, 32, 2_359_296, (6_394, 369), (5_627, 419)),
    ("3x3", 8, 8, 64, 64, 2_359_296, (7_759, 304), (7_227, 326)),
    ("1x1", 25, 5, 64, 64, 512_000, (2_411, 212), (1_715, 299)),
    ("1x1", 12, 11, 64, 64, 540_672, (1_981, 273), (1_441, 375)),
    ("depthwise", 25, 5, 64, 64, 72_000, (4_613, 16), (4_517, 16)),
    ("1x1", 1, 1, 64, 64, 4_096, (427, 10), (355, 12)),
    ("1x1", 1, 1, 64, 256, 16_384, (1_705, 10), (1_417, 12)),
    ("1x1", 1, 1, 256, 64, 16_384, (1_507, 11), (967, 17)),
    ("1x1", 6, 6, 64, 64, 147_456, (497, 297), (425, 347)),
]
ENDLESS = 10**18


def job_of(kind: Kind, rows: int, columns: int, inputs: int, outputs: int, **more: Any) -> Job:
    """A job of 8 bits with the same weights and inputs everywhere."""
    side = 1 if kind == "1x1" else 3
    shape = (outputs, 1 if kind == "depthwise" else inputs, side, side)
    weights = np.zeros(shape, np.int64)
    weights[0, 0, 0, 0] = 255
    scaling = {"scale": np.ones(outputs, np.int64), "bias": np.zeros(outputs, np.int64)}
    options: dict[str, Any] = {"padding": (1, 1, 1, 1) if side == 3 else (0,) * 4, **scaling}
    x = np.ones((rows, columns, inputs), np.uint8)
    return Job(kind=kind, x=x, weights=weights, bits=8, **{**options, **more})


def registers(job: Job, output: int = 0) -> list[int]:
    """A job whose pixels are all the same ones, with weights in the weight memory."""
    rows, columns, outputs = job.shape
    pixel = outputs * (1 if job.scale is not None else 4)
    end = L1 + L1_BYTES
    places = Places(
        weights=SRAM - MRAM, x=end - 256, output=L1 + output, scale=end - 2048, shift=end - 3072,
        bias=end - 8192, x_row=0, x_pixel=0, output_row=columns * pixel, output_pixel=pixel,
    )  # fmt: skip
    return reference.registers(replace(job, weight_memory=True), places)


@pytest.fixture(scope="module")
def models() -> ctypes.CDLL:
    return library()


@pytest.fixture
def engine(models: ctypes.CDLL) -> Iterator[Engine]:
    made = Engine(models)
    yield made
    made.close()


def run(engine: Engine, job: Job) -> int:
    """The cycles of a job alone."""
    engine.start(registers(job))
    assert engine.error is None
    cycles = engine.drain()
    assert engine.error is None
    return cycles


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(map(str, row[:5])))
def test_cycles(engine: Engine, row: Any, prefetch: bool) -> None:
    kind, rows, columns, inputs, outputs, macs, *measured = row
    cycles, rate = measured[prefetch]
    job = job_of(kind, rows, columns, inputs, outputs, prefetch=prefetch)
    assert run(engine, job) == cycles
    assert job_cycles(planned(job), NEUREKA) == cycles
    assert reference.cycles(job) == cycles
    assert round(macs / cycles) == rate
    (event,) = engine.events()
    assert (event["unit"], event["macs"], event["end"]) == ("neureka", macs, cycles)


def test_the_uncertain_cycles_can_be_charged() -> None:
    """20 for each block and Ko tile: 3 x 2 blocks, 3 tiles."""
    job = job_of("1x1", 14, 9, 10, 70)
    engine = Engine(library(CAUTIOUS))
    try:
        got = run(engine, job)
    finally:
        engine.close()
    assert got == reference.cycles(job) + 20 * 18 == reference.cycles(job, slack=20)
    assert got == job_cycles(planned(job), cautious(NEUREKA))


def test_planning_and_reference_agree_on_random_jobs() -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        job = random_job(rng)
        assert job_cycles(planned(job), NEUREKA) == reference.cycles(job)


def test_two_jobs_are_queued(engine: Engine) -> None:
    short, long = job_of("1x1", 1, 1, 64, 64), job_of("1x1", 6, 6, 64, 64)
    assert engine.get(STATUS) == 0
    assert engine.start(registers(short)) == 0
    assert engine.get(STATUS) == 1
    assert engine.get(ACQUIRE) == 1
    assert engine.get(ACQUIRE) == LOCKED
    assert engine.get(STATUS) == 0x101
    for index, value in enumerate(registers(long, 4096)):
        engine.set(JOB + 4 * index, value)
    assert engine.get(JOB + 4 * 2) == L1 + 4096
    engine.now = 100
    engine.set(TRIGGER, 0)
    assert engine.get(ACQUIRE) == FULL
    assert (engine.get(RUNNING), engine.get(FINISHED), engine.next_event()) == (0, 0, 427)
    engine.now = 427
    assert (engine.get(STATUS), engine.get(RUNNING), engine.get(FINISHED)) == (0x100, 1, 1)
    assert engine.next_event() == 427 + 497
    engine.now = 427 + 497
    assert (engine.get(STATUS), engine.get(RUNNING), engine.get(FINISHED)) == (0, 1, 2)
    assert engine.error is None
    first, second = engine.events()
    assert (first["start"], first["end"], first["issued"]) == (0, 427, 0)
    assert (second["start"], second["end"], second["issued"]) == (427, 924, 100)


def test_a_job_reads_what_the_job_before_wrote(engine: Engine) -> None:
    """int32 sums of a constant input, then the same again on top of them."""
    engine.l1[-256:] = 3
    job = job_of("1x1", 2, 2, 1, 1, scale=None, bias=None)
    assert job.offset == 255  # the weight, as what is stored is 0
    engine.start(registers(job))
    engine.start(registers(replace(job, begun=np.zeros((2, 2, 1), np.int64))))
    engine.drain()
    assert engine.error is None
    assert engine.l1[:16].view("<i4").tolist() == [2 * 3 * 255] * 4


def test_results_appear_at_the_end(engine: Engine) -> None:
    engine.l1[-256:] = 1
    engine.sram[:] = 0xFF
    cycles = reference.cycles(job_of("1x1", 1, 1, 64, 64))
    engine.l1[-2048:-1984] = 1
    engine.start(registers(job_of("1x1", 1, 1, 64, 64)))
    engine.now = cycles - 1
    assert engine.get(STATUS) and not engine.l1[:64].any()
    engine.now = cycles
    assert not engine.get(STATUS) and engine.l1[:64].all()


def test_soft_clear_drops_everything(engine: Engine) -> None:
    job = registers(job_of("1x1", 1, 1, 64, 64))
    engine.l1[:64] = 7
    engine.start(job)
    engine.start(registers(job_of("1x1", 1, 1, 64, 64), 128))
    engine.now = 50
    engine.set(CLEAR, 0)
    assert (engine.get(STATUS), engine.get(RUNNING), engine.get(FINISHED)) == (0, 0, 0)
    assert engine.next_event() > ENDLESS
    engine.now = 10_000
    assert engine.get(STATUS) == 0
    assert engine.l1[:64].tolist() == [7] * 64
    assert engine.start(job) == 0
    assert engine.drain() == 427
    assert engine.error is None


def test_numbers_wrap_around(engine: Engine) -> None:
    job = registers(job_of("1x1", 1, 1, 1, 1))
    for number in range(260):
        assert engine.start(job) == number % 256
        engine.drain()
    assert engine.get(FINISHED) == 260
    assert engine.error is None


def test_the_numbers_fit_together() -> None:
    assert SOC.accelerators[0].registers == 0x00201000
    assert NEUREKA.block**2 * NEUREKA.input_channels[0] * 9 / 8 == 1134  # peaks, MAC per cycle
    assert NEUREKA.block**2 * NEUREKA.input_channels[2] == 1152
    assert NEUREKA.block**2 * 9 / 8 == 40.5
    # The device model's buffers have so many channels.
    tiles = (*NEUREKA.input_channels, *NEUREKA.output_channels)
    assert max(tiles) <= NEUREKA.scale_channels
