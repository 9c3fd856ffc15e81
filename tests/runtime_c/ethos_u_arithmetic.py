"""Helper: the Ethos-U's arithmetic in numpy, as its public descriptions have it.

Written from definitions, with Python's integers; it shares no code with the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def _rounded(product: int, shift: int, rounding: str) -> int:
    if shift == 0:
        return product
    if rounding == "TRUNCATE":
        size = abs(product) >> shift
        return -size if product < 0 else size
    if rounding == "TFL" and shift > 31:
        # gemmlowp: the high half of a doubled product to the nearest integer, halves away from
        # zero, but up if negative; then to the nearest power of two, halves away from zero.
        nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
        high = abs(product + nudge) >> 31
        high = high if product + nudge >= 0 else -high
        rest, power = shift - 31, 1 << (shift - 31)
        remainder = high & (power - 1)
        threshold = (power - 1 >> 1) + (1 if high < 0 else 0)
        return (high >> rest) + (1 if remainder > threshold else 0)
    return (product + (1 << (shift - 1))) >> shift


def scaled(values: Array, multiplier: Any, shift: Any, rounding: str) -> Array:
    """values * multiplier / 2 ** shift, exact, then rounded; with numpy's broadcasting."""
    one = np.frompyfunc(lambda v, m, s: _rounded(int(v) * int(m), int(s), rounding), 3, 1)
    return np.asarray(one(values, multiplier, shift), object)


def limited(values: Array, zero_point: int, low: int, high: int) -> Array:
    """The zero point added, then limits."""
    return np.clip((np.asarray(values, object) + zero_point).astype(object), low, high)


def bricks(data: Array) -> Array:
    """[rows][columns][channels] -> NHCWB16: [rows][channels / 16][columns][16], with zeros."""
    rows, columns, channels = data.shape
    out = np.zeros((rows, -(-channels // 16), columns, 16), data.dtype)
    for c in range(channels):
        out[:, c // 16, :, c % 16] = data[:, :, c]
    return out


def unbricked(data: Array, channels: int) -> Array:
    """The reverse of `bricks`."""
    return np.stack([data[:, c // 16, :, c % 16] for c in range(channels)], -1)


def upscaled(data: Array, mode: int, rows: int, columns: int) -> Array:
    """0: as it is; 1: every element twice in both directions; 2: zeros between."""
    if mode == 0:
        return data
    out = np.zeros((rows, columns, data.shape[2]), np.int64)
    for y in range(rows):
        for x in range(columns):
            if mode == 1 or (y % 2 == 0 and x % 2 == 0):
                out[y, x] = data[y // 2, x // 2]
    return out
