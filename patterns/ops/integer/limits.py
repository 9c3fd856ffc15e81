"""How large integers can get, and constants that must fit int32."""

from __future__ import annotations

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.tensor import Array

__all__ = ["INT32_MAX", "constant_of", "magnitude", "wrapping_type"]

INT32_MAX = 2**31 - 1


def magnitude(dtype: str) -> int:
    """The largest magnitude that an integer of this type can have."""
    limits = np.iinfo(dtype)
    return max(-int(limits.min), int(limits.max))


def wrapping_type(worst: int) -> str:
    """The type to compute results of at most this magnitude in: int32, or uint32, which wraps."""
    return "int32" if worst <= INT32_MAX else "uint32"


def constant_of(values: Array, rank: int) -> Array:
    """Integers as an int32 array of at least the given rank, axes of size 1 put in front.

    Raises:
        UnsupportedError: if one does not fit.
    """
    array = np.asarray(values)
    wide = array.astype("int64")
    if array.size and max(-int(wide.min()) - 1, int(wide.max())) > INT32_MAX:
        raise UnsupportedError(
            f"constants from {wide.min()} to {wide.max()}", hint="they must fit int32"
        )
    missing = (1,) * (rank - array.ndim)
    return np.ascontiguousarray(wide.astype("int32").reshape(missing + array.shape))
