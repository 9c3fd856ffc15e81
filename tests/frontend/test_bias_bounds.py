"""Biases near the ends of int32: what loads is built everywhere, and is what TFLite Micro computes.

Whether a sum fits is decided once, when a file is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.errors import UnsupportedError
from patterns.ops.requantize import fixed_point, tflite_reach
from tests.frontend.flatfile import INT32, Graph, Op, Tensor

LIMIT = 2**31 - 1
FITTING = [
    (weight, sign * (LIMIT - distance))
    for sign in (1, -1)
    for distance in (0, 1, 127, 128, 129, 255, 256, 257, 508, 511, 512, 600)
    for weight in (0, 1)
    # Four products with ones reach from -512 to 508; int32 from one below -LIMIT.
    if weight == 0 or distance >= (508 if sign > 0 else 511)
]
"""Weights and biases of channels; every sum of theirs fits, and some are at the end."""


def dense(channels: Sequence[tuple[int, int]], ratio: float = 0.5, zero: int = 0) -> bytes:
    """A product of four inputs with equal weights; the ratio of scales is s_in * s_w / s_out."""
    weight, bias = (np.asarray(part) for part in zip(*channels, strict=True))
    count, out = len(channels), float(np.float32(0.125 / ratio))
    rows = np.repeat(weight[:, None], 4, 1).astype(np.int8)
    tensors = [
        Tensor("x", (1, 4), scales=(0.5,), zero_points=(0,)),
        Tensor("w", (count, 4), data=rows, scales=(0.25,), zero_points=(0,)),
        Tensor("b", (count,), INT32, bias.astype(np.int32), (0.125,), (0,)),
        Tensor("y", (1, count), scales=(out,), zero_points=(zero,)),
    ]
    return Graph(tensors, [Op("FULLY_CONNECTED", [0, 1, 2], [3], (8, {}))]).file()


def loaded(data: bytes, folder: Path) -> htvm.Model:
    path = folder / "net.tflite"
    path.write_bytes(data)
    return htvm.load(path)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("ratio", [2.0**-31, 1e-4, 0.9999, 1.0, 1.3, 64.0])
@pytest.mark.parametrize("zero", [-128, 127])
def test_what_fits_is_computed_as_tflite_micro_does(
    zero: int, ratio: float, tmp_path: Path
) -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")
    from benchmarks.micro import run

    data = dense(FITTING, ratio, zero)
    module = htvm.build(loaded(data, tmp_path), "generic.cpu", platform="host")
    for value in (-128, -1, 0, 1, 127):
        given = np.full((1, 4), value, np.int8)
        np.testing.assert_array_equal(module.run(given).outputs[0], run(data, [given], 1)[0])


@pytest.mark.rotating(3)
@pytest.mark.parametrize("target", ["cortex_m4", "diana", "dla", "siracusa", "snitch_ita"])
@pytest.mark.parametrize("ratio", [1e-7, 0.9])  # from 1 on, TFLite wraps, and accelerators do not
def test_what_loads_is_built_for_every_target(ratio: float, target: str, tmp_path: Path) -> None:
    model = loaded(dense(FITTING, ratio), tmp_path)
    module = htvm.build(model, target, platform="host")
    given = np.full((1, 4), -128, np.int8)
    np.testing.assert_array_equal(module.run(given).outputs[0], module.reference(given)[0])
    (source,) = htvm.build(model, "generic.cpu", platform="host").run(given).outputs
    # Sums far beyond int8 are at its ends in any arithmetic.
    np.testing.assert_array_equal(module.run(given).outputs[0] > 0, source > 0)


@pytest.mark.parametrize(
    "channel",
    [(1, LIMIT - 507), (1, -LIMIT + 510), (1, LIMIT), (127, LIMIT - 2**15), (-128, 1 - LIMIT)],
)
def test_a_sum_that_does_not_fit_is_refused_when_it_is_read(
    channel: tuple[int, int], tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=r"values between -?\d+ and -?\d+ do not fit 32"):
        loaded(dense([channel]), tmp_path)


def test_the_reach_of_a_requantization() -> None:
    """No sum of up to the largest gives more, and the largest does, but where a shift wraps."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        ratio = float(2.0 ** rng.uniform(-31, 20))
        multiplier, shift = fixed_point(ratio)
        largest = int(2.0 ** rng.uniform(0, 31))
        reach = tflite_reach(*(np.asarray([part]) for part in (largest, multiplier, shift)))
        wraps = largest << max(shift, 0) > LIMIT
        worst = min(largest << max(shift, 0), 2**31) * multiplier / 2**31 / 2.0 ** max(-shift, 0)
        assert worst - 1 <= reach <= worst + 1.5
        assert wraps or abs(reach - largest * ratio) <= 1.5 + largest * ratio * 2.0**-30
