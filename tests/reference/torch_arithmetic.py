"""Helper: the arithmetic of quantized programs of torch, defined on its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def requantize(attrs: Any, acc: Array, multiplier: Array, addend: Array, shift: Array) -> Array:
    """The nearest integer of each product, halves to the even one; addends have half a step."""
    axis = int(attrs["htvm.axis"])
    shape = [1] * acc.ndim
    shape[axis] = -1
    factor, more, bits = (
        part.astype(object).reshape(shape if part.size > 1 else [1] * acc.ndim)
        for part in (multiplier, addend, shift)
    )
    span = 2**bits
    total = acc.astype(object) * factor + more - span // 2
    whole, rest = total // span, total % span
    up = (2 * rest > span) | ((2 * rest == span) & (whole % 2 == 1))
    return np.asarray((whole + up).clip(-(2**30), 2**30), dtype=np.int32)


def quantize(attrs: Any, data: Array, _: Array) -> Array:
    ratio = data * np.float32(1.0 / float(attrs["htvm.step"]))
    limits = np.iinfo(str(attrs["htvm.dtype"]))
    rounded = np.rint(np.where(np.isnan(ratio), np.inf, ratio)) + int(attrs["htvm.zero_point"])
    return np.clip(rounded, limits.min, limits.max).astype(limits.dtype)


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "torch_quantize": quantize,
    "torch_requantize": requantize,
}
"""Definitions of PrimFuncs by their kind."""
