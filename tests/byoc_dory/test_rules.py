"""What the digital core takes and why it refuses the rest."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError, TilingError, UnsupportedError
from byoc_dory.layers import (
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.generic.description import GENERIC
from byoc_dory.verdict import Accepted, Refused
from tests.byoc_dory.layers import NETWORKS, OPS, random_layer
from tests.byoc_dory.program import region_of

CORE = DIANA.accelerator("digital")


def conv(shape=(4, 8, 8), k=8, f=(3, 3), **kwargs) -> Layer:
    weight = np.ones((k, shape[0], *f), np.int8)
    kwargs.setdefault("requant", Shift(4))
    return conv2d_layer("c", Tensor("x", shape), "y", weight, None, **kwargs)


@pytest.mark.parametrize("op", OPS)
def test_accepts_what_it_executes(op: str) -> None:
    for seed in range(40):
        layer = random_layer(np.random.default_rng([seed, 17]), op)
        assert isinstance(CORE.judge(DIANA, layer), Accepted)


@pytest.mark.parametrize("network", NETWORKS)
def test_accepts_the_benchmark_networks(network: str) -> None:
    for layer in NETWORKS[network]():
        assert isinstance(CORE.judge(DIANA, layer), Accepted), layer.name


def test_first_objection_wins() -> None:
    layer = conv(stride=(3, 3), clip=(0, 6))
    verdict = CORE.judge(DIANA, layer)
    assert isinstance(verdict, Refused) and "stride" in verdict.reason


# ---------------------------------------------------------------------- errors of generate


def options(**kwargs) -> TilingOptions:
    return TilingOptions(**kwargs)


def test_refused_layer_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"stride is 3x3.*layer 'c'.*1x1 or 2x2"):
        generate(region_of(conv(stride=(3, 3)), "r", "NHWC"), Cost(DIANA, options()), "p")


def test_unknown_objective_lists_the_known() -> None:
    with pytest.raises(TargetError, match=r"'best'.*array.*paper.*none"):
        generate(region_of(conv(), "r", "NHWC"), Cost(DIANA, options(objective="best")), "p")


def test_soc_without_accelerator() -> None:
    with pytest.raises(TargetError, match="no accelerator"):
        generate(region_of(conv(), "r", "NHWC"), Cost(GENERIC, options()), "p")


@pytest.mark.parametrize("solver", ["milp", "exhaustive"])
@pytest.mark.parametrize(
    ("layer", "demand"),
    [
        # One row of 4 columns and 4 channels in 16 B pitch; 16 maps of 16 B.
        (conv((4, 8, 8)), r"k=1, c=4, y=1, x=4.*needs 448 B of L1 \(input 192, output 256\)"),
        (
            depthwise_layer(
                "d", Tensor("x", (4, 8, 8)), "y", np.ones((4, 1, 3, 3), np.int8), None,
                requant=Shift(4),
            ),
            r"needs 304 B of L1 \(input 48, output 256\)",
        ),
        (
            dense_layer(
                "f", Tensor("x", (150,)), "y", np.ones((40, 150), np.int8), None, requant=Shift(4)
            ),
            r"k=16, c=150.*needs 176 B of L1 \(input 160, output 16\)",
        ),
        (
            add_layer(
                "a", Tensor("x", (2, 3, 40)), Tensor("z", (2, 3, 40)), "y", requant=Shift(0)
            ),
            r"needs 144 B of L1 \(input 96, output 48\)",
        ),
    ],
    ids=["conv2d", "depthwise", "dense", "add"],
)  # fmt: skip
def test_infeasible_names_demand_limit_and_levers(layer: Layer, demand: str, solver) -> None:
    chosen = options(l1_budget=100, solver=solver)
    with pytest.raises(TilingError, match=demand) as caught:
        generate(region_of(layer, "r", "NHWC"), Cost(DIANA, chosen), "p")
    assert "limit is 100 B" in str(caught.value)
    assert f"'{layer.name}'" in caught.value.where
    assert "L1 budget" in caught.value.hint


def test_smallest_tile_at_its_own_demand() -> None:
    """One byte below the smallest tile's demand fails, exactly the demand succeeds."""
    layer = conv((4, 8, 8))
    region = region_of(layer, "r", "NHWC")
    with pytest.raises(TilingError):
        generate(region, Cost(DIANA, options(l1_budget=447)), "p")
    code = generate(region, Cost(DIANA, options(l1_budget=448)), "p")
    (kernel,) = (k for k in code.kernels if k.solution is not None)
    assert kernel.solution is not None
    # All tiles of up to 16 maps need the same; the largest is taken.
    assert (kernel.solution.tile.k, kernel.solution.l1_in + kernel.solution.l1_out) == (8, 448)
