"""The types of tensors' elements in a TFLite file, and how constants of each are stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from byoc_dory.layers import Array

ELEMENT_TYPES: Mapping[int, str] = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    5: "string",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    11: "complex128",
    12: "uint64",
    13: "resource",
    14: "variant",
    15: "uint32",
    16: "uint16",
    17: "int4",
    18: "bfloat16",
    19: "int2",
    20: "uint4",
}
"""TFLite's number of a type -> its name, which is numpy's if it has the type."""

PACKED: Mapping[str, int] = {"int4": 4, "int2": 2, "uint4": 4}
"""Types of which a byte holds several, and their bits."""

_OPAQUE = ("string", "resource", "variant", "bfloat16")


def stored_bytes(dtype: str, count: int) -> int | None:
    """Return the bytes of ``count`` elements, or ``None`` if their number does not say."""
    if dtype in _OPAQUE:
        return None
    bits = PACKED.get(dtype) or 8 * np.dtype(dtype).itemsize
    return -(-count * bits // 8)


def elements(raw: Array, dtype: str, count: int) -> Array:
    """Return the elements of a constant, flat.

    Args:
        raw: its bytes, as many as `stored_bytes` says.
        dtype: name of its type.
        count: number of its elements.

    Returns:
        Elements of that type; int8 for int4; the bytes for types without a numpy counterpart.
    """
    if dtype == "int4":
        # The first of two is in the lower half; the last byte of an odd number is half full.
        halves = np.stack([raw << 4, raw], axis=-1).reshape(-1).view("int8") >> 4
        return np.asarray(halves[:count])
    if dtype in PACKED or dtype in _OPAQUE:
        return raw
    return raw.view(dtype) if raw.flags.aligned else np.frombuffer(raw.tobytes(), dtype)
