"""What the analog core takes, and what it says to the rest, with the value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.layers import (
    AnalogRequant,
    Layer,
    Tensor,
    conv2d_layer,
)
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.verdict import Accepted
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
