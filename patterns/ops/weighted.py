"""Bounds from weights and biases: accumulators of products, and their shifted sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from patterns.ops.requantize import shifted

if TYPE_CHECKING:
    from byoc_dory.layers import Array, Shift
    from patterns.op import Range

__all__ = ["accumulator_bound", "weighted_range"]


def accumulator_bound(weight: Array, bias: Array, dtype: str = "int8") -> int:
    """Return the largest possible |accumulator|: |bias| + 128 * sum |w| (255 if unsigned).

    Args:
        weight: int8 weights, one row (or filter) per output channel.
        bias: int32, one number per output channel.
        dtype: type of the input.
    """
    largest = {"int8": 128, "uint8": 255}[dtype]
    rows = np.abs(weight.astype("int64")).reshape(weight.shape[0], -1).sum(axis=1)
    return int((rows * largest + np.abs(bias.astype("int64"))).max())


def weighted_range(
    weight: Array, bias: Array, read: Range, padded: bool, requant: Shift, clip: Range
) -> Range:
    """Return the output range of a product that is requantized by one right shift.

    Args:
        weight, bias: weight and bias as for `accumulator_bound`.
        read: range of the input.
        padded: whether zeros are also read.
        requant, clip: requantization and clip of the operator.
    """
    low, high = read
    if padded:
        low, high = min(low, 0), max(high, 0)
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    positive = np.maximum(rows, 0).sum(axis=1)
    negative = np.minimum(rows, 0).sum(axis=1)
    sums = bias.astype(np.int64)
    least = int((sums + positive * low + negative * high).min())
    most = int((sums + positive * high + negative * low).max())
    return shifted(least, most, requant, clip)
