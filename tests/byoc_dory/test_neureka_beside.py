"""Sums that the cores compute beside N-EUREKA: the results, the plans, and the order of layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.layers import (
    Add,
    Convolution,
    Layer,
    MulShift,
    Tensor,
    add_layer,
    conv2d_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.siracusa.description import SIRACUSA
from tests.byoc_dory.neureka_cases import evaluate
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_native import check
from tests.reference.matrix_layers import stored

BOTH = (-128, 127)


def conv(name: str, x: Tensor, k: int, side: int, clip: tuple[int, int], seed: int) -> Convolution:
    """A convolution of which most results are inside the limits."""
    rng = np.random.default_rng([seed, k, side])
    weight = rng.integers(-128, 128, (k, x.shape[0], side, side)).astype(np.int8)
    requant = MulShift((1,), (int(np.log2(60.0 * weight[0].size ** 0.5)),), (0,))
    layer = conv2d_layer(
        name, x, f"{name}.out", weight, None, pad=(side // 2,) * 4, requant=requant, clip=clip
    )
    layer = replace(layer, output=replace(layer.output, layout="NHWC"))
    assert isinstance(layer, Convolution)
    return layer


def add(name: str, a: Tensor, b: Tensor, clip: tuple[int, int]) -> Add:
    """A sum with a factor of 1.25 / 2."""
    layer = add_layer(name, a, b, f"{name}.out", requant=MulShift((5,), (3,), (4,)), clip=clip)
    return replace(layer, output=replace(layer.output, layout="NHWC"))


def block(seed: int, *, last: bool = False) -> list[Layer]:
    """A block of a residual network: its sum is the last layer, or read by a further one."""
    rng = np.random.default_rng([seed, 5])
    c, k = (int(rng.integers(4, 40)) for _ in range(2))
    x = Tensor("x", (c, int(rng.integers(14, 32)), int(rng.integers(5, 32))), "int8", "NHWC")
    clip = (0, 127) if seed % 3 == 0 else BOTH
    first = conv("first", x, k, 1, BOTH, seed)
    long = conv("long", first.output, k, 3, clip, seed)
    short = conv("short", first.output, k, 1, BOTH, seed)
    total = add("total", *rng.permutation([long.output, short.output]), (0, 127))  # type: ignore[arg-type]
    layers: list[Layer] = [first, long, short, total]
    return layers if last else [*layers, conv("after", total.output, 8, 1, BOTH, seed)]


def code_of(layers: list[Layer], name: str, budget: int | None = None) -> RegionCode:
    homes = tuple("cluster" if isinstance(layer, Add) else "neureka" for layer in layers)
    region = Region(name, tuple(layers), layers[0].inputs, (layers[-1].output,), homes=homes)
    return generate(region, Cost(SIRACUSA, TilingOptions(l1_budget=budget)), name)


def results(layers: list[Layer], x: np.ndarray) -> dict[str, np.ndarray]:
    values = {"x": x}
    for layer in layers:
        if isinstance(layer, Add):
            a, b = (values[tensor.name].astype(np.int64) for tensor in layer.inputs)
            found = np.clip(((a + b) * 5 + 4) >> 3, *layer.clip).astype(np.int8)
        else:
            found = evaluate(layer, values[layer.inputs[0].name])
        values[layer.output.name] = found
    return values


@pytest.mark.parametrize("sanitize", [False, True])
def test_sums_beside_the_engine(sanitize: bool, tmp_path: Path) -> None:
    cases, beside = [], 0
    for seed in range(8):
        layers = block(20 * sanitize + seed, last=seed % 2 == 1)
        budget = None if seed < 6 else 30_000
        code = code_of(layers, f"r{seed}", budget)
        assert code.plan is not None
        beside += any(plan.follower is not None for plan in code.plan.layers)
        x = np.random.default_rng(seed).integers(-128, 128, layers[0].inputs[0].shape, np.int8)
        wanted = results(layers, x)[layers[-1].output.name]
        assert len(np.unique(wanted)) > 50
        cases.append(Case(code, (stored(x),), (stored(wanted),)))
    assert beside >= 4
    check(cases, tmp_path, sanitize)


def test_the_longest_operand_comes_last_and_computes_the_sum() -> None:
    layers = block(1)
    code = code_of(layers, "r")
    plan = code.plan
    assert plan is not None
    order = [kernel.layer_name for kernel in code.kernels if kernel.kind == "layer"]
    assert order == ["first", "short", "long", "total", "after"]
    first, short, long, total, after = plan.layers
    assert long.follower is not None and long.follower.layer.name == "total"
    assert long.follower.plan == total and total.ahead
    assert long.solution.tile.y < layers[1].oy and plan.saved_cycles > 0
    assert not any(each.ahead or each.follower for each in (first, short, after))
    # The sum and its table are in L1 while its operand is computed.
    there = {entry.tensor: (entry.first, entry.last) for entry in plan.l1_map}
    assert there["total.out"][0] == 2
    places = [entry for entry in plan.l1_map if entry.first <= 2 <= entry.last]
    places.sort(key=lambda entry: entry.offset)
    for one, other in zip(places, places[1:], strict=False):
        assert one.offset + one.bytes <= other.offset
    texts = {kernel.layer_name: kernel.source for kernel in code.kernels}
    assert "cluster_run(cluster_add, &sum)" in texts["long"]
    assert "cluster_run" not in texts["total"]


def test_layers_run_one_after_another_where_l1_has_no_room_for_both() -> None:
    layers = block(2)
    plan = code_of(layers, "r", 12_000).plan
    assert plan is not None and plan.l1_peak <= 12_000
    assert not any(each.ahead or each.follower for each in plan.layers)
