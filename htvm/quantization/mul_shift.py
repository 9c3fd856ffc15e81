"""The multiply-shift schemes: an integer multiplier before the right shift of a layer.

``y = clip((acc * mul + add) >> shift)``, with one multiplier per tensor or per output channel and
one shift per layer.  A multiplier with few bits is not a rounded scale here: weights and biases are
rounded for the exact factor ``mul * 2**-shift``, so that it costs no precision, and lets the
weights fill their 8 bits whatever the scales of the activations.
"""

from __future__ import annotations

import math

import numpy as np

from byoc_dory.layers import Array, MulShift

__all__ = ["GRID", "multiplier_and_shift", "row_units"]

GRID = 0.25
"""Octaves between the weight steps that are tried."""
_MOST_SHIFT = 31
_LARGEST_WEIGHT = 127
_INT32_MAX = 2**31 - 1


def multiplier_and_shift(units: Array, bits: int) -> MulShift:
    """Return the multipliers with the finest factors ``mul * 2**-shift`` not below ``units``.

    Args:
        units: ``[1]`` or ``[K]``, above 0 and at most 1: a step of the sums in steps of the output.
        bits: number of bits of a multiplier.
    """
    most = 2**bits - 1
    shift = _MOST_SHIFT
    while shift > 0 and math.ceil(float(units.max()) * 2**shift) > most:
        shift -= 1
    mul = np.clip(np.ceil(units * 2.0**shift), 1, most).astype(np.int64)
    return MulShift(tuple(mul.tolist()), (shift,))


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
