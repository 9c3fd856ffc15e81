"""gemmlowp's fixed-point functions on Python integers, for tables made when a model is imported.

Fixed-point numbers are written Qm.n: m integer and n fraction bits besides the sign; raw values are
int32.  The polynomial and its constants are those of TFLite Micro's reference kernels, so that a
table made here equals the kernel's results.
"""

from __future__ import annotations

import math

_INT32_MAX = 2**31 - 1


def high_multiply(a: int, b: int) -> int:
    """Return the high half of 2ab, rounded to nearest, ties upward; saturated."""
    return min((a * b + (1 << 30)) >> 31, _INT32_MAX)


def rounding_shift(value: int, amount: int) -> int:
    """Return ``value / 2**amount``, rounded half away from zero."""
    remainder = value & ((1 << amount) - 1)
    threshold = ((1 << amount) - 1 >> 1) + (value < 0)
    return (value >> amount) + (remainder > threshold)


def scaled(value: int, multiplier: int, shift: int) -> int:
    """TFLite's requantization of a number: Q31 multiplier, two roundings, wrapping left shift."""
    left, right = max(shift, 0), max(-shift, 0)
    wrapped = ((value << left) + 2**31) % 2**32 - 2**31
    return rounding_shift(high_multiply(wrapped, multiplier), right)


def exp_of_non_positive(a: int, integer_bits: int) -> int:
    """Return exp(a) in Q0.31 for a <= 0 with this number of integer bits.

    A fraction in [-1/4, 0) is computed with a polynomial, the rest as a product of powers
    exp(-2**k).
    """
    if a == 0:
        return _INT32_MAX
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (a & (quarter - 1)) - quarter
    remainder = fraction - a
    result = _exp_near_zero(fraction << integer_bits)
    for exponent, factor in zip(range(-2, integer_bits), _EXP_OF_MINUS_POWERS, strict=False):
        if remainder & (1 << (fraction_bits + exponent)):
            result = high_multiply(result, factor)
    return result


def _exp_near_zero(a: int) -> int:
    """Return exp(a) in Q0.31 for a in [-1/4, 0): the Taylor polynomial of degree 4 around -1/8."""
    x = a + (1 << 28)
    x2 = high_multiply(x, x)
    x3 = high_multiply(x2, x)
    x4_over_4 = rounding_shift(high_multiply(x2, x2), 2)
    tail = rounding_shift(high_multiply(x4_over_4 + x3, _ONE_THIRD) + x2, 1)
    return _EXP_MINUS_EIGHTH + high_multiply(_EXP_MINUS_EIGHTH, x + tail)


# Rounded to Q0.31: exp(-1/8), 1/3, and exp(-2**k) for k = -2 .. 4.
_EXP_MINUS_EIGHTH = round(math.exp(-0.125) * 2**31)
_ONE_THIRD = round(2**31 / 3)
_EXP_OF_MINUS_POWERS = tuple(round(math.exp(-(2.0**k)) * 2**31) for k in range(-2, 5))


def _two_over_one_plus(a: int) -> int:
    """2 / (1 + a) in Q2.29 for a in [0, 1) in Q0.31: three Newton steps from 48/17 - 32/17 x."""
    half = (a + _INT32_MAX + 1) >> 1  # (1 + a) / 2; the sum is not negative
    x = round(48 / 17 * 2**29) + high_multiply(half, -round(32 / 17 * 2**29))
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, x)
        x += _saturated(high_multiply(x, error) << 2)
    return x


def _saturated(value: int) -> int:
    return max(-(2**31), min(value, _INT32_MAX))


def logistic(a: int, integer_bits: int) -> int:
    """Return 1 / (1 + exp(-a)) in Q0.31 for a with this number of integer bits."""
    if a == 0:
        return 1 << 30
    above = _saturated(_two_over_one_plus(exp_of_non_positive(-abs(a), integer_bits)) << 1)
    return above if a > 0 else _INT32_MAX - above


def tanh(a: int, integer_bits: int) -> int:
    """Return tanh(a) in Q0.31 for a with this number of integer bits."""
    if a == 0:
        return 0
    # exp(-2|a|): the same raw number with one more integer bit.
    ratio = _two_over_one_plus(exp_of_non_positive(-abs(a), integer_bits + 1))
    magnitude = _saturated((ratio - (1 << 29)) << 2)
    return magnitude if a > 0 else -magnitude


def inverse_root(value: int) -> tuple[int, int]:
    """Return 1 / sqrt(value) of a positive integer as ``multiplier * 2**(shift - 31)``.

    Five Newton steps in Q3.28 for the number, brought into [1/4, 1) by an even shift.
    """
    if value <= 1:
        return _INT32_MAX, 0
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift -= pairs
    half = rounding_shift((value << 2 * pairs) >> 1, 1)
    x = 1 << 28
    for _ in range(5):
        # Products of Q3.28 are Q6.25 and Q9.22; both are brought back to Q3.28.
        cube = _saturated(high_multiply(high_multiply(x, x), x) << 6)
        x = _saturated((high_multiply(3 << 27, x) - high_multiply(half, cube)) << 3)
    multiplier = high_multiply(x, round(math.sqrt(0.5) * 2**31))
    if shift < 0:
        multiplier, shift = multiplier << -shift, 0
    return multiplier, -shift
