"""Integers of layers: weights rounded to int8, and multipliers before a right shift.

Weights are rounded to the nearest, or with error feedback, which rounds one input after another and
lets the remaining weights compensate for the error just made, as far as the inputs are correlated
(the idea behind GPTQ and optimal brain surgeon).  The goal is not to approximate each weight well
but the sum.

The multiply-shift schemes are ``y = clip((acc * mul + add) >> shift)``, with one multiplier per
tensor or per output channel and one shift per layer.  A multiplier with few bits is not a rounded
scale here: weights and biases are rounded for the exact factor ``mul * 2**-shift``, so that it
costs no precision, and lets the weights fill their 8 bits whatever the scales of the activations.
Only weights of few bits stay the source's own integers, because some cores take less time and
memory for these.
"""

from __future__ import annotations

import math

import numpy as np

from byoc_dory.layers import Array, MulShift
from patterns.ops.weighted import WeightedOp

_DAMPING = 0.01  # share of the mean input power that counts as uncorrelated
_ROWS = 8192  # number of positions for estimating the correlations
_WIDE = 2048  # inputs of a sum; with more, the correlations are those of few positions
_FEW = 256


def round_nearest(weight: Array) -> Array:
    """Return real weights rounded to the nearest int8, ties to even."""
    return np.clip(np.rint(weight), -128, 127).astype(np.int8)


def round_with_feedback(weight: Array, op: WeightedOp, x: Array, zero_point: int) -> Array:
    """Return real weights as int8 such that the layer's sums change little on given inputs.

    Args:
        weight: weights ``[K, C / groups, fy, fx]`` in steps of the new weights.
        op: the layer they belong to.
        x: int8 inputs ``[N, y, x, C]`` or ``[N, C]`` in the new scale.
        zero_point: zero point of the inputs.
    """
    (_, _, *places, _) = op.operands(x[:1], zero_point).shape
    # Evenly spread samples that give about `_ROWS` positions, but at least six.
    count = min(len(x), max(_ROWS // int(np.prod(places)), 6))
    x = x[np.linspace(0, len(x) - 1, count).astype(np.int64)]
    operands = op.operands(x.astype(np.float64), zero_point) - zero_point
    rows = operands.reshape(len(operands), -1, operands.shape[-1])  # [B, positions, D]
    rows = rows[:, :: -(-rows.shape[1] // _ROWS) | 1]
    each = weight.reshape(len(rows), -1, rows.shape[2])
    if rows.shape[2] > _WIDE:
        few = rows[:, :: -(-rows.shape[1] // _FEW)]
        rounded = np.stack([_feed_back_wide(*pair) for pair in zip(each, few, strict=True)])
    else:
        power = np.matmul(rows.transpose(0, 2, 1), rows) / rows.shape[1]
        rounded = _feed_back(each, power)
    return rounded.reshape(weight.shape).astype(np.int8)


def _feed_back(weight: Array, power: Array) -> Array:
    """Return ``weight [B, K, D]`` rounded under input correlations ``power [B, D, D]``."""
    size = power.shape[-1]
    mean = np.trace(power, axis1=1, axis2=2) / size
    damped = power + (_DAMPING * mean + 1e-6)[:, None, None] * np.eye(size)
    # The strongest inputs first: their errors cost most, and many others can still compensate.
    order = np.argsort(-np.diagonal(damped, axis1=1, axis2=2), axis=1, kind="stable")
    batch = np.arange(len(power))[:, None]
    damped = damped[batch[:, :, None], order[:, :, None], order[:, None, :]]
    rest = np.take_along_axis(weight, order[:, None, :], axis=2).astype(np.float64)
    upper = np.linalg.cholesky(np.linalg.inv(damped)).transpose(0, 2, 1)
    rounded = np.zeros_like(rest)
    for index in range(size):
        rounded[:, :, index] = np.clip(np.rint(rest[:, :, index]), -128, 127)
        error = (rest[:, :, index] - rounded[:, :, index]) / upper[:, index, index][:, None]
        rest[:, :, index:] -= error[:, :, None] * upper[:, None, index, index:]
    result = np.zeros_like(rounded)
    np.put_along_axis(result, order[:, None, :], rounded, axis=2)
    return result


def _feed_back_wide(weight: Array, rows: Array) -> Array:
    """Return ``weight [K, D]`` rounded as `_feed_back` does, in time and memory linear in D.

    The correlations of few positions, ``rows [n, D]``, have rank n: their damped inverse is one of
    n x n (Woodbury), each rounded weight takes a part of rank one from it, and the compensation of
    all remaining weights is n numbers per output channel.
    """
    count, size = rows.shape
    strength = np.square(rows).mean(axis=0)
    damping = _DAMPING * strength.mean() + 1e-6
    order = np.argsort(-strength, kind="stable")
    inputs = np.asarray((rows[:, order] / np.sqrt(count)).T, order="C")  # [D, n]
    inverse = np.linalg.inv(damping * np.eye(count) + inputs.T @ inputs)
    shift = np.zeros((count, len(weight)))
    result = np.zeros(weight.shape)
    for index, row in enumerate(inputs):
        wanted = weight[:, order[index]] + row @ shift
        rounded = np.clip(np.rint(wanted), -128, 127)
        result[:, order[index]] = rounded
        along = inverse @ row
        left = 1.0 - row @ along
        shift += np.outer(along, (wanted - rounded) / left)
        inverse += np.outer(along, along / left)
    return result


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
