"""gemmlowp's fixed-point arithmetic on Python integers, as its documentation defines it.

An independent definition, with saturation, nudge and truncation spelled out; it shares no code
with the product, whose shorter formulas are held to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


def truncated_quotient(a: int, b: int) -> int:
    """a / b toward zero, as in C."""
    return a // b if (a < 0) == (b < 0) else -(-a // b) if a < 0 else -(a // -b)


def saturating_rounding_doubling_high_mul(a: int, b: int) -> int:
    """The high half of 2ab, rounded to nearest, ties away from zero (by nudge and truncation)."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudge = 2**30 if product >= 0 else 1 - 2**30
    return truncated_quotient(product + nudge, 2**31)


def rounding_divide_by_power_of_two(x: int, exponent: int) -> int:
    """x / 2**exponent, ties away from zero."""
    mask = 2**exponent - 1
    remainder = x & mask
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if remainder > threshold else 0)


def saturating_multiply_by_power_of_two(x: int, exponent: int) -> int:
    """x * 2**exponent; rounded to the right, saturated to the left."""
    if exponent < 0:
        return rounding_divide_by_power_of_two(x, -exponent)
    return max(INT32_MIN, min(INT32_MAX, x << exponent))


def wrapped(x: int) -> int:
    """x modulo 2**32 as int32."""
    return (x + 2**31) % 2**32 - 2**31


def multiply_by_quantized_multiplier(x: int, multiplier: int, shift: int) -> int:
    """TFLite's requantization with double rounding."""
    left, right = max(shift, 0), max(-shift, 0)
    high = saturating_rounding_doubling_high_mul(wrapped(x << left), multiplier)
    return rounding_divide_by_power_of_two(high, right)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """TFLite's QuantizeMultiplier."""
    if real == 0.0:
        return 0, 0
    mantissa, shift = math.frexp(real)
    fixed = int(math.floor(mantissa * 2**31 + 0.5))
    if fixed == 2**31:
        fixed //= 2
        shift += 1
    return (0, 0) if shift < -31 else (fixed, shift)


def _exp_between_negative_quarter_and_zero(a: int) -> int:
    term, third = 1895147668, 715827883
    x = a + 2**28
    x2 = saturating_rounding_doubling_high_mul(x, x)
    x3 = saturating_rounding_doubling_high_mul(x2, x)
    x4 = saturating_rounding_doubling_high_mul(x2, x2)
    inner = saturating_multiply_by_power_of_two(x4, -2) + x3
    tail = saturating_rounding_doubling_high_mul(inner, third) + x2
    tail = saturating_multiply_by_power_of_two(tail, -1)
    return term + saturating_rounding_doubling_high_mul(term, x + tail)


_BARREL = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def exp_on_negative_values(a: int) -> int:
    """exp(a) in Q0.31 for a <= 0 in Q5.26."""
    if a == 0:
        return INT32_MAX
    fraction_bits, quarter = 26, 2**24
    in_range = (a & (quarter - 1)) - quarter
    result = _exp_between_negative_quarter_and_zero(
        saturating_multiply_by_power_of_two(in_range, 5)
    )
    remainder = in_range - a
    for exponent, factor in enumerate(_BARREL, start=-2):
        if remainder & (1 << (fraction_bits + exponent)):
            result = saturating_rounding_doubling_high_mul(result, factor)
    return result


def one_over_one_plus_x(a: int) -> int:
    """1 / (1 + a) for a in [0, 1), both in Q0.31."""
    half_denominator = truncated_quotient(a + INT32_MAX + 1, 2)
    x = 1515870810 + saturating_rounding_doubling_high_mul(half_denominator, -1010580540)
    for _ in range(3):
        product = saturating_rounding_doubling_high_mul(half_denominator, x)
        error = 2**29 - product
        step = saturating_rounding_doubling_high_mul(x, error)
        x += saturating_multiply_by_power_of_two(step, 2)
    return saturating_multiply_by_power_of_two(x, 1)


def softmax_parameters(scale: float, beta: float = 1.0) -> tuple[int, int]:
    """Multiplier and left shift of TFLite's int8 softmax."""
    return quantize_multiplier(min(beta * scale * 2.0**26, float(INT32_MAX)))


