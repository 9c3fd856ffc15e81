"""Average pools of which a call sums four channels at once equal the reference, on the core."""

from __future__ import annotations

import numpy as np
import pytest

from patterns.ops.tflite.averages import AveragePool
from tests.aot.cpu import native
from tests.aot.cpu.modules import Case, int8, module
from tests.aot.cpu.test_scaled import check_natively, check_on_the_core
from tests.reference import cpu_kernels as reference


def pool_case(shape, kernel, strides, data=None, clip=(-128, 127)):
    data = int8(np.random.default_rng([*shape, *kernel]), *shape) if data is None else data
    pool = AveragePool(kernel=kernel, strides=strides, padding=(0, 0, 0, 0), clip=clip)
    built = module({"x": (1, *shape)}, lambda bb, v: pool.write(bb, [v], "average_pool_0"))
    expected = reference.average_pool(data, kernel, strides, (0, 0, 0, 0))
    return Case(built, {"x": data[None]}, expected.clip(*clip))


@pytest.mark.parametrize(
    ("shape", "kernel", "strides"),
    [
        ((8, 8, 16), (8, 8), (8, 8)),  # a whole map
        ((3, 3, 4), (3, 3), (1, 1)),
        ((5, 7, 6), (3, 2), (2, 1)),  # windows; channels that make no fours
        ((4, 6, 11), (2, 5), (1, 1)),
        ((6, 1, 8), (5, 1), (1, 1)),  # one column
        ((4, 4, 3), (2, 2), (2, 2)),  # few channels
    ],
)
def test_average_pools(shape, kernel, strides, tmp_path, compiler):
    case = pool_case(shape, kernel, strides)
    check_on_the_core(case, "htvm_pool_sums" if shape[-1] > 3 else "htvm_clip", tmp_path, compiler)
    check_natively(case, tmp_path, compiler)


@pytest.mark.parametrize("value", [-128, 127])
def test_largest_sums(value, tmp_path, compiler):
    """Of 256 pixels, in 16 bits."""
    shape = (16, 16, 4)
    case = pool_case(shape, (16, 16), (1, 1), np.full(shape, value, "int8"))
    check_on_the_core(case, "htvm_pool_sums", tmp_path, compiler)


def test_limits_of_one_value(tmp_path, compiler):
    """As a ReLU with the largest zero point has: nothing is summed."""
    case = pool_case((6, 6, 8), (3, 3), (1, 1), clip=(127, 127))
    check_natively(case, tmp_path, compiler)


def test_larger_windows_are_summed_in_c():
    case = pool_case((16, 17, 4), (16, 17), (1, 1))
    assert "htvm_pool_sums" not in native.source_of(native.compiled(case.module, "net", "dsp"))
