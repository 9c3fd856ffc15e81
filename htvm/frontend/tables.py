"""Tables of functions of one int8 tensor, with the arithmetic of TFLite Micro's reference kernels.

Each is made from the quantizations of input and output, and has the results for -128 to 127.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.errors import HtvmError
from byoc_dory.layers import Array
from htvm.frontend.operators import Pair, Quantization
from patterns.op import INT8
from patterns.ops.convert import tabulate
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite import gemmlowp

Unsupported: TypeAlias = Callable[..., HtvmError]
"""Returns the error for what a kernel of TFLite refuses, with a hint or without."""

_INPUT_BITS = 4  # integer bits of the argument of logistic and tanh, Q4.27
_SHIFTS = 15  # right shifts that 16 bits have


def check_fixed(
    name: str, made: Quantization, wanted: Quantization, unsupported: Unsupported
) -> None:
    """Check the output's quantization of a function for which TFLite prescribes it.

    Raises:
        UnsupportedError: it is another one.
    """
    if made == wanted:
        return
    article = "an" if name.startswith("L") else "a"
    raise unsupported(
        f"{article} {name} with output scale {made.scale:g}, zero point {made.zero_point}",
        f"int8 {name} has scale 1/{round(1 / wanted.scale)} and zero point {wanted.zero_point}",
    )


def sigmoid_table(
    function: Literal["logistic", "tanh"],
    step: Quantization,
    made: Quantization,
    unsupported: Unsupported,
) -> Array:
    """Return the table of a curve between 0 or -1 and 1.

    Raises:
        UnsupportedError: the output's quantization is not the prescribed one, or the input's scale
            too small or large.
    """
    kernel, bits, offset = gemmlowp.tanh, 7, 0
    if function == "logistic":
        kernel, bits, offset = gemmlowp.logistic, 8, -128
    check_fixed(function, made, Quantization(1 / (1 << bits), offset), unsupported)
    real = step.scale * 2.0 ** (31 - _INPUT_BITS)
    if not 2.0**-31 <= real < 2.0**30:
        raise unsupported(f"an input scale of {step.scale:g}", "use 2**-57 to 8")
    multiplier, shift = fixed_point(real)
    # Beyond +-15 the curve has reached its limit.
    limit = math.floor(15.0 * 2.0 ** (31 - _INPUT_BITS) / 2.0**shift)

    def entry(x: int) -> int:
        centred = x - step.zero_point
        if abs(centred) >= limit:
            return INT8[0] if centred <= -limit else INT8[1]
        curve = kernel(gemmlowp.scaled(centred, multiplier, shift), _INPUT_BITS)
        return gemmlowp.rounding_shift(curve, 31 - bits) + offset

    return tabulate(entry)


def hard_swish_table(step: Quantization, made: Quantization, unsupported: Unsupported) -> Array:
    """Return the table of x * clip(x + 3, 0, 6) / 6 in int16 arithmetic.

    Raises:
        UnsupportedError: both scales are too far apart.
    """
    output, output_shift = fixed_point(step.scale / 128 / made.scale)
    relu_ish, relu_shift = fixed_point(step.scale / 128 / (3 / 32768))
    if output_shift > 0:
        raise unsupported(
            f"a hard swish whose output step {made.scale:g} is 128 times finer than its input's"
        )
    if min(output_shift, relu_shift) < -_SHIFTS:
        raise unsupported(
            f"a hard swish from steps of {step.scale:g} to steps of {made.scale:g}, which TFLite's "
            "shifts of 16 bits do not reach",
            "calibrate again: one of the two does not fit its numbers",
        )
    output, relu_ish = (min((value + (1 << 15)) >> 16, 2**15 - 1) for value in (output, relu_ish))

    def function(x: int) -> int:
        value = (x - step.zero_point) << 7
        scaled = _high_multiply_16(value, output)
        gate = value
        if relu_shift > 0:
            gate = _saturated_16(gate << (relu_shift - 1))
        gate = _high_multiply_16(gate, relu_ish)
        if relu_shift > 0:
            gate = _saturated_16(gate << 1)
        if relu_shift < 0:
            gate = gemmlowp.rounding_shift(gate, -relu_shift)
        gate = (gate + (1 << 15)) >> 1
        product = gate * scaled
        high = abs(product) >> 15  # toward zero
        high = high if product >= 0 else -high
        return gemmlowp.rounding_shift(high, -output_shift) + made.zero_point

    return tabulate(function)


def _saturated_16(value: int) -> int:
    return min(max(value, -(2**15)), 2**15 - 1)


def _high_multiply_16(a: int, b: int) -> int:
    """Return the high half of 2ab for int16, rounded half away from zero."""
    product = a * b
    nudged = product + ((1 << 14) if product >= 0 else 1 - (1 << 14))
    high = abs(nudged) >> 15
    return _saturated_16(high if nudged >= 0 else -high)


def slopes_of(alpha: float, step: Quantization, made: Quantization) -> tuple[Pair, Pair, int]:
    """Return the factors of numbers above and below zero, and the sign of the latter."""
    # Products and ratios of the file's float32 numbers, not rounded to float32 in between, as in
    # the package of TFLite Micro; for int16 the last bit decides how some elements round.
    first, last, factor = (float(np.float32(n)) for n in (step.scale, made.scale, alpha))
    slope = first * factor / last
    return fixed_point(first / last), fixed_point(abs(slope)), 1 if slope >= 0 else -1


def leaky_relu_table(alpha: float, step: Quantization, made: Quantization) -> Array:
    """Return the table of a rectifier with a slope for negative numbers."""
    above, below, sign = slopes_of(alpha, step, made)

    def function(x: int) -> int:
        centred = x - step.zero_point
        if centred >= 0:
            return gemmlowp.scaled(centred, *above) + made.zero_point
        # The sign of the slope comes last: halves are rounded away from zero before.
        magnitude = gemmlowp.scaled(centred, *below)
        return sign * magnitude + made.zero_point

    return tabulate(function)


def absolute_table(step: Quantization, made: Quantization) -> Array:
    """Return the table of magnitudes."""
    factor = fixed_point(step.scale / made.scale)

    def function(x: int) -> int:
        return gemmlowp.scaled(abs(x - step.zero_point), *factor) + made.zero_point

    return tabulate(function)