def softmax_row(row: Sequence[int], multiplier: int, left_shift: int) -> list[int]:
    """TFLite's reference softmax of one int8 row."""
    radius = math.floor(31.0 * 2.0**26 / 2.0**left_shift)
    largest = max(row)

    def exponential(value: int) -> int:
        scaled = saturating_rounding_doubling_high_mul((value - largest) << left_shift, multiplier)
        return exp_on_negative_values(scaled)

    kept = [value - largest >= -radius for value in row]
    total = sum(
        rounding_divide_by_power_of_two(exponential(value), 12)
        for value, keep in zip(row, kept, strict=True)
        if keep
    )
    headroom = 32 - total.bit_length()
    fraction = ((total << headroom) & 0xFFFFFFFF) - 2**31
    scale = one_over_one_plus_x(fraction)
    result = []
    for value, keep in zip(row, kept, strict=True):
        if not keep:
            result.append(-128)
            continue
        product = saturating_rounding_doubling_high_mul(scale, exponential(value))
        rounded = rounding_divide_by_power_of_two(product, 12 - headroom + 31 - 8)
        result.append(max(-128, min(127, rounded - 128)))
    return result


def inverse_square_root(value: int) -> tuple[int, int]:
    """TFLite's 1 / sqrt(value): a Q31 multiplier and the power of two beside it."""
    if value <= 1:
        return INT32_MAX, 0
    shift = 11
    while value >= 2**29:
        value //= 4
        shift += 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    shift -= pairs
    half = rounding_divide_by_power_of_two((value << (2 * pairs)) >> 1, 1)
    multiply = saturating_rounding_doubling_high_mul
    x = 2**28
    for _ in range(5):
        cube = saturating_multiply_by_power_of_two(multiply(multiply(x, x), x), 6)
        x = saturating_multiply_by_power_of_two(multiply(3 * 2**27, x) - multiply(half, cube), 3)
    multiplier = multiply(x, 1518500250)
    return (multiplier, -shift) if shift >= 0 else (multiplier << -shift, 0)


def normalized_row(row: Sequence[int], zero_point: int) -> list[int]:
    """TFLite's reference L2 normalization of one int8 row."""
    centred = [value - zero_point for value in row]
    multiplier, shift = inverse_square_root(sum(value * value for value in centred))
    scaled = [multiply_by_quantized_multiplier(value, multiplier, shift + 7) for value in centred]
    return [max(-128, min(127, value)) for value in scaled]


def logarithm(x: int, integer_bits: int) -> int:
    """TFLite's log(x) in Q5.26 for x >= 1 with this number of integer bits."""
    multiply, saturated = saturating_rounding_doubling_high_mul, saturating_multiply_by_power_of_two
    sqrt_half, sqrt_sqrt_half, quarter = 1518500250, 1805811301, 2**23
    headroom = 32 - x.bit_length()
    r_a = saturated(multiply(saturated(x, headroom - 1), sqrt_half), 1)
    power_a = ((integer_bits - headroom) << 25) + quarter
    headroom_b = 32 - multiply(x, sqrt_half).bit_length() - 1
    r_b = saturated(x, headroom_b)
    power_b = ((integer_bits - headroom_b) << 25) - quarter
    r, power = min(r_a, r_b), max(power_a, power_b)
    p = truncated_quotient(r + sqrt_sqrt_half + 1, 2)
    q = 2 * (r - sqrt_sqrt_half)
    square = multiply(q, q)
    numerator = multiply(q, r) + multiply(multiply(q, square), 117049297)
    inner = 1057819769 + q + multiply(127690142, square)
    denominator = multiply(p, inner) + multiply(638450708, q)
    quotient = multiply(saturated(numerator, -6), one_over_one_plus_x(denominator))
    return saturated(multiply(power, 1488522236) + quotient, 1)


def log_softmax_row(row: Sequence[int], multiplier: int, left_shift: int) -> list[int]:
    """TFLite's reference log softmax of one int8 row."""
    least = -math.floor(31.0 * 2.0**26 / 2.0**left_shift)
    differences = [value - max(row) for value in row]
    scaled = [multiply_by_quantized_multiplier(d, multiplier, left_shift) for d in differences]
    total = sum(
        rounding_divide_by_power_of_two(exp_on_negative_values(number), 12)
        for d, number in zip(differences, scaled, strict=True)
        if d >= least
    )
    log_of_total = logarithm(total, 12)
    inverse = quantize_multiplier(2.0 ** (31 - left_shift) / multiplier)
    least = max(least - 1, multiply_by_quantized_multiplier(log_of_total + INT32_MIN, *inverse))
    return [
        max(-128, min(127, rounding_divide_by_power_of_two(number - log_of_total, 22) + 127))
        if d > least
        else -128
        for d, number in zip(differences, scaled, strict=True)
    ]
