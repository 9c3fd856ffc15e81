"""Softmax against gemmlowp's definition."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from patterns.ops.tflite.softmax import TfliteSoftmax, exponential_table, softmax_multiplier
from tests.patterns.build import module_of, run_tvm
from tests.reference import gemmlowp
from tests.reference.interpreter import interpret

SCALES = [
    2.0**-20,
    1e-4,
    0.0031,
    1 / 256,
    0.0473,
    0.14469251,
    0.17185351,
    0.5,
    1.0,
    3.7,
    15.9,
    16.0,
    40.0,
]


@pytest.mark.parametrize("seed", range(4))
def test_table_is_gemmlowps_exponential(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for scale in [*SCALES, *np.exp(rng.uniform(np.log(1e-6), np.log(64), 20))]:
        multiplier, left_shift = softmax_multiplier(float(scale))
        assert (multiplier, left_shift) == gemmlowp.softmax_parameters(float(scale))
        radius = int(31.0 * 2.0**26 // 2.0**left_shift)
        table = exponential_table(multiplier, left_shift)
        assert len(table) == 256
        for distance in range(256):
            scaled = gemmlowp.saturating_rounding_doubling_high_mul(
                -distance << left_shift, multiplier
            )
            wanted = gemmlowp.exp_on_negative_values(scaled) if distance <= radius else 0
            assert table[distance] == wanted, (scale, distance)


@pytest.mark.parametrize(
    ("scale", "length"),
    [
        (0.14469251, 12),
        (0.17185351, 2),
        (0.004, 10),
        (1.0, 3),
        (0.03, 300),
        (1e-5, 1001),
        (20.0, 5),
    ],
)
def test_rows_are_tflites(scale: float, length: int) -> None:
    rng = np.random.default_rng(length)
    count = 60 if length < 100 else 4
    rows = rng.integers(-128, 128, (count, length)).astype(np.int8)
    rows[0], rows[1] = -128, 127
    rows[2] = -128
    rows[2, -1] = 127
    rows[3] = rng.integers(90, 128, length)
    module = module_of(
        [rows.shape], lambda bb, x: TfliteSoftmax.of_scale(scale).write(bb, [x], "softmax_0")
    )
    made = run_tvm(module, rows)
    parameters = softmax_multiplier(scale)
    wanted = [gemmlowp.softmax_row(row.tolist(), *parameters) for row in rows]
    np.testing.assert_array_equal(made, np.asarray(wanted, np.int8))
    np.testing.assert_array_equal(interpret(module, [rows]).outputs[0], made)


@pytest.mark.parametrize(("scale", "length", "message"), [(0.1, 4096, "4096"), (1e-9, 4, "scale")])
def test_refused(scale: float, length: int, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        module_of(
            [(1, length)], lambda bb, x: TfliteSoftmax.of_scale(scale).write(bb, [x], "softmax_0")
        )
