"""L2 normalization against gemmlowp's definition, for sums of any number of bits."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from patterns.ops.tflite.log_softmax import TfliteL2Normalization
from tests.patterns.build import module_of, run_tvm
from tests.reference import gemmlowp
from tests.reference.interpreter import Array, interpret


def normalized(rows: Array, zero_point: int) -> Array:
    op = TfliteL2Normalization(zero_point)
    module = module_of([rows.shape], lambda bb, x: op.write(bb, [x], "l2_normalization_0"))
    made = run_tvm(module, rows)
    np.testing.assert_array_equal(interpret(module, [rows]).outputs[0], made)
    return made


def defined(rows: Array, zero_point: int) -> Array:
    found = [gemmlowp.normalized_row(row.tolist(), zero_point) for row in rows]
    return np.asarray(found, np.int8)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("zero_point", [-128, -7, 0, 127])
def test_sums_of_one_to_five_squares(zero_point: int) -> None:
    rows = np.full((1000, 5), zero_point)
    rows[:256, 0] = np.arange(-128, 128)
    rng = np.random.default_rng(0)
    for at, row in enumerate(rows[256:]):
        row[: 1 + at % 5] += rng.integers(-(1 << at % 9), 1 << at % 9, 1 + at % 5)
    rows = np.clip(rows, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(normalized(rows, zero_point), defined(rows, zero_point))


@pytest.mark.rotating(4)
@pytest.mark.parametrize(("zero_point", "value"), [(-128, 127), (127, -128), (0, -128), (0, 0)])
@pytest.mark.parametrize("length", [1, 8256, 8300, 33025])
def test_long_rows_of_the_largest_numbers(length: int, zero_point: int, value: int) -> None:
    rows = np.full((2, length), value, np.int8)
    rows[1, 0] = 3
    np.testing.assert_array_equal(normalized(rows, zero_point), defined(rows, zero_point))


def test_refused() -> None:
    with pytest.raises(UnsupportedError, match="33026 values"):
        module_of([(1, 33026)], lambda bb, x: TfliteL2Normalization(0).write(bb, [x], "n"))
