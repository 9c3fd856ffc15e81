"""Requantizations in numpy, in exact integers, and the real numbers that they stand for.

They are part of operators' definitions in numpy (`Op.compute`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_dory.layers import (
    AnalogRequant,
    Array,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
)


def factors_of(requant: Requant) -> Array:
    """Return real factors from accumulator steps to output steps, ``[1]`` or ``[K]``."""
    match requant:
        case OnnxRequant():
            return np.ldexp(np.array(requant.multiplier, np.float64), -np.array(requant.shift))
        case TfliteRequant():
            return np.ldexp(np.array(requant.multiplier, np.float64), np.array(requant.shift) - 31)
        case MulShift():
            return np.ldexp(np.array(requant.mul, np.float64), -np.array(requant.shift))
        case Shift():
            return np.array([2.0**-requant.shift])
    raise AssertionError("the factor of an analog layer is not one of its sums")


def offset_of(requant: Requant) -> float | Array:
    """Return the mean addend of a requantization, in output steps.

    Flooring subtracts half a step; a `MulShift` has its own addend.
    """
    if isinstance(requant, MulShift):
        scale = np.ldexp(1.0, -np.array(requant.shift))
        return np.array(requant.add, np.float64) * scale - 0.5 + scale / 2
    if isinstance(requant, Shift):
        return float(-0.5 + 2.0 ** -(requant.shift + 1))
    return 0.0


def zero_point_of(requant: Requant) -> int | None:
    """Return the output's zero point; ``None`` if the requantization does not add it."""
    return requant.output_zero_point if isinstance(requant, TfliteRequant | OnnxRequant) else None


def requantized(acc: Array, requant: Requant, clip: tuple[int, int], dtype: str = "int8") -> Array:
    """Return int64 accumulators, including the bias, clipped and in the type of the output.

    For a ternary layer, the accumulators are the summed results of its converters.
    """
    match requant:
        case Shift():
            out = acc >> requant.shift
        case MulShift() | AnalogRequant():
            mul, add, shift = (np.array(v) for v in (requant.mul, requant.add, requant.shift))
            out = (acc * mul + add) >> shift
        case TfliteRequant():
            parts = (np.array(requant.multiplier, np.int64), np.array(requant.shift, np.int64))
            out = tflite_scale(acc, *parts) + requant.output_zero_point
        case OnnxRequant():
            scale = factors_of(requant).astype(np.float32)
            out = np.rint(acc.astype(np.float32) * scale) + requant.output_zero_point
    return np.clip(out, *clip).astype(dtype)


def tflite_scale(value: Array, multiplier: Any, shift: Any) -> Array:
    """Return TFLite's fixed-point product with its double rounding, on int64."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    high = ((value << left) * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, np.left_shift(1, np.maximum(right - 1, 0)), 0)
    return np.asarray((high + half - ((high < 0) & (right > 0))) >> right)


def converted(sums: Sequence[Array], gain: int, limits: tuple[int, int]) -> Array:
    """Return the converters' results for the sums of all passes, summed."""
    return np.asarray(sum(np.clip(part // gain, *limits) for part in sums))
