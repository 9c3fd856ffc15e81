"""The logarithm of a softmax against gemmlowp's definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from patterns.ops.tflite.log_softmax import TfliteLogSoftmax
from tests.patterns.build import module_of, run_tvm
from tests.reference import gemmlowp
from tests.reference.interpreter import interpret


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("scale", "length"),
    [(1e-7, 9), (1e-4, 4095), (0.004, 1), (0.02, 300), (0.0625, 40), (0.1, 12), (3.0, 7), (20, 5)],
)
def test_rows_are_tflites(scale: float, length: int) -> None:
    rng = np.random.default_rng(length)
    rows = rng.integers(-128, 128, (60 if length < 100 else 5, length)).astype(np.int8)
    rows[0], rows[1], rows[2] = -128, 127, -128
    rows[2, -1] = 127
    rows[3] = rng.integers(90, 128, length)
    op = TfliteLogSoftmax.of_scale(scale)
    module = module_of([rows.shape], lambda bb, x: op.write(bb, [x], "log_softmax_0"))
    made = run_tvm(module, rows)
    wanted = [gemmlowp.log_softmax_row(row.tolist(), op.multiplier, op.left_shift) for row in rows]
    np.testing.assert_array_equal(made, np.asarray(wanted, np.int8))
    np.testing.assert_array_equal(interpret(module, [rows]).outputs[0], made)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("length", [1, 2, 3, 45, 46, 90, 91, 1448, 2896, 2897, 4095])
def test_logarithms_of_sums_around_powers_of_the_root_of_two(length: int) -> None:
    found = gemmlowp.logarithm(length << 19, 12) / 2**26
    assert abs(found - math.log(length)) < 1e-6
    rows = np.zeros((1, length), np.int8)
    op = TfliteLogSoftmax.of_scale(0.1)
    module = module_of([rows.shape], lambda bb, x: op.write(bb, [x], "log_softmax_0"))
    assert (run_tvm(module, rows) == 127 - round(16 * math.log(length))).all()


@pytest.mark.parametrize(("scale", "length", "message"), [(0.1, 4096, "4096"), (1e-9, 4, "scale")])
def test_refused(scale: float, length: int, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        module_of([(1, length)], lambda bb, x: TfliteLogSoftmax.of_scale(scale).write(bb, [x], "s"))
