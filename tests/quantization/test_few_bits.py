"""Weights of at most 4 bits stay the source's own integers in the multiply-shift scheme."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.quantization import MulShiftScheme, RetargetOptions, retarget
from htvm.quantization.rounding import for_own_integers
from patterns.ops.convolution import Conv2d
from patterns.reading.read import graph_of
from tests.frontend.sketch import Sketch

K, C = 12, 16


def network(seed: int, spread: float, limit: int, folder: Path) -> htvm.Model:
    """A convolution with weights from -limit to limit - 1, and scales of unequal size."""
    sketch = Sketch(np.random.default_rng(seed))
    source = sketch.input((1, 8, 8, C), 0.05, 3)
    data = sketch.rng.integers(-limit, limit, (K, 3, 3, C)).astype(np.int8)
    scales = np.exp(sketch.rng.uniform(-spread, spread, K)) * 0.8 / limit
    weights = sketch.constant(data, 1, scales=scales.tolist(), zero_points=[0] * K)
    out = sketch.tensor((1, 8, 8, K), 0.3, -4)
    sketch.op("CONV_2D", [source, weights], [out], (1, {0: ("b", 0), 1: ("i", 1), 2: ("i", 1)}))
    path = folder / "network.tflite"
    path.write_bytes(sketch.graph(out).file())
    return htvm.load(path)


def weights_of(model: htvm.Model) -> np.ndarray:
    (found,) = (node.op for node in graph_of(model.module).in_order if isinstance(node.op, Conv2d))
    return found.weight


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.2])
def test_they_stay_and_cost_less_accuracy_than_eight_bits(spread: float, tmp_path: Path) -> None:
    options = RetargetOptions(samples=48, scheme=MulShiftScheme(per_channel=True))
    source = network(0, spread, 8, tmp_path)
    few = retarget(source, options=options)
    np.testing.assert_array_equal(weights_of(few.model), weights_of(source))
    many = retarget(network(0, spread, 128, tmp_path), options=options)
    assert np.abs(weights_of(many.model).astype(int)).max() > 100
    assert few.report.output_sqnr_db is not None and many.report.output_sqnr_db is not None
    assert few.report.output_sqnr_db > many.report.output_sqnr_db


def test_a_core_with_one_multiplier_for_all_channels_fills_eight_bits(tmp_path: Path) -> None:
    options = RetargetOptions(samples=48, scheme=MulShiftScheme())
    made = retarget(network(0, 0.5, 8, tmp_path), options=options)
    assert np.abs(weights_of(made.model).astype(int)).max() > 100


WEIGHTS = np.arange(-8, 8, dtype=np.int8).reshape(2, 8, 1, 1)
STEPS = np.asarray([3.0, 2.0])[:, None, None, None]


def test_factors_are_the_nearest() -> None:
    found = for_own_integers(WEIGHTS, WEIGHTS * STEPS, 2.0**-8, 8)
    assert found is not None
    assert (found.mul, found.shift) == ((192, 128), (14,))
    nearest = for_own_integers(WEIGHTS, WEIGHTS * STEPS * 1.0034, 2.0**-8, 8)
    assert nearest is not None and nearest.mul == (193, 128)


def test_other_weights_have_none() -> None:
    odd_inputs = WEIGHTS * STEPS * np.linspace(1, 2, 8)[None, :, None, None]
    far_apart = WEIGHTS * STEPS * np.asarray([1.0, 1e-4])[:, None, None, None]
    assert for_own_integers(WEIGHTS, odd_inputs, 2.0**-8, 8) is None
    assert for_own_integers(WEIGHTS + np.int8(1), WEIGHTS * STEPS, 2.0**-8, 8) is None
    assert for_own_integers(WEIGHTS * np.int8(0), WEIGHTS * 0.0, 2.0**-8, 8) is None
    assert for_own_integers(WEIGHTS, WEIGHTS * STEPS * 0.77, 2.0**-8, 2) is None
    assert for_own_integers(WEIGHTS, far_apart, 2.0**-8, 8) is None
