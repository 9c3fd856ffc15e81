"""Sums of two tensors of bytes as the accelerator executes them, where it gives the same results.

Both operands are scaled to int32, added, scaled and rounded.  There are 65,536 pairs of bytes, so
that a sum is taken if all of them have the source's result: TFLite's in double rounding, with its
own factors; all others in single rounding, with factors that are looked for.

Vela makes one operator of a sum with one operand that is not scaled, or by a half as TFLite does.
There, the last multiplier is one between the bounds that the steps of the output give.  If there is
none, both operands get fraction bits, and an offset; and where ties are rounded to even, two, see
`Fractions`.  These are five operators at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Add, Array, Difference, MulShift, OnnxSum, Shift, TfliteRequant
from byoc_dory.layers.layer import value_of
from byoc_dory.soc.ethos_u.exact import Held, Rounding, out_of_range, rounded
from byoc_dory.soc.ethos_u.model import (
    ADD_BITS,
    WIDE_ADD_BITS,
    combined,
    output_zero_point_of,
    scaled_as_tflite,
    zero_points_of,
)

_UNIT_BITS = 30
_UNIT = 1 << _UNIT_BITS
_NEAR = 33
"""Multipliers this far from a sum's own, and nearer, are tried."""
_FINEST = 40
"""Fraction bits to which the CPU's kernel of an `OnnxSum` rounds factors that have more."""
_EVERY = np.arange(-128, 128, dtype=np.int64)


