"""Keys under which results are shared have everything that the results depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.layers import Layer, MulShift, Tensor, conv2d_layer
from byoc_dory.layers.value import value_of
from byoc_dory.options import TilingOptions
from byoc_dory.plan import alone
from byoc_dory.planning import plan_region
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.diana.digital import DigitalAccelerator
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.tiling.problem import solution_of
from tests.byoc_dory.layers import random_layer
from tests.byoc_dory.program import region_of
from tests.byoc_dory.snitch_cases import random_cluster_layer

OPTIONS = TilingOptions()


@dataclass(frozen=True)
class Uneven(DigitalAccelerator):
    """Rows but the first take as long as the largest weight: the smallest tiles tell nothing."""

    def plan_cost(self, layer: Layer, plan: Any, soc: Any, options: Any, known: Any = None) -> int:
        own = super().plan_cost(layer, plan, soc, options, known)
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
        assert plan.cycles == core.plan_cost(layer, plan.layers[0], DIANA, OPTIONS)


def test_names_are_no_part_of_a_key() -> None:
    layer = weighted(np.random.default_rng(5), 3)
    source, output = (replace(each, name=f"other_{each.name}") for each in
                      (layer.inputs[0], layer.output))  # fmt: skip
    other = replace(layer, name="other", inputs=(source,), output=output)
    cost = Cost(DIANA, OPTIONS)
    assert cost.alike(DIGITAL, layer) == cost.alike(DIGITAL, other)


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
    published = cost.under(replace(OPTIONS, schedule="published"))
    assert cost.alike(DIGITAL, layer) != published.alike(DIGITAL, layer)


@pytest.mark.parametrize("soc", [SNITCH_ITA, SIRACUSA], ids=lambda soc: soc.name)
def test_what_the_cores_leave_out_does_not_count(soc: Any) -> None:
    """Layers whose numbers are drawn anew have equal cycles in all tiles, if their keys are."""
    core, rng, equal, other = soc.accelerator("cluster"), np.random.default_rng(8), 0, 0
    for seed in range(60):
        layer: Any = random_cluster_layer(np.random.default_rng(seed), "l")
        if not hasattr(layer, "weight") or not isinstance(layer.requant, MulShift):
            continue
        requant = layer.requant
        drawn = tuple(
            int(each) for each in rng.integers(1, 1 << 7 + 12 * (seed % 2), len(requant.mul))
        )
        changed = replace(
            layer,
            weight=rng.integers(-128, 128, layer.weight.shape).astype(np.int8),
            requant=replace(requant, mul=drawn),
        )
        if not (core.judge(layer, soc) and core.judge(changed, soc)):
            continue
        problem = core.tiling_problem(layer, soc, OPTIONS)
        costs = []
        for each in (layer, changed):
            found = []
            for tile in (problem.smallest, problem.whole):
                plan = alone(each, solution_of(problem, tile), core.name, problem)
                found += [
                    core.plan_cost(each, replace(plan, buffers=n), soc, OPTIONS) for n in (1, 2)
                ]
            costs.append(found)
        if core.counts(layer, soc, OPTIONS) == core.counts(changed, soc, OPTIONS):
            assert costs[0] == costs[1], layer
            equal += 1
        else:
            other += costs[0] != costs[1]
    assert equal > 5 and other > 0


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
    own = [Cost(SIRACUSA, OPTIONS).best(core.keeping("SRAM"), each) for each in layers]
    assert own[0] != own[1] and core.kept_bytes(layers[0]) == core.kept_bytes(layers[1])
    both = Cost(SIRACUSA, OPTIONS)
    assert [both.best(core.keeping("SRAM"), each) for each in layers] == own
