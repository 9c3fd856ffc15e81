"""Schedule and packed weights, executed by an independent model, against plain convolution."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.layer import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.packing import pack_weights
from byoc_dory.planning import alone, tile_layer
from byoc_dory.schedule import Schedule, schedule_layer, stored_bytes
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.steps import Load
from tests.byoc_dory.core_model import Core
from tests.byoc_dory.layers import OPS, int8, random_layer
from tests.byoc_dory.reference import from_l2, run_layer, to_l2

CORE = DIANA.accelerator("digital")


def plan(layer: Layer, options: TilingOptions) -> Schedule | None:
    """The schedule under a budget, or None if not even the smallest tile fits."""
    try:
        solution = tile_layer(layer, DIANA, CORE, options)
    except TilingError:
        return None
    schedule = schedule_layer(layer, alone(layer, solution, CORE.name), CORE, options.loop_order)
    assert schedule.l1_bytes <= solution.l1_in + solution.l1_out
    return schedule


def replay(layer: Layer, schedule: Schedule, rng: np.random.Generator) -> None:
    inputs = [int8(rng, *tensor.shape) for tensor in layer.inputs]
    k_tile = schedule.tile.k
    weights = np.zeros(0, np.uint8) if layer.op == "add" else pack_weights(layer, k_tile, CORE)
    core = Core(schedule.l1_bytes, weights)
    output = np.zeros(stored_bytes(layer.output.shape, 16), np.uint8)
    core.run(schedule.steps(), [to_l2(values) for values in inputs], output)
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
        options = TilingOptions(budget, objective, solver="exhaustive", loop_order=order)
        schedule = plan(layer, options)
        if schedule is not None and schedule.tiles <= 400:
            replay(layer, schedule, rng)
            replayed += 1
    assert replayed >= 1


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
    layer = random_layer(np.random.default_rng(5), "conv2d")
    schedule = plan(layer, TilingOptions(6_000, solver="exhaustive"))
    assert schedule is not None and len(schedule.k_tiles) > 1
    loads = [step for step in schedule.steps() if isinstance(step, Load)]
    assert len(loads) == len(schedule.y_tiles) * len(schedule.x_tiles)
