"""Layers whose operands stay in L1 are computed in ranges of rows, so that the cores clip one range
while N-EUREKA computes the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.layers import Convolution, MulShift, Tensor, conv2d_layer, depthwise_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.siracusa.description import SIRACUSA
from tests.byoc_dory.neureka_cases import evaluate
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_native import check
from tests.reference.matrix_layers import stored


def chain(seed: int, clip: tuple[int, int] = (0, 127)) -> list[Convolution]:
    """Three layers with sums around the middle of the bytes; the second stays in L1."""
    rng = np.random.default_rng(seed)
    x = Tensor("x", (int(rng.integers(8, 40)), 26, 17), "int8", "NHWC")
    found: list[Convolution] = []
    for number, kind in enumerate(rng.permutation(["depthwise", "conv1x1", "conv3x3"])):
        channels, side = x.shape[0], 1 if kind == "conv1x1" else 3
        outputs = channels if kind == "depthwise" else int(rng.integers(8, 70))
        deep = 1 if kind == "depthwise" else channels
        weight = rng.integers(-128, 128, (outputs, deep, side, side)).astype(np.int8)
        make = depthwise_layer if kind == "depthwise" else conv2d_layer
        layer = make(
            f"l{number}", x, f"t{number}", weight, None, pad=(side // 2,) * 4, clip=clip,
            requant=MulShift((1,), (int(np.log2(90.0 * weight[0].size**0.5)),), (0,)),
        )  # fmt: skip
        x = replace(layer.output, layout="NHWC")
        layer = replace(layer, output=x)
        assert isinstance(layer, Convolution)
        found.append(layer)
    return found


@pytest.mark.parametrize("sanitize", [False, True])
def test_regions_in_ranges_of_rows(sanitize: bool, tmp_path: Path) -> None:
    cases = []
    for seed in range(6):
        layers = chain(100 * sanitize + seed)
        region = Region(f"r{seed}", tuple(layers), layers[0].inputs, (layers[-1].output,))
        code = generate(region, Cost(SIRACUSA, TilingOptions()), f"r{seed}", "neureka")
        plan = code.plan.layers[1]
        assert plan.resident_inputs == (True,)
        assert plan.resident_output
        assert plan.solution.tile.y < 26
        assert plan.solution.tile.k == layers[1].K
        x = np.random.default_rng(seed).integers(-128, 128, layers[0].inputs[0].shape, np.int8)
        values = x
        for layer in layers:
            values = evaluate(layer, values)
        assert 0.2 < float((values == 0).mean()) < 0.9
        cases.append(Case(code, (stored(x),), (stored(values),)))
    check(cases, tmp_path, sanitize)


def test_nothing_is_split_that_the_engine_completes_itself() -> None:
    layers = chain(3, clip=(-128, 127))
    region = Region("r", tuple(layers), layers[0].inputs, (layers[-1].output,))
    code = generate(region, Cost(SIRACUSA, TilingOptions()), "r", "neureka")
    assert code.plan.layers[1].solution.tile.y == 26
