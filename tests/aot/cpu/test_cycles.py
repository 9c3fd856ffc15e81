"""What the schedules are for: few cycles per MAC on the simulated RV32 host."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.layers import Shift
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from tests.aot.cpu.modules import bias_of, int8, module, tflite
from tests.aot.cpu.on_the_core import cycles_per_mac


def convolution(y, x, c, k, filter, groups=1, padding=0, requant=None):
    rng = np.random.default_rng(0)
    weight, bias = int8(rng, k, c // groups, *filter), bias_of(rng, k)
    requant = requant or tflite(rng, k, -8)
    return module(
        {"x": (1, y, x, c)},
        lambda bb, v: conv2d_of(
            weight, bias, Window(padding=(padding,) * 4, groups=groups), requant
        ).write(bb, [v], "conv2d_0"),
    )


CASES = {
    # limit of cycles per MAC, requantization and padding included
    "3x3": (3.3, lambda: convolution(16, 16, 32, 32, (3, 3), padding=1)),
    "3x3, first layer": (4.4, lambda: convolution(16, 16, 3, 16, (3, 3), padding=1)),
    "1x1, odd": (3.5, lambda: convolution(13, 5, 64, 64, (1, 1))),
    "depthwise": (7.5, lambda: convolution(18, 18, 16, 16, (3, 3), groups=16)),
}


BY_SHIFT = Shift(11)

SIMD_CASES = {
    # the same on a core with SIMD; what is measured is a little less
    "1x1, 64 to 64, by shift": (
        0.50,
        lambda: convolution(16, 16, 64, 64, (1, 1), requant=BY_SHIFT),
    ),
    "1x1, 64 to 64": (0.63, lambda: convolution(16, 16, 64, 64, (1, 1))),
    "3x3, 16 to 16, by shift": (
        0.49,
        lambda: convolution(16, 34, 16, 16, (3, 3), requant=BY_SHIFT),
    ),
    "3x3, 16 to 16": (0.57, lambda: convolution(16, 34, 16, 16, (3, 3))),
    "3x3, 32 to 32": (0.47, lambda: convolution(18, 18, 32, 32, (3, 3))),
    "3x3, 64 to 64": (0.44, lambda: convolution(10, 10, 64, 64, (3, 3))),
    "3x3, 3 to 16, padding included": (
        1.45,
        lambda: convolution(32, 32, 3, 16, (3, 3), padding=1),
    ),
    "1x1, 10 to 64": (2.1, lambda: convolution(13, 5, 10, 64, (1, 1))),
    "depthwise": (3.5, lambda: convolution(26, 26, 32, 32, (3, 3), groups=32)),
}


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", SIMD_CASES)
def test_with_simd(name, compiler, tmp_path):
    limit, make = SIMD_CASES[name]
    cycles = cycles_per_mac(make(), compiler, tmp_path, "simd")
    print(f"{name}: {cycles:.3f} cycles per MAC")
    assert cycles <= limit


@pytest.mark.parametrize("name", CASES)
def test_convolution(name, compiler, tmp_path):
    limit, make = CASES[name]
    assert cycles_per_mac(make(), compiler, tmp_path) < limit


def test_dense(compiler, tmp_path):
    rng = np.random.default_rng(0)
    weight, bias, requant = int8(rng, 64, 256), bias_of(rng, 64), tflite(rng, 64, -8)
    built = module(
        {"x": (1, 256)}, lambda bb, v: Dense(weight, bias, requant).write(bb, [v], "dense_0")
    )
    assert cycles_per_mac(built, compiler, tmp_path) < 3.5


def test_schedules_pay(compiler, tmp_path):
    _, make = CASES["3x3"]
    plain = cycles_per_mac(make(), compiler, tmp_path, "default")
    assert plain > 2 * cycles_per_mac(make(), compiler, tmp_path)
