"""Schedule and packed weights, executed by an independent model, against plain convolution."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.layers.layer import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan, alone
from byoc_dory.planning import tile_layer
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.digital_packing import pack_weights
from byoc_dory.soc.diana.digital_schedule import schedule_layer
from byoc_dory.soc.diana.layout import stored_bytes
from byoc_dory.soc.diana.schedule import Schedule
from byoc_dory.steps import Load, Queue
from byoc_dory.tiling import Solution
from tests.byoc_dory.layers import OPS, int8, random_layer
from tests.byoc_dory.plans import all_plans, may_stay, plan_of
from tests.reference.diana_core import Core
from tests.reference.diana_layers import from_l2, run_layer, to_l2

CORE = DIANA.accelerator("digital")


def tiled_by(layer: Layer, options: TilingOptions) -> Solution | None:
    """The solution under a budget, or None if not even the smallest tile fits."""
    try:
        return tile_layer(layer, DIANA, CORE, options)
    except TilingError:
        return None


def plan(layer: Layer, options: TilingOptions) -> Schedule | None:
    """The schedule of the layer alone under a budget."""
    solution = tiled_by(layer, options)
    if solution is None:
        return None
    chosen = alone(layer, solution, CORE.name)
    schedule = schedule_layer(layer, chosen, CORE, options.schedule, options.loop_order)
    assert schedule.l1_end <= solution.l1_in + solution.l1_out
    return schedule


def replay(layer: Layer, schedule: Schedule, rng: np.random.Generator, late=(False, False)) -> None:
    """Executes a schedule; operands that stay in L1 are there, and so must such a result be."""
    inputs = [int8(rng, *tensor.shape) for tensor in layer.inputs]
    images = [to_l2(values) for values in inputs]
    k_tile = schedule.tile.k
    weights = np.zeros(0, np.uint8) if layer.op == "add" else pack_weights(layer, k_tile, CORE)
    core = Core(schedule.l1_end, weights, *late)
    for image, at, resident in zip(images, schedule.l1_in, schedule.resident_in, strict=True):
        if resident:
            core.l1[at : at + len(image)] = image
            core.written[at : at + len(image)] = True
    size = stored_bytes(layer.output.shape, 16)
    output = np.zeros(size, np.uint8)
    core.run(schedule.steps(), images, output)
    if schedule.resident_out:
        assert core.written[schedule.l1_out : schedule.l1_out + size].all()
        output = core.l1[schedule.l1_out : schedule.l1_out + size]
    np.testing.assert_array_equal(from_l2(output, layer.output.shape), run_layer(layer, inputs))


# Budgets that leave everything from one tile to hundreds.
BUDGETS = (256_000, 24_000, 6_000, 2_000)


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
        schedule = plan(layer, options)
        if schedule is not None and schedule.tiles <= 400:
            replay(layer, schedule, rng)
            replayed += 1
    assert replayed >= 1


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
                schedule = schedule_layer(layer, chosen, CORE, "overlapped", order)
                for late in product((False, True), repeat=2):
                    replay(layer, schedule, rng, late)
                pipelined += schedule.pipelined
                resident += chosen.resident_output or any(chosen.resident_inputs)
    assert resident >= 10 and pipelined >= 6


def test_a_race_is_found() -> None:
    """One buffer where two are needed gives wrong results for some order of events."""
    layer, solution = _k_tiled()
    schedule = schedule_layer(layer, plan_of(layer, solution, 2), CORE, "overlapped")
    spoiled = Schedule(**{**vars(schedule), "out_bytes": 0})
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
            schedule_layer(layer, wrong, CORE, "published")
    for seed in range(50):
        layer = random_layer(np.random.default_rng(seed), "conv2d")
        solution = tiled_by(layer, TilingOptions(2_000, solver="exhaustive"))
        if solution is not None and not may_stay(layer, solution):
            break
    with pytest.raises(ValueError, match="cannot stay in L1"):
        schedule_layer(layer, plan_of(layer, solution, 1, (True,)), CORE, "overlapped")


def test_budgets_do_tile() -> None:
    """The random cases above are worth something only if many of them are tiled."""
    tiled = total = 0
    for op in OPS:
        for seed in range(12):
            layer = random_layer(np.random.default_rng([seed, OPS.index(op)]), op)
            for budget in BUDGETS:
                schedule = plan(layer, TilingOptions(budget, solver="exhaustive"))
                if schedule is not None and schedule.tiles <= 400:
                    total += 1
                    tiled += schedule.tiles > 1
    assert total >= 150
    assert tiled >= 60


def test_input_is_loaded_once_for_all_channel_tiles() -> None:
    """Weights come with each trigger, so only a new input region needs the DMA."""
    layer, solution = _k_tiled()
    chosen: LayerPlan = alone(layer, solution, CORE.name)
    schedule = schedule_layer(layer, chosen, CORE, "overlapped")
    loads = [s for s in schedule.steps() if isinstance(s, Queue) and isinstance(s.transfer, Load)]
    assert len(loads) == len(schedule.y_tiles) * len(schedule.x_tiles)
    published = schedule_layer(layer, chosen, CORE, "published")
    loads = [step for step in published.steps() if isinstance(step, Load)]
    assert len(loads) == published.tiles