@dataclass(frozen=True)
class Sum:
    """A sum of two tensors as the accelerator executes it: each operand scaled, then the result.

    Attributes:
        multipliers: those of both operands and of the result.
        shifts: likewise.
        zero_points: those of both operands.
        rounding: how all of them round.
        offsets: one or two of what is added before the result is scaled.
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    zero_points: tuple[int, ...]
    rounding: Rounding
    offsets: tuple[int, ...] = (0,)


def sum_of(layer: Add | Difference) -> Sum | str:
    """Return how a sum or difference is executed with the same results for all, or why not."""
    return _sum_of(value_of(layer), Held(layer))


@lru_cache(maxsize=256)
def _sum_of(digest: bytes, holder: Held) -> Sum | str:
    layer = holder.layer
    requant = layer.requant
    if layer.output.dtype == "int16" and isinstance(requant, TfliteRequant):
        return _of_int16(requant)
    if isinstance(requant, TfliteRequant) and len(requant.multiplier) == 3:
        assert isinstance(layer, Add | Difference)
        return _as_tflite(layer, requant)
    assert isinstance(layer, Add)
    if isinstance(requant, OnnxSum) and max(requant.shift) > _FINEST and not requant.steps:
        return f"a factor of 24 bits is below 2**{24 - _FINEST}"
    if isinstance(requant, OnnxSum | Shift | MulShift):
        return _in_one(layer, requant) or _with_fractions(layer, requant)
    return f"the requantization is {type(requant).__name__}, not that of a sum"


def _wanted(layer: Add | Difference) -> Array:
    """Return the result of each pair of bytes, ``[256, 256]``."""
    return np.clip(combined(layer, _EVERY[:, None], _EVERY), *layer.clip)


def _differing(best: int) -> str:
    return f"{best} of 65536 pairs of bytes are rounded differently"


# ------------------------------------------------------------------------ TFLite


def _as_tflite(layer: Add | Difference, requant: TfliteRequant) -> Sum | str:
    """Return a sum with TFLite's factors.

    One operand is scaled by a half, exactly; the other one's multiplier must be odd, or Vela writes
    another one, of which the accelerator rounds differently.
    """
    multipliers, exponents = requant.multiplier, requant.shift
    halved = [pair == (_UNIT, 0) for pair in zip(multipliers[:2], exponents[:2], strict=True)]
    if not any(halved):
        return "neither operand has the larger scale"
    other = 0 if halved[1] else 1
    shifts = (*(31 - ADD_BITS - exponent for exponent in exponents[:2]), 31 - exponents[2])
    refusal = out_of_range(shifts)
    if refusal:
        return refusal
    wanted = _wanted(layer)
    signs = (1, -1 if isinstance(layer, Difference) else 1)
    operands = [_EVERY - zero for zero in requant.input_zero_points]
    half = signs[1 - other] * (operands[1 - other] << (ADD_BITS - 1))
    best = wanted.size
    for distance in range(_NEAR):
        for multiplier in {multipliers[other] - distance, multipliers[other] + distance}:
            if multiplier % 2 == 0 or (multiplier, exponents[other]) == (_UNIT + 1, 0):
                continue
            product = (operands[other] << ADD_BITS) * multiplier
            scaled = signs[other] * rounded(product, 31 - exponents[other], "double")
            total = scaled[:, None] + half if other == 0 else half[:, None] + scaled
            found = rounded(total * multipliers[2], shifts[2], "double")
            found = np.clip(found + requant.output_zero_point, *layer.clip)
            differing = int((found != wanted).sum())
            if not differing:
                chosen = [*multipliers]
                chosen[other] = multiplier
                return Sum(tuple(chosen), shifts, requant.input_zero_points, "double")
            best = min(best, differing)
    return _differing(best)


def _of_int16(requant: TfliteRequant) -> Sum | str:
    """Return a sum of int16 with TFLite's factors, whose scaled operand is compared alone.

    As above, one operand is scaled by a half, and the other's multiplier is odd.
    """
    multipliers, exponents = requant.multiplier, requant.shift
    halved = [pair == (_UNIT, 0) for pair in zip(multipliers[:2], exponents[:2], strict=True)]
    if not any(halved):
        return "neither operand has the larger scale"
    shifts = (*(31 - WIDE_ADD_BITS - exponent for exponent in exponents[:2]), 31 - exponents[2])
    refusal = out_of_range(shifts)
    if refusal or all(halved):
        return refusal or Sum(multipliers, shifts, (0, 0), "double")
    other = 0 if halved[1] else 1
    numbers = np.arange(-(1 << 15), 1 << 15, dtype=np.int64) << WIDE_ADD_BITS
    wanted = scaled_as_tflite(numbers, multipliers[other], exponents[other])
    best = wanted.size
    for distance in range(_NEAR):
        for multiplier in {multipliers[other] - distance, multipliers[other] + distance}:
            if multiplier % 2 == 0 or (multiplier, exponents[other]) == (_UNIT + 1, 0):
                continue
            found = rounded(numbers * multiplier, 31 - exponents[other], "double")
            differing = int((found != wanted).sum())
            if not differing:
                chosen = [*multipliers]
                chosen[other] = multiplier
                return Sum(tuple(chosen), shifts, (0, 0), "double")
            best = min(best, differing)
    return f"{best} of 65536 operands are rounded differently"


# ------------------------------------------------------------------------ others, in one operator

_Numbers: TypeAlias = tuple[int, int]
"""Multiplier and shift, zero points, or another number for each operand."""

_MOVED = tuple(sign * near for near in range(9) for sign in (1, -1))[1:]
"""What is tried to add to sums of bytes."""


def _in_one(layer: Add, requant: OnnxSum | Shift | MulShift) -> Sum | None:
    """Return a sum as one operator, with the source's factors or others nearby; None if none is."""
    zero = output_zero_point_of(layer)
    wanted = _wanted(layer) - zero
    for scaled, zeros in _operands(requant):
        total = _scaled(0, scaled, zeros)[:, None] + _scaled(1, scaled, zeros)
        last = _last(total, wanted, (layer.clip[0] - zero, layer.clip[1] - zero))
        if last is not None:
            multipliers, shifts = zip(*scaled, last, strict=True)
            return Sum(multipliers, shifts, zeros, "single")
    return None


