"""Bounds of integers, and constants that must fit int32."""

from __future__ import annotations

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.layer import Array

INT32_MAX = 2**31 - 1


def magnitude(dtype: str) -> int:
    """Return the largest magnitude that an integer of this type can have."""
    limits = np.iinfo(dtype)
    return max(-int(limits.min), int(limits.max))


def wrapping_type(worst: int) -> str:
    """Return the type for results of at most this magnitude: int32, or uint32, which wraps."""
    return "int32" if worst <= INT32_MAX else "uint32"


def constant_of(values: Array, rank: int) -> Array:
    """Return integers as an int32 array of at least the given rank, with leading axes of size 1.

    Raises:
        UnsupportedError: an integer does not fit.
    """
    array = np.asarray(values)
    wide = array.astype("int64")
    if array.size and max(-int(wide.min()) - 1, int(wide.max())) > INT32_MAX:
        raise UnsupportedError(
            f"constants from {wide.min()} to {wide.max()}", hint="they must fit int32"
        )
    missing = (1,) * (rank - array.ndim)
    return np.asarray(wide.astype("int32").reshape(missing + array.shape), order="C")


def check_int32(low: int, high: int, where: str) -> None:
    """Refuse values beyond int32, whose overflow no operator's definition includes.

    Raises:
        UnsupportedError: values from ``low`` to ``high`` do not fit.
    """
    if low < -INT32_MAX - 1 or high > INT32_MAX:
        raise UnsupportedError(
            f"values between {low} and {high} do not fit 32 bits",
            where=where,
            hint="smaller weights, biases or requantization factors are needed: quantize with "
            "larger scales of weights, or split the input channels",
        )
