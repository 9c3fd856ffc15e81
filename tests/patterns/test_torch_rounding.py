"""torch's requantization: the integers of the form against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import TorchRequant
from patterns.op import INT8
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.scaling import requantized
from patterns.ops.tflite.wide import WideConv2d
from patterns.ops.torch.rounding import has_ties, requantization, torch_requantize
from patterns.reading.read import graph_of
from tests.patterns.build import module_of, run_tvm
from tests.reference.interpreter import Array, interpret

CHANNELS = 64


def rounded(acc: Array, requant: TorchRequant) -> Array:
    """Each product as a fraction, rounded by Python, halves to the even integer."""

    def one(value: int, channel: int) -> int:
        factor, shift, addend = (
            row[channel if len(row) > 1 else 0]
            for row in (requant.multiplier, requant.shift, requant.addend)
        )
        return round(Fraction(value * factor + addend, 2**shift))

    rows = [[one(int(v), c) for c, v in enumerate(row)] for row in acc]
    return np.asarray(rows, dtype=object)


def drawn(kind: str) -> tuple[Array, Array]:
    """Ratios, and fractions of the bias."""
    rng = np.random.default_rng(len(kind))
    if kind == "powers of two":
        return np.full(1, 2.0**-9), np.zeros(CHANNELS)
    if kind == "between steps":
        return np.full(1, 2.0**-9), np.full(CHANNELS, 0.5)
    low, high = {"usual": (-12, -4), "large": (-2, 3), "uneven": (-30, -1)}[kind]
    ratios = np.ldexp(rng.uniform(0.5, 1, CHANNELS), rng.integers(low, high, CHANNELS))
    ratios[::4] = np.ldexp(rng.integers(1, 32, CHANNELS // 4), low)
    return ratios, rng.choice([0.0, 0.25, -0.5, 0.1234], CHANNELS)


KINDS = ("usual", "large", "uneven", "powers of two", "between steps")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_nearest_integer(kind: str) -> None:
    ratios, fractions = drawn(kind)
    requant = requantization(ratios, fractions, 3)
    rng = np.random.default_rng(2)
    ties = (rng.integers(-200, 200, (32, CHANNELS)) + 0.5) / ratios - fractions
    acc = np.rint(ties) + rng.integers(-1, 2, ties.shape)
    acc = acc.clip(-(2**24), 2**24).astype("int32")
    module = module_of(
        [acc.shape],
        lambda bb, x: torch_requantize(bb, x, requant, "layer_0", 1, 2**24),
        "int32",
    )
    wanted = rounded(acc, requant)
    inside = np.abs(wanted.astype("float64")) < 2**30
    for got in (run_tvm(module, acc), interpret(module, [acc]).outputs[0]):
        assert (got == wanted)[inside].all()
    product = requantized(acc.astype("int64"), requant, (-(2**30), 2**30), "int32")
    assert (product - 3 == wanted)[inside].all()


WIDE = ("usual", "powers of two", "between steps", "halved", "halved powers of two")


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_sums_of_48_bits_are_rounded_to_the_nearest_integer(kind: str, layout: str) -> None:
    rng = np.random.default_rng(5)
    if kind == "halved":
        ratios = np.ldexp(rng.uniform(0.5, 1, CHANNELS), rng.integers(-31, -29, CHANNELS))
        fractions = rng.choice([0.0, 0.25, -0.5, 0.1234], CHANNELS)
    elif kind == "halved powers of two":
        ratios, fractions = np.full(1, 2.0**-30), np.zeros(CHANNELS)
    else:
        ratios, fractions = drawn(kind)
    requant = requantization(ratios, fractions, -3)
    # Each channel's sum is its bias and a number of the input, next to the middle between two
    # results, or at an end of what they can be.
    bound = 2**46 if kind.startswith("halved") else 2**29
    middles = (rng.integers(-(2**15), 2**15, CHANNELS) + 0.5) / ratios - fractions
    bias = np.rint(middles).clip(-bound, bound).astype("int64")
    bias[:2] = bound, -bound
    ones = np.ones((CHANNELS, 1, 1, 1), "int8")
    clip = (-(2**15), 2**15 - 1)
    op = WideConv2d.in_torch(ones, bias, requant, clip, (1, 1), (1, 1), 1, layout)
    x = np.asarray([0, 1, -1, 2, -2, 32767, -32768], "int16").reshape(1, 1, 1, 7)
    x = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    module = module_of([x.shape], lambda bb, data: op.write(bb, [data], "layer_0"), "int16")
    sums = x.reshape(7, 1).astype("int64") + bias
    wanted = (rounded(sums, requant) - 3).clip(*clip).astype("int16")
    assert len(np.unique(wanted)) > 20
    for got in (run_tvm(module, x), interpret(module, [x]).outputs[0]):
        channels = got[0, :, 0].T if layout == "NCHW" else got[0, 0]
        assert (channels == wanted).all()


def test_a_ratio_too_large_for_sums_of_48_bits_is_refused() -> None:
    requant = requantization(np.asarray([2.0**15]), np.zeros(1), 0)
    ones, bias = np.ones((1, 1, 1, 1), "int8"), np.full(1, 2**40)
    with pytest.raises(UnsupportedError, match="leaves 64 bits"):
        WideConv2d.in_torch(ones, bias, requant)


@pytest.mark.parametrize("kind", KINDS)
def test_the_definition_is_near_the_real_one(kind: str) -> None:
    ratios, fractions = drawn(kind)
    requant = requantization(ratios, fractions, 0)
    acc = np.random.default_rng(3).integers(-(2**20), 2**20, (16, CHANNELS))
    exact = (acc + fractions) * ratios
    seen = np.abs(exact) < 300
    distance = np.abs(rounded(acc, requant).astype("float64") - exact)[seen]
    assert distance.max(initial=0) <= 0.5 + 300 * 2.0**-27


def test_ties_are_found() -> None:
    for requant in (
        TorchRequant((3,), (4,)),
        TorchRequant((1 << 30,), (36,)),
        TorchRequant((1 << 30,), (36,), (1 << 29,)),
        TorchRequant((6, 5), (5, 5), (1, 3)),
        TorchRequant((1518500249,), (40,), (77,)),
    ):
        bound = 200
        size = max(len(requant.multiplier), len(requant.addend))
        found = False
        for channel in range(size):
            factor, shift, addend = (
                row[channel if len(row) > 1 else 0]
                for row in (requant.multiplier, requant.shift, requant.addend)
            )
            span = 1 << shift
            found |= any(
                (value * factor + addend) % span == span // 2 for value in range(-bound, bound + 1)
            )
        assert has_ties(requant, bound) == found, requant


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_read_as_it_was_written(kind: str) -> None:
    ratios, fractions = drawn(kind)
    requant = requantization(ratios, fractions, -7)
    weight = np.random.default_rng(4).integers(-127, 128, (CHANNELS, 2, 1, 1)).astype("int8")
    op = conv2d_of(weight, np.arange(CHANNELS, dtype="int32"), Window(), requant, INT8)
    module = module_of([(1, 3, 3, 2)], lambda bb, x: op.write(bb, [x], "layer_0"))
    (node,) = graph_of(module).in_order
    assert node.op.requant == requant


@pytest.mark.parametrize("ratio", [0.0, -1.0, np.inf, np.nan, 2.0**30])
def test_impossible_ratios_are_refused(ratio: float) -> None:
    with pytest.raises(UnsupportedError, match="scale ratio"):
        requantization(np.asarray([ratio]), np.zeros(1), 0)