def _operands(
    requant: OnnxSum | Shift | MulShift,
) -> Iterator[tuple[tuple[_Numbers, ...], _Numbers]]:
    """Yield how both operands are scaled, and their zero points."""
    factors, constant = _factors(requant)
    zeros = _zeros(requant)
    if factors[0] == factors[1]:
        # What the source adds moves to the zero points as far as it is an integer there.
        own = sum(zeros) - round(constant / max(factors[0], 2.0**-10))
        for nudge in _MOVED:
            first = (own + nudge) // 2
            second = own + nudge - first
            if -128 <= first <= second <= 127:
                yield ((_UNIT, _UNIT_BITS),) * 2, (first, second)
        return
    if constant or min(factors) <= 0:
        return
    larger = int(factors[1] > factors[0])
    mantissa, exponent = np.frexp(factors[1 - larger] / factors[larger] / 2)
    multiplier, shift = int(np.rint(mantissa * 2.0**31)), 31 - ADD_BITS - int(exponent)
    if out_of_range((shift,)):
        return
    half = _UNIT, 31 - ADD_BITS
    for distance in range(_NEAR):
        # Odd ones: Vela writes another multiplier instead of an even one.
        for each in {multiplier - distance, multiplier + distance}:
            if each % 2 and _UNIT < each < 2 * _UNIT:
                pair = half, (each, shift)
                yield pair if larger == 0 else pair[::-1], zeros


def _zeros(requant: OnnxSum | Shift | MulShift) -> _Numbers:
    zeros = zero_points_of(requant)
    return zeros[0], zeros[-1]


def _scaled(operand: int, scaled: tuple[_Numbers, ...], zeros: _Numbers) -> Array:
    """Return each byte as an operand, ``[256]``."""
    multiplier, shift = scaled[operand]
    return rounded((_EVERY - zeros[operand]) * multiplier, shift, "single")


def _last(total: Array, wanted: Array, limits: tuple[int, int]) -> _Numbers | None:
    """Return multiplier and shift with which all sums become the wanted ones; None if none do."""
    sums, at = np.unique(total, return_inverse=True)
    at, flat = at.reshape(-1), wanted.reshape(-1)
    result = np.empty(sums.size, np.int64)
    result[at] = flat
    if (result[at] != flat).any() or (np.diff(result) < 0).any():
        return None
    rising = np.flatnonzero(np.diff(result))
    # The sum before a step is below half of the way to the next value, the one behind it is not.
    halves = np.stack([result[rising] + 0.5, result[rising + 1] - 0.5])
    bounds = np.stack([sums[rising], sums[rising + 1]]) / halves
    lower = (halves > 0) == np.array([[True], [False]])
    low, high = bounds[lower].max(initial=0.0), bounds[~lower].min(initial=np.inf)
    if not low <= high < np.inf:
        return None
    _, exponent = np.frexp(2 / (low + high))
    shift = 31 - int(exponent)
    multiplier = min(int(np.rint(2.0**shift * 2 / (low + high))), (1 << 31) - 1)
    if out_of_range((shift,)):
        return None
    found = np.clip(rounded(sums * multiplier, shift, "single"), *limits)
    return (multiplier, shift) if np.array_equal(found, result) else None


# ------------------------------------------------------------------------ others, with fractions

_BITS = range(22, 7, -1)
"""Numbers of fraction bits that are tried."""
_LARGEST = 1 << 30
"""What operands with fraction bits may reach, so that their sum and an offset fit int32."""
_NUDGES = (0, 1, -1, 2, -2, 3, -3)
"""What is tried to add to the results of the largest operands, in steps of fractions."""
_OFFSETS = (0, 1, -1, 2, -2)
"""What is tried to add to sums, in steps of fractions."""
_REACH = 12
"""Steps of fractions within which a tie may be passed by all that is tried, and by rounding."""


