"""Rounding real weights to int8: to the nearest, or with error feedback.

Error feedback rounds one input after another and lets the remaining weights compensate for the
error just made, as far as the inputs are correlated (the idea behind GPTQ and optimal brain
surgeon).  The goal is not to approximate each weight well but the sum.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Array
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
    x = _thin_samples(x, int(np.prod(places)))
    operands = op.operands(x.astype(np.float64), zero_point) - zero_point
    rows = _thin(operands.reshape(len(operands), -1, operands.shape[-1]))
    each = weight.reshape(len(rows), -1, rows.shape[2])
    if rows.shape[2] > _WIDE:
        few = rows[:, :: -(-rows.shape[1] // _FEW)]
        rounded = np.stack([_feed_back_wide(*pair) for pair in zip(each, few, strict=True)])
    else:
        power = np.matmul(rows.transpose(0, 2, 1), rows) / rows.shape[1]
        rounded = _feed_back(each, power)
    return rounded.reshape(weight.shape).astype(np.int8)


def _thin_samples(x: Array, positions: int) -> Array:
    """Return evenly spread samples that give about `_ROWS` positions; at least six."""
    count = min(len(x), max(_ROWS // positions, 6))
    return x[np.linspace(0, len(x) - 1, count).astype(np.int64)]


def _thin(rows: Array) -> Array:
    """Return at most `_ROWS` positions, evenly spread; ``rows`` is ``[B, positions, D]``."""
    step = -(-rows.shape[1] // _ROWS)
    return rows[:, :: step | 1]


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
