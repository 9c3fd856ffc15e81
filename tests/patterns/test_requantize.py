"""Requantization against gemmlowp's definition on Python integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import MulShift, Shift, TfliteRequant
from patterns.ops.requantize import _tflite_requantize, fixed_point, requantize
from tests.patterns.build import module_of, run_tvm
from tests.reference import gemmlowp
from tests.reference.interpreter import Array

CHANNELS = 4096
EDGES = [0, 1, -1, 2, -2, 3, -3, 127, -128, 2**30, -(2**30), 2**31 - 1, -(2**31)]


def expected(acc: Array, multiplier: list[int], shift: list[int]) -> Array:
    rows = [
        [
            gemmlowp.multiply_by_quantized_multiplier(int(value), *parameters)
            for value, *parameters in zip(row, multiplier, shift, strict=True)
        ]
        for row in acc
    ]
    return np.asarray(rows, np.int32)


def scaled(acc: Array, multiplier: list[int], shift: list[int], bound: int) -> Array:
    requant = TfliteRequant(tuple(multiplier), tuple(shift))
    module = module_of(
        [acc.shape],
        lambda bb, x: _tflite_requantize(bb, x, requant, "layer_0", 1, bound),
        "int32",
    )
    return run_tvm(module, acc)


@pytest.mark.parametrize(
    ("lowest", "highest", "bound"),
    [
        (-31, -1, 2**30),
        (-12, -1, 2**31 - 2**12),
        (-31, -1, 2**31),
        (-31, 0, 2**31),
        (-31, 30, 2**31),
    ],
    ids=["short", "short-12", "too wide for short", "general", "left"],
)
def test_tflite_rounding_is_gemmlowps(lowest: int, highest: int, bound: int) -> None:
    rng = np.random.default_rng(highest - lowest)
    multiplier = rng.integers(2**30, 2**31, CHANNELS).tolist()
    multiplier[:4] = [2**30, 2**31 - 1, 0, 2**30 + 1]
    shift = rng.integers(lowest, highest + 1, CHANNELS).tolist()
    shift[4:6] = [lowest, highest]
    acc = rng.integers(-(2**31), 2**31, (8, CHANNELS), dtype=np.int64)
    acc[2:5] >>= rng.integers(1, 31, (3, CHANNELS))
    acc[5] = rng.choice(EDGES, CHANNELS)
    # Ties: a product that lands exactly on a half.
    acc[6] = rng.integers(-(2**12), 2**12, CHANNELS) * 2 + 1
    acc = np.clip(acc, -bound, bound - 1).astype(np.int32)
    made = scaled(acc, multiplier, shift, bound)
    np.testing.assert_array_equal(made, expected(acc, multiplier, shift))


def test_one_multiplier_for_all_channels() -> None:
    acc = np.arange(-600, 600, dtype=np.int32).reshape(2, 600)
    made = scaled(acc, [1717986919], [-3], 600)
    np.testing.assert_array_equal(made, expected(acc, [1717986919] * 600, [-3] * 600))


@pytest.mark.parametrize(
    "requant",
    [
        Shift(5),
        Shift(0),
        MulShift((3,), (4,), (7,)),
        MulShift((3, -2, 9), (4, 0, 8), (7, -9, 100)),
        TfliteRequant((1 << 30,), (-2,), 5),
        TfliteRequant((1 << 30, 1234567890, 0), (-2, 0, 0), -7),
    ],
    ids=str,
)
def test_clip_and_cast(requant: Shift | MulShift | TfliteRequant) -> None:
    acc = np.concatenate([np.arange(-700, 701), [2**20, -(2**20)]]).astype(np.int32)
    acc = np.repeat(acc[:, None], 3, axis=1)
    module = module_of(
        [acc.shape],
        lambda bb, x: requantize(bb, x, requant, (-100, 90), "layer_0"),
        "int32",
    )
    columns = []
    for channel in range(3):
        values = [int(value) for value in acc[:, channel]]
        columns.append([_scalar(value, requant, channel) for value in values])
    wanted = np.clip(np.asarray(columns).T, -100, 90).astype(np.int8)
    np.testing.assert_array_equal(run_tvm(module, acc), wanted)


def _scalar(value: int, requant: Shift | MulShift | TfliteRequant, channel: int) -> int:
    def pick(values: tuple[int, ...]) -> int:
        return values[channel if len(values) > 1 else 0]

    if isinstance(requant, Shift):
        return value >> requant.shift
    if isinstance(requant, MulShift):
        return (value * pick(requant.mul) + pick(requant.add)) >> pick(requant.shift)
    multiplier, shift = pick(requant.multiplier), pick(requant.shift)
    scaled_value = gemmlowp.multiply_by_quantized_multiplier(value, multiplier, shift)
    return scaled_value + requant.output_zero_point


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=2.0**29, allow_subnormal=False))
def test_fixed_point_is_tflites(real: float) -> None:
    assert fixed_point(real) == gemmlowp.quantize_multiplier(real)


def test_fixed_point_rounds_up_to_the_next_power() -> None:
    assert fixed_point(1.0 - 2.0**-40) == (2**30, 1)
    assert fixed_point(0.5) == (2**30, 0)
    assert fixed_point(0.0) == fixed_point(2.0**-40) == (0, 0)


@pytest.mark.parametrize("real", [-0.5, float("nan"), float("inf"), 2.0**31])
def test_fixed_point_refuses(real: float) -> None:
    with pytest.raises(UnsupportedError, match="scale ratio"):
        fixed_point(real)
