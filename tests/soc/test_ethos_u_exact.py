"""Requantizations on the Ethos-U: every sum of a layer becomes what its source makes of it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest

from byoc_dory.layers import (
    Array,
    Layer,
    MulShift,
    OnnxRequant,
    Shift,
    Tensor,
    TorchRequant,
    conv2d_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.ethos_u.check import ProgramCheck
from byoc_dory.soc.ethos_u.exact import Fractions, Scaling, parts_of, scaling_of
from byoc_dory.soc.registry import resolve
from htvm.firmware.host import model_library
from patterns.ops.onnxruntime.rounding import float_scale

SEEDS = range(12)
Requant: TypeAlias = OnnxRequant | TorchRequant | MulShift | Shift


def factors(rng: np.random.Generator, kind: str, k: int) -> Requant:
    """Factors of about 2**-8, some of which are powers of two; zero points."""
    if kind == "floors":
        if rng.integers(0, 2):
            return Shift(int(rng.integers(0, 11)))
        bits = tuple(int(rng.integers(8, 20)) for _ in range(k))
        products = tuple(int(rng.integers(1, 1 << max(each - 6, 1))) for each in bits)
        addends = tuple(int(rng.integers(-(1 << each), 1 << each)) for each in bits)
        return MulShift(products, bits, addends)
    zeros = int(rng.integers(-128, 128)), (int(rng.integers(-128, 128)),)
    shifts = tuple(int(rng.integers(30, 33)) for _ in range(k))
    large = rng.integers(1 << 23, 1 << 24, k)
    powers = rng.integers(0, 2, k).astype(bool) & (rng.integers(0, 2) == 0)
    multipliers = tuple(np.where(powers, 1 << 23, large).tolist())
    if kind == "onnxruntime":
        return OnnxRequant(multipliers, shifts, *zeros)
    addends = tuple(rng.integers(-(1 << 23), 1 << 23, k).tolist())
    return TorchRequant(multipliers, shifts, addends, *zeros)


def zero_of(requant: Requant) -> int:
    """The zero point of a result; floors have none."""
    return getattr(requant, "output_zero_point", 0)


def tied(seed: int) -> Layer:
    """One factor of 0.004: float32 makes ties of products in the lower part of each power of 2."""
    rng = np.random.default_rng(seed)
    mantissa, shift = float_scale(0.004)
    return conv2d_layer(
        "layer", Tensor("x", (8, 4, 4)), "y",
        rng.integers(-127, 128, (3, 8, 1, 1)).astype(np.int8),
        rng.integers(-500, 500, 3).astype(np.int32),
        requant=OnnxRequant((mantissa,) * 3, (shift,) * 3, 5, (-3,)),
    )  # fmt: skip


def layer(kind: str, seed: int) -> Layer:
    """A convolution of 1x1 with weights and biases of its own in each channel."""
    rng = np.random.default_rng(seed)
    k, channels = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    zero = int(rng.integers(-128, 128))
    clip = (zero, 127) if seed % 3 == 0 else (-128, 127)
    requant = factors(rng, kind, k)
    if seed % 3 == 0:
        clip = (zero_of(requant), 127)
    return conv2d_layer(
        "layer", Tensor("x", (channels, 4, 4)), "y",
        rng.integers(-127, 128, (k, channels, 1, 1)).astype(np.int8),
        rng.integers(-500, 500, k).astype(np.int32), requant=requant, clip=clip,
    )  # fmt: skip


def of_source(requant: Requant, channel: int, sums: Array) -> Array:
    """What the source makes of a channel's sums, before the zero point."""
    if isinstance(requant, Shift):
        return sums >> requant.shift
    if isinstance(requant, MulShift):
        return (sums * requant.mul[channel] + requant.add[channel]) >> requant.shift[channel]
    multiplier, shift = requant.multiplier[channel], requant.shift[channel]
    if isinstance(requant, OnnxRequant):
        scale = np.float32(multiplier * 2.0**-shift)
        return np.rint(sums.astype(np.float32) * scale).astype(np.int64)
    found = []
    for value in sums.tolist():
        total = value * multiplier + requant.addend[channel]
        low, rest = total >> shift, total & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        found.append(low + (rest > half or (rest == half and low % 2 == 1)))
    return np.array(found, np.int64)


