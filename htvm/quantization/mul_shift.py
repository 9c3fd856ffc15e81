"""The multiply-shift schemes: an integer multiplier before the right shift of a layer.

``y = clip((acc * mul + add) >> shift)``, with one multiplier per tensor or per output channel and
one shift per layer.  A multiplier with few bits is not a rounded scale here: weights and biases are
rounded for the exact factor ``mul * 2**-shift``, so that it costs no precision, and lets the
weights fill their 8 bits whatever the scales of the activations.  Only weights of few bits stay the
source's own integers, because some cores take less time and memory for these.
"""

from __future__ import annotations

import math

import numpy as np

from byoc_dory.layers import Array, MulShift

GRID = 0.25
"""Octaves between the weight steps that are tried."""
_MOST_SHIFT = 31
_LARGEST_WEIGHT = 127
_FEW_BITS = (-8, 7)
_INT32_MAX = 2**31 - 1


def multiplier_and_shift(units: Array, bits: int, *, nearest: bool = False) -> MulShift:
    """Return the multipliers with the finest factors ``mul * 2**-shift`` not below ``units``.

    Args:
        units: ``[1]`` or ``[K]``, above 0 and at most 1: a step of the sums in steps of the output.
        bits: number of bits of a multiplier.
        nearest: whether a factor may also be below its unit.
    """
    most = 2**bits - 1
    shift = _MOST_SHIFT
    while shift > 0 and math.ceil(float(units.max()) * 2**shift) > most:
        shift -= 1
    rounded = (np.rint if nearest else np.ceil)(units * 2.0**shift)
    mul = np.clip(rounded, 1, most).astype(np.int64)
    return MulShift(tuple(mul.tolist()), (shift,))


def for_own_integers(source: Array, weight: Array, step: float, bits: int) -> MulShift | None:
    """Return the multipliers with which weights stay the source's integers, if these have few bits.

    Args:
        source: the source's weights, int8 ``[K, C / groups, fy, fx]``.
        weight: what they stand for, in the tensor's step.
        step: step of the tensor in steps of the output.
        bits: number of bits of a multiplier.

    Returns:
        ``None`` if they need more than 4 bits, if a channel has no step of its own because those of
        its inputs differ, or if weights of 8 bits would be closer to the source.
    """
    if not _FEW_BITS[0] <= source.min() <= source.max() <= _FEW_BITS[1] or not source.any():
        return None
    integers, rows = (each.reshape(len(each), -1).astype(np.float64) for each in (source, weight))
    power = np.square(integers).sum(axis=1)
    units = (integers * rows).sum(axis=1) / np.maximum(power, 1)
    if not np.allclose(rows, units[:, None] * integers, rtol=1e-9, atol=0):
        return None
    units = np.where(power > 0, units, units.max())
    requant = multiplier_and_shift(units * step, bits, nearest=True)
    made = np.array(requant.mul) * 2.0 ** -requant.shift[0] / step
    error = (np.square(made - units) * power).sum()
    finest = np.abs(rows).max(axis=1) / _LARGEST_WEIGHT
    return requant if error <= rows.shape[1] * np.square(finest).sum() / 12 else None


def row_units(weight: Array, bias: Array) -> Array:
    """Return the step of each output channel's weights, ``[K]``, in the tensor's step.

    At most 1, so that no channel is worse off than with a common step; as small as 8-bit weights
    and int32 sums allow.

    Args:
        weight: real weights ``[K, C / groups, fy, fx]``, in the tensor's step.
        bias: real bias ``[K]``, likewise.
    """
    rows = np.abs(weight).reshape(len(weight), -1)
    # As in `rewrite`: twice the inputs, for a zero point folded into the bias.
    room = max(0.98 * _INT32_MAX - 2 * 128 * 128 * rows.shape[1], 1.0)
    finest = np.maximum(rows.max(axis=1) / _LARGEST_WEIGHT, np.abs(bias) / room)
    return np.clip(finest, 2.0**-_MOST_SHIFT, 1.0)