def _with_fractions(layer: Add, requant: OnnxSum | Shift | MulShift) -> Sum | str:
    """Return a sum with factors near to the source's, and other fraction bits and offsets."""
    zero = output_zero_point_of(layer)
    wanted, limits = _wanted(layer) - zero, (layer.clip[0] - zero, layer.clip[1] - zero)
    factors, constant = _factors(requant)
    zeros = _zeros(requant)
    operands = [_EVERY - each for each in zeros]
    reals = operands[0][:, None] * factors[0] + operands[1] * factors[1] + constant
    from_tie = np.abs(reals - np.floor(reals) - 0.5)
    wrong = np.clip(np.floor(reals + 0.5), *limits) != wanted
    best = int(wrong.sum())
    for bits in _BITS:
        largest = 256 * max(*factors, abs(constant)) * 2.0**bits
        if largest >= _LARGEST or min(factors) <= 0:
            continue
        # Other sums become the same whatever is tried.
        close = from_tie * 2.0**bits <= _REACH
        if wrong[~close].any():
            continue
        rows, columns = np.nonzero(close)
        for pairs in _nudged(factors, bits):
            multipliers, shifts = zip(*pairs, strict=True)
            if out_of_range(shifts):
                continue
            parts = [
                rounded(x * multiplier, shift, "single")
                for x, multiplier, shift in zip(operands, multipliers, shifts, strict=True)
            ]
            offset = round(constant * 2.0**bits)
            sums = parts[0][rows] + parts[1][columns]
            offsets, differing = _offsets(sums, offset, bits, wanted[rows, columns], limits)
            if offsets:
                total = parts[0][:, None] + parts[1]
                offsets, differing = _offsets(total, offset, bits, wanted, limits)
            if offsets:
                every = (*multipliers, _UNIT), (*shifts, _UNIT_BITS + bits)
                return Sum(*every, zeros, "single", offsets)
            best = min(best, differing)
    return _differing(best)


def _factors(requant: OnnxSum | Shift | MulShift) -> tuple[tuple[float, float], float]:
    """Return the factors of both operands, and what is added before rounding."""
    if isinstance(requant, OnnxSum):
        pairs = zip(requant.multiplier, requant.shift, strict=True)
        first, second = (multiplier * 2.0**-shift for multiplier, shift in pairs)
        return (first, second), 0.0
    if isinstance(requant, Shift):
        return (2.0**-requant.shift,) * 2, -0.5
    scale = 2.0 ** -requant.shift[0]
    return (requant.mul[0] * scale,) * 2, requant.add[0] * scale - 0.5


def _nudged(
    factors: tuple[float, float], bits: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield multiplier and shift of both operands, with fraction bits."""
    own = []
    for factor in factors:
        mantissa, exponent = np.frexp(factor * 2.0**bits)
        own.append((min(int(np.rint(mantissa * 2.0**31)), (1 << 31) - 1), 31 - int(exponent)))
    for first in _NUDGES:
        for second in _NUDGES:
            (a, b), (m, n) = own
            yield (a + (first << b >> 8), b), (m + (second << n >> 8), n)


def _offsets(
    total: Array, constant: int, bits: int, wanted: Array, limits: tuple[int, int]
) -> tuple[tuple[int, ...], int]:
    """Return one or two offsets with which all sums are right, if any; and how many are wrong.

    Args:
        total: sums with fraction bits.
        constant: the source's offset, in their steps.
        bits: number of fraction bits.
        wanted: results without their zero point.
        limits: inclusive range of these.
    """
    even: list[int] = []
    odd: list[int] = []
    best = total.size
    for nudge in _OFFSETS:
        offset = constant + nudge
        found = np.clip(rounded(total + offset, bits, "single"), *limits)
        differing = int((found != wanted).sum())
        if not differing:
            return (offset,), 0
        best = min(best, differing)
        if np.array_equal(found >> 1, wanted >> 1):
            even.append(offset)
        if np.array_equal(-(-found >> 1), -(-wanted >> 1)):
            odd.append(offset)
    return ((even[0], odd[0]) if even and odd else ()), best