def shifted(values: Array, multiplier: int, shift: int) -> Array:
    return (values * multiplier + (1 << (shift - 1))) >> shift


def of_device(found: Scaling | Fractions, zero: int, channel: int, sums: Array) -> Array:
    """What the accelerator makes of them, in single rounding, as bytes."""
    first = found if isinstance(found, Scaling) else found.scaling
    added = first.biases[channel] if first.biases else 0
    parts = shifted(sums + added, first.multipliers[channel], first.shifts[channel])
    if isinstance(found, Scaling):
        return np.clip(parts + zero, -128, 127)
    assert np.abs(parts).max() < 1 << 31
    ends = [
        np.clip(shifted(parts + offset[channel], 1, found.bits) + zero, -128, 127) + 128
        for offset in found.offsets
    ]
    if len(ends) == 1:
        return ends[0] - 128
    first, second = parts_of(zero, found.others)
    return first[ends[0]].astype(np.int64) + second[ends[1]]


def assert_every_sum(made: Layer, found: Scaling | Fractions) -> None:
    """The accelerator makes of every sum what the source does."""
    requant = made.requant
    assert isinstance(requant, Requant)
    ends = np.array([-128, 127]) - getattr(requant, "input_zero_points", (0,))[0]
    for channel in range(made.K):
        bias = int(made.bias[channel])  # type: ignore[attr-defined]
        weights = made.weight[channel].astype(np.int64).ravel()  # type: ignore[attr-defined]
        reach = weights[:, None] * ends
        sums = bias + np.arange(int(reach.min(1).sum()), int(reach.max(1).sum()) + 1)
        zero = zero_of(requant)
        wanted = np.clip(of_source(requant, channel, sums) + zero, *made.clip)
        device = np.clip(of_device(found, zero, channel, sums), *made.clip)
        np.testing.assert_array_equal(device, wanted)


def test_steps_are_shared_by_two_tables() -> None:
    first, second = parts_of(3)
    np.testing.assert_array_equal(first, (np.arange(-128, 128) - 3) >> 1)
    rises = np.diff(first)
    changed, rest = parts_of(3, (10, -7))
    np.testing.assert_array_equal(changed.astype(int) + rest, np.arange(-128, 128))
    differing = np.flatnonzero(np.diff(changed) != rises) + 1 - 128 - 3
    assert differing.tolist() == [-7, 10]


@pytest.mark.parametrize("kind", ["onnxruntime", "torch", "floors"])
def test_every_sum(kind: str) -> None:
    taken = set()
    for seed in SEEDS:
        made = layer(kind, seed)
        found = scaling_of(made)
        if isinstance(found, str):
            assert "rounded differently" in found
            continue
        taken.add(len(found.offsets) if isinstance(found, Fractions) else 0)
        # Less a half, what a shift leaves is rounded.
        assert isinstance(found, Scaling) or not isinstance(made.requant, Shift)
        assert_every_sum(made, found)
    assert len(taken) > (kind != "floors")


def test_steps_that_are_no_ties_are_the_other_offsets() -> None:
    for seed in range(3):
        made = tied(seed)
        found = scaling_of(made)
        assert isinstance(found, Fractions) and found.others
        assert_every_sum(made, found)


@pytest.mark.parametrize("kind", ["onnxruntime", "torch", "floors"])
@pytest.mark.parametrize("target", ["ethos_u55:macs=32", "ethos_u65:macs=256"])
def test_programs(kind: str, target: str) -> None:
    """Vela's programs of them, on the model of the device."""
    pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    found = resolve(target)
    (core,) = found.accelerators
    check = ProgramCheck(model_library(found.soc), core.settings(found.soc, TilingOptions()))  # type: ignore[attr-defined]
    count = 0
    for seed in SEEDS:
        made = layer(kind, seed)
        if isinstance(scaling_of(made), str):
            continue
        count += 1
        region = Region("region", (made,), made.inputs, (made.output,))
        assert check.culprit(region) is None
    assert count > len(SEEDS) // 2
