"""Predicted cycles against the published layer table and against the sum over all steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from byoc_dory.cost import Cost, HostEstimates
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.soc.diana.cores import DigitalCore
from byoc_dory.soc.diana.cost import (
    array_cycles,
    costs_of,
    dma_cycles,
    queued,
    trigger_cycles,
)
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.program import ConvTrigger
from byoc_dory.tileloop.cycles import Prices, _Timeline, predicted_cycles
from byoc_dory.tileloop.pipeline import Block, Trigger
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling.problem import Tile, solution_of
from tests.byoc_dory.driver_calls import Load, Queue, Start, Step, Store, steps_of
from tests.byoc_dory.layers import NETWORKS, OPS, random_layer
from tests.byoc_dory.plans import plan_of, program_of

_core = DIANA.accelerator("digital")
assert isinstance(_core, DigitalCore)
CORE: DigitalCore = _core
DMA = DIANA.dma
assert DMA is not None


def _scheduled(
    layer: Layer, tile: Tile, order: Literal["yxk", "kyx"] = "yxk", kind: ScheduleKind = "published"
) -> TileProgram:
    solution = solution_of(
        CORE.tiling_problem(DIANA, layer, TilingOptions(schedule="published")), tile
    )
    return program_of(layer, plan_alone(layer, solution, CORE.name), kind, order)


def whole(layer: Layer):
    problem = CORE.tiling_problem(DIANA, layer, TilingOptions(schedule="published"))
    return _scheduled(layer, problem.whole)


def cycles_of_triggers(layer: Layer) -> list[int]:
    steps = steps_of(whole(layer))
    return [trigger_cycles(CORE, s) for s in steps if isinstance(s, Trigger)]


# (network, layer) -> (array, weight, overhead) cycles, derived from the published totals.
TABLE = {
    ("resnet8", 0): (3_920, 31, 485),
    ("resnet8", 1): (13_696, 148, 485),
    ("resnet8", 4): (6_848, 296, 485),
    ("resnet8", 5): (12_608, 584, 485),
    ("resnet8", 6): (1_856, 40, 485),
    ("resnet8", 3): (1_024, 0, 485),
    ("ds_cnn", 2): (None, 272, 485),
    ("mobilenet", 0): (8_892, 31, 485),
    ("toyadmos", 0): (320, 5_248, 3_880),
    ("toyadmos", 1): (64, 1_152, 3_880),
    ("toyadmos", 9): (320, 5_760, 19_400),
}


@pytest.mark.parametrize(("network", "index"), TABLE)
def test_layer_table(network: str, index: int) -> None:
    array, weights, overhead = TABLE[network, index]
    layer = NETWORKS[network]()[index]
    cycles = cycles_of_triggers(layer)
    if array is not None:
        assert sum(cycles) == array + weights + overhead
    if layer.op == "conv2d":
        assert CORE.conv_weight_bytes(layer.K, layer.C, layer.fy, layer.fx) // 16 == weights


def test_depthwise_peak() -> None:
    """A depthwise 3x3 inside the image: 144 MACs in 38 cycles (published: 3.75 MAC/cycle)."""
    inner = ConvTrigger(1, 1, 18, 18, 16, 16, 3, 3, 1, 0, 0, 0, 0, 0, 0, False, True)
    assert array_cycles(inner, CORE) == 16 * 38


@pytest.mark.parametrize("stride", [1, 2])
def test_filter_rows_inside_the_tile(stride: int) -> None:
    """Counted row by row: padding above and below, tiles that start inside, rows to skip."""
    sizes = itertools.product(range(1, 9), range(1, 9), (1, 3, 7), range(-3, 7))
    for oy, iy, fy, pad in sizes:
        tile = ConvTrigger(1, 5, iy, 16, oy, 16, fy, 3, stride, pad, 0, 0, 0, 0, 0, False, False)
        starts = [row * stride - pad for row in range(oy)]
        inside = [max(0, min(iy, start + fy) - max(0, start)) for start in starts]
        expected = sum(5 * rows * (3 + CORE.row_cycles) + CORE.output_cycles for rows in inside)
        assert array_cycles(tile, CORE) == expected


def test_dma() -> None:
    assert dma_cycles(Block(1, 1, 64, 0, 0, 0, 0), DMA) == 50 + 4
    # Padded to 32 B each, one command per row.
    assert dma_cycles(Block(2, 3, 20, 96, 32, 48, 16), DMA) == 50 + 6 * (36 + 2)
    # Rows are contiguous, channels are not.
    assert dma_cycles(Block(2, 3, 32, 128, 32, 96, 32), DMA) == 50 + 2 * (36 + 6)
    # Everything is contiguous.
    assert dma_cycles(Block(2, 3, 32, 96, 32, 96, 32), DMA) == 50 + 12


def test_queued_commands_cost_the_host_nothing() -> None:
    rows = Block(2, 3, 20, 96, 32, 48, 16)
    assert queued(rows, DMA).cycles == dma_cycles(rows, DMA) - 5 * DMA.driver_next_cycles
    whole = Block(2, 3, 32, 96, 32, 96, 32)
    assert queued(whole, DMA).cycles == dma_cycles(whole, DMA)
    # The operands of an add move row by row, even if they are one row.
    assert dma_cycles(replace(whole, by_rows=True), DMA) == 50 + 6 * (36 + 2)
    assert dma_cycles(Block(1, 1, 64, 0, 0, 0, 0, by_rows=True), DMA) == 50 + 36 + 4


def tiled_layers(
    op: str, order: Literal["yxk", "kyx"], kind: ScheduleKind
) -> Iterator[tuple[Layer, Tile]]:
    for seed in range(12):
        layer = random_layer(np.random.default_rng([seed, 31]), op)
        for budget in (256_000, 9_000, 2_500):
            options = TilingOptions(
                budget, "array", solver="exhaustive", loop_order=order, schedule=kind
            )
            try:
                yield layer, Cost(DIANA, options).best_tile(CORE, layer).tile
            except TilingError:
                continue


def alone_cycles(step: Step) -> int:
    """What a step costs when nothing runs beside it."""
    if isinstance(step, Queue):
        return queued(step.transfer.block, DMA).cycles
    if isinstance(step, Start):
        return trigger_cycles(CORE, step.trigger, ahead=True)
    if isinstance(step, Trigger):
        return trigger_cycles(CORE, step)
    if isinstance(step, Load):
        return dma_cycles(step.block, DMA)
    return dma_cycles(step.block, DMA) if isinstance(step, Store) else 0


@pytest.mark.rotating(5)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("order", ["yxk", "kyx"])
@pytest.mark.parametrize("kind", ["published", "overlapped"])
def test_grouping_equals_the_sum_over_steps(op: str, order, kind: ScheduleKind) -> None:
    tiled = 0
    for layer, tile in tiled_layers(op, order, kind):
        program = _scheduled(layer, tile, order, kind)
        total = sum(alone_cycles(step) for step in steps_of(program))
        costs = costs_of(DIANA, CORE, kind == "published")
        simulated = _Timeline(program, costs, Prices()).run()
        assert predicted_cycles(program, costs) == total == simulated
        tiled += program.tiles > 1
    assert tiled >= (0 if op == "dense" else 5)


@pytest.mark.parametrize("op", OPS)
def test_overlap_costs_between_the_busiest_device_and_both_in_turn(op: str) -> None:
    pipelined = 0
    for layer, tile in tiled_layers(op, "yxk", "overlapped"):
        solution = solution_of(
            CORE.tiling_problem(DIANA, layer, TilingOptions(schedule="published")), tile
        )
        program = program_of(layer, plan_of(layer, solution, 2))
        cycles = predicted_cycles(program, costs_of(DIANA, CORE, published=False))
        steps = list(steps_of(program))
        core = sum(alone_cycles(step) for step in steps if isinstance(step, Start))
        moved = sum(alone_cycles(step) for step in steps if isinstance(step, Queue))
        assert max(core, moved) <= cycles <= core + moved
        pipelined += program.pipelined
    assert pipelined >= (0 if op == "dense" else 5)


def test_toolkit_cost() -> None:
    layer = NETWORKS["resnet8"]()[1]
    cost = Cost(DIANA, TilingOptions(schedule="published")).tile_cycles(
        CORE, layer, Tile(16, 16, 32, 32)
    )
    # Input and output move once, 16 kB each at 16 B per cycle.
    assert cost == 2 * (50 + 1024) + 13_696 + 148 + 485


def test_cpu_estimate_follows_the_operator() -> None:
    layers, host = NETWORKS["mobilenet"](), HostEstimates(DIANA)
    assert host.layer(layers[0]) == round(DIANA.host.cost.conv_mac * layers[0].macs)
    assert host.layer(layers[1]) == round(DIANA.host.cost.depthwise_mac * layers[1].macs)
    assert host.layer(layers[2]) == round(DIANA.host.cost.pointwise_mac * layers[2].macs)
    assert host.layer(layers[-1]) == round(DIANA.host.cost.dense_mac * 512)
