"""Steps of reals in integers equal those of float32 arithmetic: every bit pattern, many scales."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.aot import fixed_point
from patterns.ops.float32.quantize import Quantize
from patterns.ops.onnxruntime.rounding import OnnxQuantize
from patterns.ops.torch.quantize import TorchQuantize
from tests.aot.cpu.native import FOLDERS, STRICT, trapping
from tests.generated.operators import module_of

COMPARE = """
#define HTVM_FLOATS_IN_SOFTWARE
#include "htvm_float_quantize.h"
static int32_t limited(int32_t steps)
{
    return steps < -256 ? -256 : steps > 256 ? 256 : steps;
}
void compare(uint32_t first, uint32_t stride, const float *scale, const uint32_t *factors,
             const int32_t *exponents, uint32_t *counts);
void compare(uint32_t first, uint32_t stride, const float *scale, const uint32_t *factors,
             const int32_t *exponents, uint32_t *counts)
{
    for (uint64_t bits = first; bits <= UINT32_MAX; bits += stride) {
        const uint32_t word = (uint32_t)bits;
        float x;
        memcpy(&x, &word, sizeof x);
        const int32_t times = htvm_times_even(x, *scale, factors[0], exponents[0]);
        const int32_t even = htvm_over_even(x, *scale, factors[1], exponents[1]);
        const int32_t away = htvm_over_away(x, *scale, factors[1], exponents[1]);
        counts[0] += limited(times) != limited(htvm_steps_even(x * *scale));
        counts[0] += limited(even) != limited(htvm_steps_even(x / *scale));
        counts[0] += limited(away) != limited(htvm_steps_away(x / *scale));
        counts[1] += htvm_steps_of(x, factors[0], exponents[0]) == HTVM_STEPS_UNKNOWN;
    }
}
"""
OPERATORS = (Quantize, OnnxQuantize, TorchQuantize)


def known(real: float) -> tuple[int, int]:
    """The factor and the exponent that the header explains."""
    power = math.floor(math.log2(real))
    return min(round(real / 2.0**power * 2**31), 2**32 - 1), 149 - power


def compared(folder: Path, compiler: object, scales: list[float], stride: int) -> tuple[int, int]:
    """Wrong results, and those that float32 arithmetic decides, of one in ``stride`` patterns."""
    source = folder / "quantize.c"
    source.write_text(COMPARE)
    library = trapping(compiler).compile_host(
        [source], folder / "quantize.so", FOLDERS, STRICT, shared=True
    )
    counts = (ctypes.c_uint32 * 2)()
    for number, scale in enumerate(scales):
        value = np.float32(scale)
        found = [known(float(value)), known(1 / float(value))]
        factors = (ctypes.c_uint32 * 2)(*(factor for factor, _ in found))
        exponents = (ctypes.c_int32 * 2)(*(exponent for _, exponent in found))
        ctypes.CDLL(str(library)).compare(
            ctypes.c_uint32(number % stride), ctypes.c_uint32(stride),
            ctypes.byref(ctypes.c_float(value)), factors, exponents, counts,
        )  # fmt: skip
    return counts[0], counts[1]


def scales(count: int, seed: int) -> list[float]:
    """Scales of all magnitudes, powers of two and others."""
    rng = np.random.default_rng(seed)
    powers = rng.integers(-99, 99, count)
    return [float(2.0**power * (1 + (n % 3 > 0) * rng.random())) for n, power in enumerate(powers)]


def test_one_pattern_in_many(tmp_path: Path, compiler: object) -> None:
    wrong, beside = compared(tmp_path, compiler, [1.0, 0.5, 1 / 127, *scales(60, 0)], 20_011)
    assert wrong == 0 and beside > 20


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0157, 3.0, 2.0**-7])
def test_every_pattern(scale: float, tmp_path: Path, compiler: object) -> None:
    wrong, beside = compared(tmp_path, compiler, [scale], 1)
    assert wrong == 0 and 1_000 < beside < 4_000_000


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_kernels_of_cores_without_floats(operator: type[Quantize], dtype: str) -> None:
    """Ties, values beside them, zeros and infinities, on a Cortex-M4 and by the definition."""
    step, zero_point = 0.0371, 3
    ties = (np.arange(-300, 300) + 0.5) * np.float32(step)
    near = np.concatenate([np.nextafter(ties, side) for side in (-np.inf, 0, np.inf)])
    special = [0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf]
    reals = np.concatenate([ties, near, special]).astype("float32").reshape(1, -1)
    op = operator(step, zero_point, dtype)
    net = module_of(((reals.shape, "float32"),), lambda bb, x: [op.write(bb, [x], "quantize")])
    wanted = htvm.build(net, "generic.cpu", platform="host").run([reals]).outputs[0]
    built = htvm.build(net, "cortex_m4")
    assert next(name for name in fixed_point.QUANTIZED if name in built.compiled.program.cpu_source)
    np.testing.assert_array_equal(built.run([reals]).outputs[0], wanted)
