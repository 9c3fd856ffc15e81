"""What the cycles of a run were spent on, against counting every cycle by itself."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from htvm.result import Causes
from htvm.sim.causes import EventLog


def random_events(
    rng: np.random.Generator, cycles: int, core: str = "digital"
) -> list[dict[str, Any]]:
    """A DMA, a core and a waiting host, each one thing after another."""
    events = []
    for unit in ("dma", core, "host"):
        at = int(rng.integers(0, 10))
        while True:
            end = at + int(rng.integers(1, 40))
            if end > cycles:
                break
            event = {"unit": unit, "start": at, "end": end, "array": 0, "weights": 0}
            if unit == core:
                event["array"] = int(rng.integers(0, end - at + 1))
                event["weights"] = int(rng.integers(0, end - at + 1 - event["array"]))
            events.append(event)
            at = end + int(rng.integers(0, 12))
    return sorted(events, key=lambda event: (event["end"], event["unit"]))


@pytest.mark.parametrize("unit", ["digital", "cluster"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_counting_every_cycle(seed: int, unit: str) -> None:
    rng = np.random.default_rng(seed)
    cycles = int(rng.integers(1, 500))
    events = random_events(rng, cycles, unit)
    busy = {name: np.zeros(cycles, bool) for name in ("dma", unit, "host")}
    for event in events:
        busy[event["unit"]][event["start"] : event["end"]] = True
    harts = [{"unit": f"core{i}", "start": 3 * i, "end": cycles} for i in range(9)]
    got = EventLog([*events, *harts]).causes(0, cycles)
    core, dma, waits = busy[unit], busy["dma"], busy["host"]
    kernels = core & ~waits if unit == "cluster" else np.zeros(cycles, bool)
    array = sum(event["array"] for event in events)
    weights = sum(event["weights"] for event in events)
    assert got == Causes(
        array=array,
        weights=weights,
        trigger=int(core.sum()) - array - weights,
        dma=int(dma.sum()),
        dma_alone=int((dma & ~core).sum()),
        host=int((~waits & ~kernels).sum()),
        host_alone=int((~core & ~dma).sum()),
        waiting=int(waits.sum()),
        starved=int((waits & ~core).sum()),
        computing=int(kernels.sum()),
    )
    assert got.dma_hidden == int((dma & core).sum())
    assert got.cycles == cycles == got.cores + got.dma_alone + got.host_alone


def test_steps_have_their_own_events() -> None:
    events = random_events(np.random.default_rng(1), 300)
    later = [{**e, "start": e["start"] + 1000, "end": e["end"] + 1000} for e in events]
    alone = EventLog(events).causes(0, 300)
    both = EventLog([*later, *events])
    assert both.causes(0, 300) == both.causes(1000, 1300) == alone
    assert both.causes(0, 1300).array == 2 * alone.array
    assert both.busy() == (("digital", 2 * alone.cores), ("dma", 2 * alone.dma))


def test_nothing_happened() -> None:
    causes = EventLog([]).causes(5, 25)
    assert (causes.host, causes.host_alone, causes.waiting, causes.cores) == (20, 20, 0, 0)


@pytest.mark.parametrize("seed", range(10))
def test_cores_and_an_accelerator_at_once(seed: int) -> None:
    """A controller's cores and its accelerator overlap: each cycle still has one cause."""
    rng = np.random.default_rng(seed)
    cycles = 400
    first, second = (random_events(rng, cycles, unit) for unit in ("cluster", "neureka"))
    kernels = [event for event in first if event["unit"] == "cluster"]
    jobs = [event for event in second if event["unit"] == "neureka"]
    for kernel in kernels:
        kernel |= {"array": kernel["end"] - kernel["start"], "weights": 0}
    waits = [event for event in first if event["unit"] == "host"]
    busy = np.zeros((2, cycles), bool)
    for row, events in enumerate((kernels, jobs)):
        for event in events:
            busy[row, event["start"] : event["end"]] = True
    got = EventLog([*kernels, *jobs, *waits]).causes(0, cycles)
    assert got.cores == busy.any(axis=0).sum() and min(got.array, got.weights, got.trigger) >= 0
    assert got.computing == 0, "the controller is none of the cores"
    assert got.cycles == cycles == got.host + got.waiting
    # Kernels count as array entirely, except where a job started before.
    assert got.array >= (busy[0] & ~busy[1]).sum()
    alone = EventLog(jobs).causes(0, cycles)
    assert alone.array == sum(job["array"] for job in jobs)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_a_run_add_up_to_it(seed: int) -> None:
    """Wherever steps end, also while devices are at work."""
    rng = np.random.default_rng([seed, 1])
    cycles = int(rng.integers(2, 500))
    log = EventLog(random_events(rng, cycles))
    steps = [0, *sorted(rng.integers(0, cycles, 6).tolist()), cycles]
    parts = [asdict(log.causes(begin, end)) for begin, end in pairwise(steps)]
    assert min(min(part.values()) for part in parts) >= 0
    whole = asdict(log.causes(0, cycles))
    assert {cause: sum(part[cause] for part in parts) for cause in whole} == whole
