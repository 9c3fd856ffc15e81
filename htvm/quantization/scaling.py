"""Requantizations over a batch, in numpy: exact integer arithmetic.

Calibrating runs a network on hundreds of samples.  Compiling each operator for it
(`htvm.quantization.evaluate`) would take longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    AnalogRequant,
    Array,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
)

__all__ = [
    "Scheme",
    "as_scheme",
    "converted",
    "factors_of",
    "offset_of",
    "requantize",
    "tflite_scale",
    "zero_point_of",
]

Scheme: TypeAlias = Shift | MulShift
"""Requantizations of 8-bit accelerators, which a retargeted network has."""


def factors_of(requant: Requant) -> Array:
    """Real factors from accumulator steps to output steps, ``[1]`` or ``[K]``."""
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
    """What a requantization adds on average, in output steps: half a step less by flooring, and the
    addend of a `MulShift`."""
    if isinstance(requant, MulShift):
        scale = np.ldexp(1.0, -np.array(requant.shift))
        return np.array(requant.add, np.float64) * scale - 0.5 + scale / 2
    if isinstance(requant, Shift):
        return float(-0.5 + 2.0 ** -(requant.shift + 1))
    return 0.0


def zero_point_of(requant: Requant) -> int:
    """The zero point of the output, where the requantization adds it."""
    return requant.output_zero_point if isinstance(requant, TfliteRequant | OnnxRequant) else 0


def as_scheme(requant: Requant, name: str) -> Scheme:
    """A requantization that must be an accelerator's; ``name`` is the operator's.

    Raises:
        UnsupportedError: if it is none.
    """
    if not isinstance(requant, Shift | MulShift):
        raise UnsupportedError("not in the shift scheme", where=f"operator '{name}'")
    return requant


def requantize(acc: Array, requant: Requant, clip: tuple[int, int]) -> Array:
    """int64 accumulators, bias included, to clipped int8.

    Of a ternary layer, what its converters made of them.
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
    return np.clip(out, *clip).astype(np.int8)


def tflite_scale(value: Array, multiplier: Any, shift: Any) -> Array:
    """TFLite's fixed-point multiplication with its double rounding, on int64."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    high = ((value << left) * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, np.left_shift(1, np.maximum(right - 1, 0)), 0)
    return np.asarray((high + half - ((high < 0) & (right > 0))) >> right)


def converted(sums: Sequence[Array], gain: int, limits: tuple[int, int]) -> Array:
    """What the converters make of the sums of all passes, summed."""
    return np.asarray(sum(np.clip(part // gain, *limits) for part in sums))
