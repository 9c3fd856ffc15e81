"""What N-EUREKA refuses, and that it says which value it is; what it takes at the limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    conv2d_layer,
)
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_layer import Factors, factors_of
from byoc_dory.verdict import Accepted, Refused
from tests.soc.rule_cases import NEUREKA as NEUREKA_CASES

LOCAL = replace(NEUREKA, weight_memory="")


def conv(
    side: int = 3,
    pad: tuple[int, int, int, int] = (1, 1, 1, 1),
    size: int = 14,
    weight: int = 1,
    shift: int = 4,
    dtype: str = "int8",
    result: str = "int8",
    **more: Any,
) -> Layer:
    weights = np.full((8, 4, side, side), weight, np.int8)
    more.setdefault("requant", Shift(shift))
    clip = more.pop("clip", (-128, 127) if result == "int8" else (0, 255))
    layer = conv2d_layer(
        "conv", Tensor("x", (4, size, size), dtype), "y", weights, more.pop("bias", None), pad=pad,
        clip=clip, **more,
    )  # fmt: skip
    return replace(layer, output=replace(layer.output, dtype=result))


def bias(value: int) -> np.ndarray:
    return np.full(8, value, np.int32)


@pytest.mark.parametrize("rule", NEUREKA_CASES)
def test_takes_the_same_with_weights_in_l1(rule: str) -> None:
    for make in NEUREKA_CASES[rule].takes:
        assert isinstance(LOCAL.judge(SIRACUSA, make()), Accepted), LOCAL.judge(SIRACUSA, make())


def test_the_cores_take_what_it_takes_in_the_same_scheme() -> None:
    assert NEUREKA.scheme == CLUSTER_CORES.scheme
    assert NEUREKA.family == CLUSTER_CORES.family and NEUREKA.l1 == CLUSTER_CORES.l1


def test_weights_too_large_for_their_memory_must_fit_l1_with_a_tile() -> None:
    sizes = {"SRAM": 1024, "MRAM": 512}
    memories = tuple(replace(m, size=sizes.get(m.name, m.size)) for m in SIRACUSA.memories)
    small = replace(SIRACUSA, memories=memories)
    weights = np.random.default_rng(0).integers(-128, 128, (8, 4, 3, 3)).astype(np.int8)
    layer = conv2d_layer("conv", Tensor("x", (4, 9, 9)), "y", weights, None, requant=Shift(9))
    assert isinstance(NEUREKA.judge(small, layer), Accepted)
    assert isinstance(LOCAL.judge(small, layer), Accepted)
    # One word of 32 B for each of 8 planes and 8 output channels.
    l1 = tuple(replace(m, size=2000) if m.name == "L1" else m for m in memories)
    verdict = NEUREKA.judge(replace(small, memories=l1), layer)
    assert isinstance(verdict, Refused), verdict
    assert "2048 B, SRAM has 1024, MRAM has 512; loaded into L1, the smallest" in verdict.reason


def factors(layer: Layer) -> Factors:
    found = factors_of(layer)  # type: ignore[arg-type]
    assert isinstance(found, Factors), found
    return found


def test_biases_become_part_of_the_engines() -> None:
    found = factors(conv(bias=bias(7), requant=MulShift((3,), (5,), (16,))))
    assert found.bias.tolist() == [7 * 3 + 16] * 8
    assert found.biased and found.scale_bytes == 1 and not found.shift_per_channel


def test_scales_take_the_fewest_bytes() -> None:
    assert factors(conv(requant=MulShift((255,), (9,)))).scale_bytes == 1
    assert factors(conv(requant=MulShift((256,), (9,)))).scale_bytes == 4
    # Negative ones need the 32 bits that a bias brings along.
    negative = factors(conv(requant=MulShift((-1,), (9,))))
    assert negative.scale_bytes == 4 and negative.biased


def test_shifts_are_per_channel_only_if_they_differ() -> None:
    assert not factors(conv(requant=MulShift((1,) * 8, (9,) * 8, (0,) * 8))).shift_per_channel
    assert factors(conv(requant=MulShift((1,) * 8, (*(9,) * 7, 8), (0,) * 8))).shift_per_channel


@pytest.mark.parametrize(
    ("dtype", "clip", "result", "wanted"),
    [
        ("int8", (-128, 127), "int8", (True, False)),
        ("int8", (0, 127), "int8", (True, True)),
        ("int8", (0, 255), "uint8", (False, False)),
        # Results that are never negative need no ReLU.
        ("uint8", (0, 127), "int8", (True, False)),
    ],
)
def test_relu_is_left_to_the_cores_where_results_are_signed(
    dtype: str, clip: tuple[int, int], result: str, wanted: tuple[bool, bool]
) -> None:
    small = dtype == "uint8"
    found = factors(conv(dtype=dtype, clip=clip, result=result, weight=1 if small else 50, shift=8))
    assert (found.signed, found.relu) == wanted
