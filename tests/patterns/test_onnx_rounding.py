"""onnxruntime's requantization: the integers of the form against float32 arithmetic of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import OnnxRequant
from patterns.ops.onnxruntime.rounding import float_scale, onnx_requantize
from tests.patterns.build import module_of, run_tvm
from tests.reference.interpreter import Array

CHANNELS = 512


def floats(acc: Array, scales: Array) -> Array:
    """What onnxruntime computes: each step rounds to float32, the last to an integer."""
    product = acc.astype(np.float32) * scales.astype(np.float32)
    return np.rint(product).astype(np.float64)


def requant_of(scales: Array, zero_point: int = 0) -> OnnxRequant:
    parts = [float_scale(float(scale)) for scale in scales]
    multipliers, shifts = zip(*parts, strict=True)
    return OnnxRequant(multipliers, shifts, zero_point)


def draw_scales(rng: np.random.Generator, smallest: int, largest: int) -> Array:
    """Random float32, a quarter of them with few bits, so that there are exact ties."""
    scales = np.ldexp(rng.uniform(0.5, 1, CHANNELS), rng.integers(smallest, largest, CHANNELS))
    few = rng.integers(1, 64, CHANNELS // 4)
    scales[: CHANNELS // 4] = np.ldexp(few, rng.integers(smallest, largest, CHANNELS // 4) - 6)
    return scales.astype(np.float32)


def near_ties(rng: np.random.Generator, scales: Array, bound: int, rows: int = 64) -> Array:
    """Accumulators next to those that fall between two integers."""
    ties = rng.integers(-256, 256, (rows, CHANNELS)) + 0.5
    acc = np.rint(ties / scales.astype(np.float64)) + rng.integers(-1, 2, ties.shape)
    return np.clip(acc, 1 - bound, bound - 1).astype(np.int32)


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("smallest", "largest", "bound"),
    [(-20, 0, 2**24), (-10, 8, 2**24), (-36, 2, 2**31), (-60, -30, 2**31)],
    ids=["usual", "large scales", "large accumulators", "small scales"],
)
def test_definition_is_float32_arithmetic(smallest: int, largest: int, bound: int) -> None:
    rng = np.random.default_rng(largest - smallest)
    scales = draw_scales(rng, smallest, largest)
    wild = rng.integers(1 - bound, bound, (8, CHANNELS)) >> rng.integers(0, 24, (8, CHANNELS))
    acc = np.concatenate([near_ties(rng, scales, bound), wild.astype(np.int32)])
    module = module_of(
        [acc.shape],
        lambda bb, x: onnx_requantize(bb, x, requant_of(scales), "layer_0", 1, bound),
        "int32",
    )
    made, wanted = run_tvm(module, acc), floats(acc, scales)
    small = np.abs(wanted) <= 2**16
    assert small.mean() > 0.5
    np.testing.assert_array_equal(made[small], wanted[small])
    assert np.all(np.sign(made[~small]) == np.sign(wanted[~small]))
    assert np.all(np.abs(made[~small]) >= 2**16)


def test_one_scale_for_all_channels() -> None:
    acc = np.arange(-6000, 6000, dtype=np.int32).reshape(2, -1)
    scale = np.float32(0.0123)
    module = module_of(
        [acc.shape],
        lambda bb, x: onnx_requantize(bb, x, requant_of(scale.reshape(1)), "layer_0", 1, 6000),
        "int32",
    )
    np.testing.assert_array_equal(run_tvm(module, acc), floats(acc, scale))


@given(st.floats(min_value=2.0**-37, max_value=2.0**22, width=32))
def test_scale_is_the_float(scale: float) -> None:
    mantissa, shift = float_scale(scale)
    assert 2**23 <= mantissa < 2**24
    assert np.ldexp(float(mantissa), -shift) == scale


def test_scale_that_takes_everything_to_zero() -> None:
    assert float_scale(2.0**-50) == (0, 62)
    assert float_scale(1e-45) == (0, 62)


@pytest.mark.parametrize("scale", [0.0, -0.5, float("nan"), float("inf"), 2.0**24])
def test_scales_refused(scale: float) -> None:
    with pytest.raises(UnsupportedError, match="scale ratio"):
        float_scale(scale)
