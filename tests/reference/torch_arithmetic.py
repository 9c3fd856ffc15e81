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


def total(attrs: Any, data: Array, scale: Array) -> Array:
    """The sum of dequantized integers in the order of torch's kernel, written as its loops are."""
    axes, along = ([int(axis) for axis in attrs[f"htvm.{name}"]] for name in ("axes", "along"))
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    reals = (data.astype(np.float32) - int(attrs["htvm.input_zero_point"])) * scale
    sizes = [data.shape[axis] for axis in kept]
    rows = reals.transpose([*reversed(axes), *kept]).reshape(-1, *sizes)
    if int(attrs["htvm.lanes"]):
        return _lanes(rows)
    number, step = np.zeros(sizes, int), 1
    for axis in along:
        at = kept.index(axis)
        number += step * np.arange(sizes[at]).reshape(
            [-1 if i == at else 1 for i in range(len(sizes))]
        )
        step *= sizes[at]
    return np.where(number < int(attrs["htvm.columns"]), _column(rows), _row(rows))


def _lanes(rows: Array) -> Array:
    vectors = len(rows) // 8
    lanes = _row(rows[: vectors * 8].reshape(vectors, 8, *rows.shape[1:]))
    made = np.zeros(rows.shape[1:], np.float32)
    for item in (*rows[vectors * 8 :], *lanes):
        made = made + item
    return made


def _row(rows: Array) -> Array:
    quarter = len(rows) // 4
    sums = list(_column(rows[: quarter * 4].reshape(quarter, 4, *rows.shape[1:])))
    for item in rows[quarter * 4 :]:
        sums[0] = sums[0] + item
    return np.asarray(((sums[0] + sums[1]) + sums[2]) + sums[3])


def _column(rows: Array) -> Array:
    levels = [np.zeros(rows.shape[1:], np.float32) for _ in range(4)]
    for done, item in enumerate(rows, start=1):
        levels[0] = levels[0] + item
        for level in range(1, 4):
            if done % 16**level:
                break
            levels[level] = levels[level] + levels[level - 1]
            levels[level - 1] = np.zeros_like(levels[0])
    return np.asarray(((levels[0] + levels[1]) + levels[2]) + levels[3])


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "torch_quantize": quantize,
    "torch_requantize": requantize,
    "torch_total": total,
}
"""Definitions of PrimFuncs by their kind."""
