"""What the analog core takes, and what it says to the rest, with the value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.layers import (
    AnalogRequant,
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.verdict import Accepted, Refused
from tests.byoc_dory.analog import random_analog_layer, ternary

CORE = DIANA.accelerator("analog")
FACTORS = AnalogRequant(16, (100,) * 8, (0,) * 8, 5, 1152)
RNG = np.random.default_rng(3)


def conv(**changes: Any) -> Layer:
    weight = ternary(RNG, 8, 4, 3, 3)
    layer = conv2d_layer(
        "l", Tensor("x", (4, 9, 9)), "y", weight, None, pad=(1, 1, 1, 1), requant=FACTORS
    )
    return replace(layer, **{"input_range": (-64, 63), **changes})


def verdict(layer: Layer) -> Refused:
    result = CORE.judge(DIANA, layer)
    assert isinstance(result, Refused)
    return result


def spoiled(value: int) -> np.ndarray:
    weight = ternary(RNG, 8, 4, 3, 3)
    weight[3, 2, 1, 0] = value
    return weight


@pytest.mark.parametrize(
    ("changes", "reason", "rule"),
    [
        ({"inputs": (Tensor("x", (4, 9, 9), "uint8"),)}, "'x' is uint8", "are int8"),
        ({"output": Tensor("y", (8, 9, 9), "int16")}, "'y' is int16", "are int8"),
        ({"weight": spoiled(1).astype(np.int16)}, "the weights are int16", "are int8"),
        ({"weight": spoiled(5)}, "a weight is 5", "weights are -1, 0 and 1"),
        ({"weight": spoiled(-2)}, "a weight is -2", "weights are -1, 0 and 1"),
        ({"input_range": (-128, 127)}, "lies in [-128, 127]", "lie in [-64, 63]"),
        ({"input_range": (0, 64)}, "lies in [0, 64], which has more than 7 bits", "[-64, 63]"),
        ({"requant": Shift(3)}, "the requantization is Shift", "the converter"),
        ({"bias": np.array([0, 0, 7, 0, 0, 0, 0, 0], np.int32)}, "a bias is 7", "the converter"),
        ({"requant": replace(FACTORS, gain=12)}, "the gain is 12", "power of two"),
        ({"requant": replace(FACTORS, gain=1 << 16)}, "the gain is 65536", "power of two"),
        ({"requant": replace(FACTORS, adc=(-16, 15))}, "a pass is clipped to [-16, 15]", "[-32,"),
        ({"requant": replace(FACTORS, rows=27)}, "a pass sums 3 channels, not 4", "1152 rows"),
        ({"requant": replace(FACTORS, mul=(40_000,))}, "a factor is 40000", "16 bits"),
        ({"requant": replace(FACTORS, add=(0, -32_769))}, "2 summands for 8", "16 bits"),
        ({"requant": replace(FACTORS, add=(-32_769,))}, "a summand is -32769", "16 bits"),
        ({"requant": replace(FACTORS, shift=32)}, "the shift is 32", "0 to 31"),
        ({"clip": (-127, 127)}, "the clip range is [-127, 127]", "7 or 8 bits"),
        ({"clip": (0, 31)}, "the clip range is [0, 31]", "7 or 8 bits"),
    ],
)
def test_refusals_name_the_value(changes: dict[str, Any], reason: str, rule: str) -> None:
    refused = verdict(conv(**changes))
    assert reason in refused.reason
    assert rule in refused.rule


def test_operators_and_geometry() -> None:
    x = Tensor("x", (8, 20, 20))
    depthwise = depthwise_layer("l", x, "y", ternary(RNG, 8, 1, 3, 3), None, requant=FACTORS)
    assert verdict(depthwise).reason == "the operator is depthwise"
    assert verdict(add_layer("l", x, x, "y", requant=Shift(1))).reason == "the operator is add"
    for kernel, stride, reason in (((8, 1), 1, "kernel is 8x1"), ((3, 3), 3, "stride is 3x3")):
        layer = conv2d_layer(
            "l", x, "y", ternary(RNG, 8, 8, *kernel), None,
            stride=(stride, stride), requant=FACTORS,
        )  # fmt: skip
        assert reason in verdict(replace(layer, input_range=(0, 63))).reason


def test_too_many_passes_for_sixteen_bits() -> None:
    weight = np.zeros((1, 24_000, 7, 7), np.int8)
    one = replace(FACTORS, mul=(1,), add=(0,))
    layer = conv2d_layer("l", Tensor("x", (24_000, 7, 7)), "y", weight, None, requant=one)
    assert "1044 passes" in verdict(replace(layer, input_range=(0, 63))).reason


def test_more_passes_than_there_may_be() -> None:
    weight = ternary(RNG, 1, 200, 1, 1)
    one = replace(FACTORS, mul=(1,), add=(0,))
    layer = conv2d_layer("l", Tensor("x", (20_000, 1, 1)), "y", np.tile(weight, (1, 100, 1, 1)),
                         None, requant=one)  # fmt: skip
    found = verdict(replace(layer, input_range=(0, 63)))
    assert found.reason == "20000 rows take 18 passes"


@pytest.mark.parametrize("clip", [(-128, 127), (0, 127), (-64, 63), (0, 63)])
@pytest.mark.parametrize("known", [(-64, 63), (0, 63), (-3, 5)])
def test_ranges_it_takes(clip: tuple[int, int], known: tuple[int, int]) -> None:
    assert CORE.judge(DIANA, conv(clip=clip, input_range=known)) == Accepted()


@pytest.mark.parametrize("seed", range(30))
def test_random_layers_are_taken(seed: int) -> None:
    layer = random_analog_layer(np.random.default_rng(seed), "l")
    assert CORE.judge(DIANA, layer) == Accepted()


def test_a_zero_bias_is_none() -> None:
    assert CORE.judge(DIANA, conv(bias=np.zeros(8, np.int32))) == Accepted()


def test_the_digital_core_does_not_take_it() -> None:
    refused = DIANA.accelerator("digital").judge(DIANA, conv())
    assert isinstance(refused, Refused)
    assert "AnalogRequant" in refused.reason
    assert dense_layer(
        "l", Tensor("x", (4,)), "y", ternary(RNG, 8, 4), None, requant=FACTORS
    ).op == "dense"  # fmt: skip
