"""Keys under which results are shared have everything that the results depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.layers import Layer, MulShift, Shift, Tensor, conv2d_layer
from byoc_dory.layers.layer import value_of
from byoc_dory.options import TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.planning import plan_region
from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.diana.digital import DigitalAccelerator
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.tiling.problem import solution_of
from tests.byoc_dory.layers import OPS, random_layer
from tests.byoc_dory.neureka_cases import random_layer as random_neureka_layer
from tests.byoc_dory.program import region_of
from tests.byoc_dory.snitch_cases import random_cluster_layer

OPTIONS = TilingOptions()


@dataclass(frozen=True)
class Uneven(DigitalAccelerator):
    """Rows but the first take as long as the largest weight: the smallest tiles tell nothing."""

    counts = Accelerator.counts

    def plan_cost(self, soc: Any, layer: Layer, plan: Any, options: Any, known: Any = None) -> int:
        own = super().plan_cost(soc, layer, plan, options, known)
        return own + (plan.solution.tile.y - 1) * int(layer.weight.max())  # type: ignore[attr-defined]


def uneven() -> Uneven:
    return Uneven(**{name: getattr(DIGITAL, name) for name in DIGITAL.__dataclass_fields__})


def weighted(rng: np.random.Generator, largest: int) -> Layer:
    layer: Any = random_layer(rng, "conv2d")
    weight = np.zeros_like(layer.weight)
    weight.flat[0] = largest
    return replace(layer, weight=weight)


@pytest.mark.parametrize("first", [0, 1])
def test_layers_that_differ_beyond_their_smallest_tiles(first: int) -> None:
    """Each has its own cycles, whichever is planned first."""
    core, cost = uneven(), Cost(DIANA, OPTIONS)
    layers = [weighted(np.random.default_rng(5), largest) for largest in (1, 90)]
    assert layers[0].oy > 1
    for layer in (layers[first], layers[1 - first]):
        region, homes = region_of(layer, "r", "NHWC"), {layer.name: core}
        plan = plan_region(region, homes, cost)
        assert plan.cycles == core.plan_cost(DIANA, layer, plan.layers[0], OPTIONS)


def test_names_are_no_part_of_a_key() -> None:
    layer = weighted(np.random.default_rng(5), 3)
    source, output = (replace(each, name=f"other_{each.name}") for each in
                      (layer.inputs[0], layer.output))  # fmt: skip
    other = replace(layer, name="other", inputs=(source,), output=output)
    cost = Cost(DIANA, OPTIONS)
    assert cost.cost_key(DIGITAL, layer) == cost.cost_key(DIGITAL, other)


def test_each_field_is_a_part_of_a_key() -> None:
    layer: Any = weighted(np.random.default_rng(5), 3)
    weight = layer.weight.copy()
    weight.flat[-1] ^= 1
    changed = [
        replace(layer, weight=weight),
        replace(layer, clip=(0, 127)),
        replace(layer, input_range=(0, 127)),
        replace(layer, requant=replace(layer.requant, shift=layer.requant.shift + 1)),
        replace(layer, output=replace(layer.output, dtype="uint8")),
        replace(layer, bias=None if layer.bias is not None else np.zeros(layer.K, np.int32)),
    ]
    assert len({value_of(each) for each in (layer, *changed)}) == 1 + len(changed)
    cost = Cost(DIANA, OPTIONS)
    published = cost.with_options(replace(OPTIONS, schedule="published"))
    assert cost.cost_key(DIGITAL, layer) != published.cost_key(DIGITAL, layer)


def modelled(core: Accelerator, layer: Layer, soc: Any, options: TilingOptions) -> list[object]:
    """What the models answer: the tiling problem but for its limit, and cycles of some plans."""
    problem = core.tiling_problem(soc, layer, options)
    found: list[object] = [replace(problem, name="", l1_limit=0)]
    rows = replace(problem.whole, y=max(problem.smallest.y, problem.whole.y // 2))
    for tile in (problem.smallest, rows, problem.whole):
        plan = plan_alone(layer, solution_of(problem, tile), core.name, problem)
        found += [core.plan_cost(soc, layer, replace(plan, buffers=n), options) for n in (1, 2)]
    return found


def redrawn(rng: np.random.Generator, layer: Any, largest: int) -> Layer:
    """The layer with other numbers: multipliers up to ``largest``, or another shift."""
    weight = rng.permutation(layer.weight.reshape(-1)).reshape(layer.weight.shape)
    bias = None if layer.bias is None else rng.permutation(layer.bias)
    requant = layer.requant
    if isinstance(requant, MulShift):
        drawn = tuple(int(each) for each in rng.integers(1, largest, len(requant.mul)))
        requant = replace(requant, mul=drawn)
    else:
        requant = replace(requant, shift=requant.shift + 1)
    changed: Layer = replace(layer, weight=weight, bias=bias, requant=requant)
    return changed


def drawn_for(core: Accelerator, seed: int) -> Layer:
    rng = np.random.default_rng(seed)
    if core.name == "neureka":
        return random_neureka_layer(rng, "l", 20)
    if core.name == "digital":
        return random_layer(rng, OPS[seed % len(OPS)], largest=20)
    return random_cluster_layer(rng, "l")


@pytest.mark.parametrize(
    ("soc", "name"),
    [(SNITCH_ITA, "cluster"), (SIRACUSA, "cluster"), (SIRACUSA, "neureka"), (DIANA, "digital")],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_what_a_core_leaves_out_does_not_count(soc: Any, name: str) -> None:
    """Layers whose numbers are drawn anew have equal cycles in all tiles, if their keys are."""
    core, rng, equal, other = soc.accelerator(name), np.random.default_rng(8), 0, 0
    budgets = replace(OPTIONS, l1_budget=64 << 10)
    limited = 0
    for seed in range(60):
        layer: Any = drawn_for(core, seed)
        if not hasattr(layer, "weight") or not isinstance(layer.requant, MulShift | Shift):
            continue
        changed = redrawn(rng, layer, 1 << 7 + 12 * (seed % 2))
        if not (core.judge(soc, layer) and core.judge(soc, changed)):
            continue
        own, key = modelled(core, layer, soc, OPTIONS), core.counts(soc, layer, OPTIONS)
        if key == core.counts(soc, changed, OPTIONS):
            assert own == modelled(core, changed, soc, OPTIONS), layer
            equal += 1
        else:
            other += own != modelled(core, changed, soc, OPTIONS)
        if key == core.counts(soc, layer, budgets):
            assert own == modelled(core, layer, soc, budgets), layer
            limited += 1
    assert equal > 5 and limited > 5
    # DIANA's digital core reads no numbers at all.
    assert name == "digital" or other > 0


def test_weights_are_priced_by_their_own_numbers() -> None:
    """N-EUREKA takes longer with biases, which take no room in the weight memory."""
    core: Any = SIRACUSA.accelerator("neureka")
    layers = [
        conv2d_layer(
            "t", Tensor("x", (28, 24, 24)), "y", np.ones((28, 28, 3, 3), np.int8), bias,
            pad=(1, 1, 1, 1), requant=MulShift((3,), (10,), (0,)),
        )
        for bias in (None, np.full(28, 100, np.int32))
    ]  # fmt: skip
    own = [Cost(SIRACUSA, OPTIONS).best_cycles(core.keeping("SRAM"), each) for each in layers]
    assert own[0] != own[1] and core.kept_bytes(layers[0]) == core.kept_bytes(layers[1])
    both = Cost(SIRACUSA, OPTIONS)
    assert [both.best_cycles(core.keeping("SRAM"), each) for each in layers] == own
