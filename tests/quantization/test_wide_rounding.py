"""Rounding with feedback of sums of many inputs: the same results, in linear time."""

from __future__ import annotations

import numpy as np
import pytest

from htvm.quantization import rounding


@pytest.mark.parametrize("size", [5, 40, 300])
def test_the_wide_form_rounds_like_the_exact_one(size: int) -> None:
    rng = np.random.default_rng(size)
    mixing = rng.normal(size=(12, size))
    rows = rng.normal(size=(64, 12)) @ mixing + rng.normal(size=(64, size)) * 0.2
    weight = rng.normal(size=(7, size)) * 40
    power = rows.T @ rows / len(rows)
    exact = rounding._feed_back(weight[None], power[None])[0]
    wide = rounding._feed_back_wide(weight, rows)
    # The same numbers but for the order of float64 sums, which can decide a tie.
    assert (exact != wide).mean() < 0.01
    plain = np.clip(np.rint(weight), -128, 127)
    error = [np.square((weight - w) @ rows.T).mean() for w in (wide, plain)]
    assert error[0] < (0.5 if size > 12 else 1.0) * error[1]  # more inputs than directions


def test_a_dense_layer_of_16384_inputs_takes_linear_memory() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(-128, 128, (64, 16_384)).astype(np.float64)
    weight = rng.normal(size=(2, 16_384)) * 30
    rounded = rounding._feed_back_wide(weight, rows)  # 16,384 squared would be 2 GB
    assert rounded.shape == weight.shape
    assert np.abs(rounded - weight).max() < 40
