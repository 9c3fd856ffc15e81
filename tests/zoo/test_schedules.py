"""Whole networks under both schedules: transfers, predicted and simulated cycles, causes."""

from __future__ import annotations

from functools import cache
from statistics import median

import numpy as np
import pytest

import htvm
from byoc_dory.options import ScheduleKind
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.module import Module
from htvm.result import RunResult
from tests.byoc_dory.driver_calls import Load, Step, Store, steps_of

# Bytes (each command rounded up to 32), calls and row commands of the DMA that the published
# latencies of HTVM (DAC 2023, Table I) were fitted with, and the published ms without them
# ("Peak").
TABLE = {
    "ds_cnn_7x5": (174_816, 20, 0, 1.70),
    "mobilenet_v1": (838_944, 58, 0, 5.42),
    "resnet8": (330_848, 29, 3_072, 0.66),
    "toyadmos": (20_128, 210, 0, 0.30),
}
# Known difference, 0.2 % of MobileNet's cycles: what it takes to move the 8 maps between its first
# two layers as 16 (K rounded up), out and in.
DEVIATIONS = {"mobilenet_v1": -2 * 8 * 48 * 48}

NETWORKS = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "mobilenet_v1" else []) for name in TABLE
]


@cache
def ran(name: str, schedule: ScheduleKind) -> tuple[Module, RunResult]:
    module = htvm.build(zoo.build(name), "diana.digital", schedule=schedule)
    return module, module.run(seeded_inputs(module.compiled.source.inputs))


def steps(module: Module) -> list[Step]:
    return [
        step
        for code in module.compiled.regions.values()
        for kernel in code.kernels
        if kernel.program is not None
        for step in steps_of(kernel.program)
    ]


@pytest.mark.parametrize("name", NETWORKS)
def test_published_transfers(name: str) -> None:
    calls = total = rows = 0
    for step in steps(ran(name, "published")[0]):
        if not isinstance(step, Load | Store):
            continue
        commands, size = step.block.commands()
        if isinstance(step, Load) and step.block.by_rows:
            commands, size = step.block.channels * step.block.rows, step.block.bytes
            rows += commands
        else:
            assert commands == 1
        calls += 1
        total += commands * -(-size // 32) * 32
    assert (total - DEVIATIONS.get(name, 0), calls, rows) == TABLE[name][:3]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("schedule", ["published", "overlapped"])
def test_layers_take_as_long_as_predicted(name: str, schedule: ScheduleKind) -> None:
    ratios = [
        layer.cycles / layer.predicted_cycles
        for layer in ran(name, schedule)[1].layers
        if layer.kind == "layer" and layer.cycles is not None
    ]
    assert abs(median(ratios) - 1) < 0.025
    assert 0.93 < min(ratios) and max(ratios) < 1.06


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("schedule", ["published", "overlapped"])
def test_every_cycle_has_one_cause(name: str, schedule: ScheduleKind) -> None:
    result = ran(name, schedule)[1]
    assert result.causes is not None
    for causes, cycles in [(layer.causes, layer.cycles) for layer in result.layers] + [
        (result.causes, result.cycles)
    ]:
        assert causes is not None
        assert causes.cycles == cycles == causes.cores + causes.dma_alone + causes.host_alone
    busy = [layer.causes.cores for layer in result.layers if layer.causes is not None]
    assert sum(busy) == result.causes.cores == dict(result.units)["digital"]
    if schedule == "published":
        # Nothing happens beside anything else.
        assert result.causes.dma_alone == result.causes.dma


@pytest.mark.parametrize("name", NETWORKS)
def test_overlap_is_quicker_than_the_published_peak(name: str) -> None:
    """End to end, our own host's work included; and the schedule changes no output."""
    published, overlapped = ran(name, "published")[1], ran(name, "overlapped")[1]
    for one, other in zip(published.outputs, overlapped.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert published.cycles is not None and overlapped.cycles is not None
    assert overlapped.latency_ms is not None and overlapped.latency_ms <= TABLE[name][3]
    assert overlapped.cycles < published.cycles
