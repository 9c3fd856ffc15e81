"""What N-EUREKA refuses, and that it says which value it is; what it takes at the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    TfliteRequant,
    add_layer,
    conv2d_layer,
    depthwise_layer,
    gemm_layer,
    matrix,
)
from byoc_dory.layers.rowwise import TableMap
from byoc_dory.soc.siracusa.cluster import CLUSTER_CORES
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_factors import Factors, factors_of
from byoc_dory.verdict import Accepted, Refused

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


def depthwise(side: int, stride: int) -> Layer:
    weights = np.ones((4, 1, side, side), np.int8)
    source = Tensor("x", (4, 14, 14))
    return depthwise_layer("dw", source, "y", weights, None, stride=(stride,) * 2, requant=Shift(4))


def product(**more: Any) -> Layer:
    weight = np.ones((6, 5), np.int8)
    return gemm_layer("gemm", matrix("x", 7, 5), weight, None, requant=Shift(4), **more)


def total() -> Layer:
    return add_layer("add", matrix("x", 2, 2), matrix("z", 2, 2), "y", requant=Shift(1))


def with_weights(dtype: type) -> Layer:
    layer = conv()
    return replace(layer, weight=layer.weight.astype(dtype))  # type: ignore[attr-defined]


def wide(inputs: int, outputs: int) -> Layer:
    """A product with this many channels."""
    weight = np.ones((outputs, inputs), np.int8)
    return gemm_layer("gemm", matrix("x", 1, inputs), weight, None, requant=Shift(20))


def tall() -> Layer:
    weight = np.ones((1, 1, 1, 1), np.int8)
    return conv2d_layer("conv", Tensor("x", (1, 65536, 1)), "y", weight, None, requant=Shift(4))


def bias(value: int) -> np.ndarray:
    return np.full(8, value, np.int32)


ONE = MulShift((1,), (4,), (0,))


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: total(), "add"),
        (lambda: conv(dtype="int16"), "int16"),
        (lambda: with_weights(np.int16), "the weights are int16"),
        (lambda: product(transposed=False, dtype="int32"), "int32"),
        (lambda: conv(side=5, pad=(2, 5, 2, 2)), "2, 5, 2, 2"),
        (lambda: depthwise(1, 1), "1x1, depthwise"),
        (lambda: conv(stride=(2, 2), pad=(1, 3, 1, 1)), "1, 3, 1, 1"),
        (lambda: depthwise(3, 3), "3x3, depthwise"),
        (lambda: conv(pad=(3, 0, 0, 0)), "3, 0, 0, 0"),
        (lambda: conv(pad=(0, 0, 2, 0)), "0, 0, 2, 0"),
        (lambda: conv(pad=(0, 0, 0, 2)), "0, 0, 0, 2"),
        (lambda: conv(side=1, pad=(1, 0, 0, 0)), "1, 0, 0, 0"),
        (lambda: product(transposed=True), "column by column"),
        (lambda: product(function=TableMap(np.arange(256, dtype=np.uint8))), "TableMap"),
        (lambda: conv(requant=TfliteRequant((1,), (0,))), "TfliteRequant"),
        (lambda: conv(shift=32), "32, not in 0..31"),
        (lambda: conv(requant=replace(ONE, mul=(2**31,))), "a factor is 2147483648, more than 32"),
        (lambda: conv(requant=replace(ONE, mul=(-(2**31) - 1,))), "a factor is -2147483649"),
        (lambda: conv(requant=MulShift((1,) * 7 + (2**40,), (4,) * 8, (0,) * 8)), "1099511627776"),
        (lambda: wide(65536, 1), "there are 65536 input channels, more than 65535"),
        (lambda: wide(1, 65536), "there are 65536 output channels, more than 65535"),
        (lambda: tall(), "there are 65536 rows, more than 65535"),
        # 9 taps x 4 channels x 127 x -128, times 4000.
        (lambda: conv(weight=127, requant=replace(ONE, mul=(4000,), add=(1,))), "-2340864000"),
        # 36 x -128 and the bias together, though each fits.
        (lambda: conv(bias=bias(-(2**31) + 100), requant=ONE), "-2147488156"),
        (lambda: conv(bias=bias(2**30), requant=replace(ONE, mul=(2,))), "2147483648"),
        (lambda: conv(clip=(-5, 100)), "[-5, 100] for int8"),
        (lambda: conv(clip=(0, 127), result="uint8"), "[0, 127] for uint8"),
    ],
)  # fmt: skip
def test_refusals_name_the_value(make: Callable[[], Layer], value: str) -> None:
    verdict = NEUREKA.judge(SIRACUSA, make())
    assert isinstance(verdict, Refused) and value in verdict.reason, verdict


@pytest.mark.parametrize(
    "make",
    [
        lambda: conv(),
        lambda: conv(pad=(2, 2, 1, 1)),
        lambda: conv(pad=(2, 2, 2, 2), size=4),
        lambda: conv(dtype="uint8", result="uint8"),
        lambda: conv(side=1, pad=(0, 0, 0, 0), stride=(2, 3)),
        lambda: conv(stride=(2, 2)),
        lambda: conv(stride=(2, 2), pad=(0, 0, 1, 1), size=96),
        # The cores copy windows.
        lambda: conv(side=5, pad=(2, 4, 2, 2)),
        lambda: conv(stride=(2, 1)),
        lambda: conv(stride=(3, 3)),
        lambda: conv(stride=(2, 2), size=13),
        lambda: conv(stride=(2, 2), pad=(1, 2, 1, 1)),
        lambda: conv(clip=(0, 127)),
        lambda: depthwise(3, 1),
        lambda: depthwise(3, 2),
        lambda: product(),
        # Without a bias, products may have 64 bits.
        lambda: conv(weight=127, requant=replace(ONE, mul=(4000,), shift=(31,))),
        # No sum of bytes that are not negative is: 36 x 255 >> 8 is at most 35.
        lambda: conv(dtype="uint8", shift=8, clip=(-1, 40)),
        lambda: conv(dtype="uint8", shift=8, clip=(0, 35), result="uint8"),
    ],
)
@pytest.mark.parametrize("core", [NEUREKA, LOCAL])
def test_what_it_takes(make: Callable[[], Layer], core: Any) -> None:
    assert isinstance(core.judge(SIRACUSA, make()), Accepted), core.judge(SIRACUSA, make())


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


def test_weight_bits_that_the_engine_lacks() -> None:
    """An engine of fewer bits leaves wider weights to others, and says how many they need."""
    narrow = replace(NEUREKA, max_weight_bits=4)
    weights = np.arange(-8, 8).astype(np.int8).reshape(4, 4, 1, 1)
    layer = conv2d_layer("conv", Tensor("x", (4, 9, 9)), "y", weights, None, requant=Shift(9))
    assert isinstance(narrow.judge(SIRACUSA, layer), Accepted)
    verdict = narrow.judge(SIRACUSA, replace(layer, weight=2 * weights))
    assert isinstance(verdict, Refused)
    assert "weights from -16 to 14 need 5 bits" in verdict.reason and "at most 4" in verdict.reason
