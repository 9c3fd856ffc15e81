"""Schedule and packed weights, executed by an independent model, against plain convolution."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import cast

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan, plan_alone
from byoc_dory.soc.diana.core_programs import digital_loop, digital_program
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.digital import DigitalAccelerator
from byoc_dory.soc.diana.packing import pack_digital_weights, stored_bytes
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Solution
from tests.byoc_dory.driver_calls import Load, Queue, steps_of
from tests.byoc_dory.layers import OPS, int8, random_layer
from tests.byoc_dory.plans import all_plans, may_stay, plan_of, program_of
from tests.reference.diana_core import Core
from tests.reference.diana_layers import from_l2, run_layer, to_l2

CORE = cast(DigitalAccelerator, DIANA.accelerator("digital"))


def _l1_end(program: TileProgram) -> int:
    """First byte of L1 after all operands and the result."""
    return max(program.end(operand) for operand in program.tensor.values())


def tiled_by(layer: Layer, options: TilingOptions) -> Solution | None:
    """The solution under a budget, or None if not even the smallest tile fits."""
    try:
        return Cost(DIANA, options).best_tile(CORE, layer)
    except TilingError:
        return None


def plan(layer: Layer, options: TilingOptions) -> TileProgram | None:
    """The schedule of the layer alone under a budget."""
    solution = tiled_by(layer, options)
    if solution is None:
        return None
    chosen = plan_alone(layer, solution, CORE.name)
    program = program_of(layer, chosen, options.schedule, options.loop_order)
    assert _l1_end(program) <= solution.l1_in + solution.l1_out
    return program


def _end(layer: Layer, program: TileProgram) -> int:
    """First byte of L1 behind all that is written: the core writes surplus maps."""
    end = _l1_end(program)
    if layer.op != "add":
        last = layer.K - 1 if layer.op == "depthwise" else -(-layer.K // 16) * 16
        maps = last + (16 if layer.op == "depthwise" else 0)
        row = 1 if layer.op == "dense" else layer.oy * -(-layer.ox // 16) * 16
        if program.result.resident:
            end = max(end, program.result.l1 + maps * row)
    return end


def replay(
    layer: Layer, program: TileProgram, rng: np.random.Generator, late=(False, False), of=CORE
) -> None:
    """Executes a schedule; operands that stay in L1 are there, and so must such a result be."""
    inputs = [int8(rng, *tensor.shape) for tensor in layer.inputs]
    images = [to_l2(values) for values in inputs]
    k_tile = next(axis for axis in program.axes if axis.name == "k").step
    weights = (
        np.zeros(0, np.uint8) if layer.op == "add" else pack_digital_weights(of, layer, k_tile)
    )
    core = Core(_end(layer, program), weights, *late)
    for image, operand in zip(images, program.operands, strict=True):
        if operand.resident:
            core.l1[operand.l1 : operand.l1 + len(image)] = image
            core.written[operand.l1 : operand.l1 + len(image)] = True
    size = stored_bytes(layer.output.shape, 16)
    output = np.zeros(size, np.uint8)
    core.run(steps_of(program), images, output)
    if program.result.resident:
        at = program.result.l1
        assert core.written[at : at + size].all()
        output = core.l1[at : at + size]
    np.testing.assert_array_equal(from_l2(output, layer.output.shape), run_layer(layer, inputs))


@pytest.mark.parametrize("seed", range(8))
def test_depthwise_layers_in_blocks_of_channels(seed: int) -> None:
    """As convolutions over up to 16 channels, whose weights keep the channels apart."""
    rng = np.random.default_rng([seed, 77])
    layer = random_layer(rng, "depthwise")
    replayed = 0
    for budget in BUDGETS:
        options = TilingOptions(budget, "none", solver="exhaustive")
        core = CORE.with_options(options)
        assert core.depthwise_channels == 16
        try:
            solution = Cost(DIANA, options).best_tile(core, layer)
        except TilingError:
            continue
        program = digital_program(
            core, digital_loop(core, layer, plan_alone(layer, solution, core.name), options)
        )
        if program.tiles <= 400:
            replay(layer, program, rng, of=core)
            replayed += 1
    assert replayed >= 1


def test_the_published_schedule_computes_channel_by_channel() -> None:
    assert CORE.with_options(TilingOptions(schedule="published")).depthwise_channels == 1


def test_a_small_weight_memory_holds_fewer_channels() -> None:
    core = replace(CORE.with_options(TilingOptions()), weight_memory=4096)
    assert [core.channels_at_a_time(size, size) for size in (1, 3, 5, 7)] == [16, 16, 10, 5]


# Budgets that leave everything from one tile to hundreds.
BUDGETS = (256_000, 24_000, 6_000, 2_000)


@pytest.mark.rotating(8)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(12))
def test_random_layers(op: str, seed: int) -> None:
    rng = np.random.default_rng([seed, OPS.index(op)])
    layer = random_layer(rng, op)
    replayed = 0
    for number, budget in enumerate(BUDGETS):
        order = ("yxk", "kyx")[(seed + number) % 2]
        objective = ("array", "none", "paper")[(seed + number) % 3]
        kind: ScheduleKind = ("published", "overlapped")[(seed // 2 + number) % 2]
        options = TilingOptions(
            budget, objective, solver="exhaustive", loop_order=order, schedule=kind
        )
        program = plan(layer, options)
        if program is not None and program.tiles <= 400:
            replay(layer, program, rng)
            replayed += 1
    assert replayed >= 1


@pytest.mark.rotating(1)
@pytest.mark.parametrize("op", OPS)
def test_every_plan_without_races(op: str) -> None:
    """Buffers and residency in all combinations; whenever devices do what they were told."""
    pipelined = resident = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, OPS.index(op), 77])
        layer = random_layer(rng, op, largest=20)
        smallest = (layer.C + 15) // 16 * 16 + 32 if op == "dense" else 900
        for number, budget in enumerate((20_000, 2_500, smallest)):
            order = ("yxk", "kyx")[(seed + number) % 2]
            options = TilingOptions(
                budget, "none", solver="exhaustive", loop_order=order, schedule="overlapped"
            )
            solution = tiled_by(layer, options)
            if solution is None or solution.tile.k * 40 < layer.K:
                continue
            for chosen in all_plans(layer, solution):
                program = program_of(layer, chosen, "overlapped", order)
                for late in product((False, True), repeat=2):
                    replay(layer, program, rng, late)
                pipelined += program.pipelined
                resident += chosen.resident_output or any(chosen.resident_inputs)
    assert resident >= 10 and pipelined >= 6


def test_a_race_is_found() -> None:
    """One buffer where two are needed gives wrong results for some order of events."""
    layer, solution = _k_tiled()
    program = program_of(layer, plan_of(layer, solution, 2))
    spoiled = replace(program, result=replace(program.result, l1_bytes=0))
    with pytest.raises(AssertionError):
        for late in product((False, True), repeat=2):
            replay(layer, spoiled, np.random.default_rng(1), late)


def _k_tiled() -> tuple[Layer, Solution]:
    for seed in range(50):
        layer = random_layer(np.random.default_rng(seed), "conv2d")
        solution = tiled_by(layer, TilingOptions(6_000, solver="exhaustive"))
        if solution is not None and 16 <= solution.tile.k < layer.K:
            return layer, solution
    raise AssertionError("no such layer")


def test_plans_that_contradict_the_schedule_are_refused() -> None:
    layer, solution = _k_tiled()
    for wrong in (plan_of(layer, solution, 2), plan_of(layer, solution, 1, (True,))):
        with pytest.raises(ValueError, match="keeps nothing"):
            program_of(layer, wrong, "published")
    for seed in range(50):
        layer = random_layer(np.random.default_rng(seed), "conv2d")
        solution = tiled_by(layer, TilingOptions(2_000, solver="exhaustive"))
        if solution is not None and not may_stay(layer, solution):
            break
    with pytest.raises(ValueError, match="cannot stay in L1"):
        program_of(layer, plan_of(layer, solution, 1, (True,)))


def test_budgets_do_tile() -> None:
    """The random cases above are worth something only if many of them are tiled."""
    tiled = total = 0
    for op in OPS:
        for seed in range(12):
            layer = random_layer(np.random.default_rng([seed, OPS.index(op)]), op)
            for budget in BUDGETS:
                program = plan(layer, TilingOptions(budget, solver="exhaustive"))
                if program is not None and program.tiles <= 400:
                    total += 1
                    tiled += program.tiles > 1
    assert total >= 150
    assert tiled >= 60


def test_input_is_loaded_once_for_all_channel_tiles() -> None:
    """Weights come with each trigger, so only a new input region needs the DMA."""
    layer, solution = _k_tiled()
    chosen: LayerPlan = plan_alone(layer, solution, CORE.name)
    program = program_of(layer, chosen)
    loads = [s for s in steps_of(program) if isinstance(s, Queue) and isinstance(s.transfer, Load)]
    assert len(loads) == prod(axis.count for axis in program.axes if axis.name != "k")
    published = program_of(layer, chosen, "published")
    loads = [step for step in steps_of(published) if isinstance(step, Load)]
    assert len(loads) == published.tiles
