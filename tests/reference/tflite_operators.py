"""TFLite's operators in numpy.

An independent definition of their PrimFuncs, read by their attributes; part of
`tests.reference.interpreter`.  It shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference import gemmlowp

Array = npt.NDArray[Any]


def scaled(values: Any, multiplier: Any, shift: Any) -> Array:
    """TFLite's requantization of whole arrays (numpy broadcasting)."""
    values, multiplier, shift = (np.asarray(item, np.int64) for item in (values, multiplier, shift))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = ((values << left) + 2**31) % 2**32 - 2**31
    product = shifted * multiplier
    nudged = product + np.where(product >= 0, 2**30, 1 - 2**30)
    high = np.where(nudged >= 0, nudged // 2**31, -(-nudged // 2**31))
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (high < 0)
    return np.asarray((high >> right) + ((high & mask) > threshold))


def _integers(attrs: Any, name: str) -> list[int]:
    return [int(value) for value in attrs[f"htvm.{name}"]]


def _table(attrs: Any, data: Array, table: Array) -> Array:
    rows = table.reshape(-1, 256)
    if len(rows) == 1:
        return np.take(rows[0], data.astype(np.int64) + 128)
    last = np.moveaxis(data, int(attrs["htvm.axis"]), -1)
    found = np.stack([row[last[..., at].astype(np.int64) + 128] for at, row in enumerate(rows)], -1)
    return np.moveaxis(found, -1, int(attrs["htvm.axis"]))


def _concat(attrs: Any, *parts: Array) -> Array:
    return np.concatenate(parts, axis=int(attrs["htvm.axis"]))


def _slice(attrs: Any, data: Array) -> Array:
    bounds = zip(*(_integers(attrs, name) for name in ("begin", "sizes", "strides")), strict=True)
    for axis, (begin, size, stride) in enumerate(bounds):
        data = np.take(data, [begin + at * stride for at in range(size)], axis=axis)
    return data


def _transpose(attrs: Any, data: Array) -> Array:
    return data.transpose(_integers(attrs, "axes"))


def _nearest(attrs: Any, data: Array, _: Array, __: Array) -> Array:
    axis = str(attrs["htvm.layout"]).index("H")
    data = np.take(data, _integers(attrs, "rows"), axis=axis)
    return np.take(data, _integers(attrs, "columns"), axis=axis + 1)


def _interleave(attrs: Any, data: Array) -> Array:
    axis = str(attrs["htvm.layout"]).index("H")
    size, start, strides = (_integers(attrs, name) for name in ("size", "start", "strides"))
    maps = np.moveaxis(data, (axis, axis + 1), (0, 1))
    out = np.full((*size, *maps.shape[2:]), int(attrs["htvm.value"]), data.dtype)
    for y, x in np.ndindex(*maps.shape[:2]):
        place = (start[0] + y * strides[0], start[1] + x * strides[1])
        if all(0 <= at < limit for at, limit in zip(place, size, strict=True)):
            out[place] = maps[y, x]
    return np.moveaxis(out, (0, 1), (axis, axis + 1))


def _space_to_depth(attrs: Any, data: Array) -> Array:
    block = int(attrs["htvm.block"])
    corners = [data[:, dy::block, dx::block] for dy in range(block) for dx in range(block)]
    return np.concatenate(corners, axis=3)


def _pad_axes(attrs: Any, data: Array) -> Array:
    return np.pad(data, attrs["htvm.widths"], constant_values=int(attrs["htvm.value"]))


def _binary(attrs: Any, a: Array, b: Array, _: Array) -> Array:
    function, (low, high) = str(attrs["htvm.function"]), _integers(attrs, "clip")
    zeros = _integers(attrs, "zero_points")
    if function == "multiply":
        multipliers, shifts = [int(attrs["htvm.multiplier"])], [int(attrs["htvm.shift"])]
    else:
        multipliers, shifts = _integers(attrs, "multipliers"), _integers(attrs, "shifts")
    first, second = a.astype(np.int64) - zeros[0], b.astype(np.int64) - zeros[1]
    if function == "multiply":
        result = scaled(first * second, multipliers[0], shifts[0])
    elif function == "squared_difference":
        bits = 7 if a.dtype == np.int8 else 0
        first = scaled(first << bits, multipliers[0], shifts[0])
        second = scaled(second << bits, multipliers[1], shifts[1])
        result = scaled((first - second) ** 2, multipliers[2], shifts[2])
    else:
        bits = 20 if a.dtype == np.int8 else 15
        first = scaled(first << bits, multipliers[0], shifts[0])
        second = scaled(second << bits, multipliers[1], shifts[1])
        total = first - second if function == "subtract" else first + second
        result = scaled(total, multipliers[2], shifts[2])
    return np.clip(result + zeros[2], low, high).astype(a.dtype)


def _mean(attrs: Any, data: Array, _: Array) -> Array:
    axes, zeros = tuple(_integers(attrs, "axes")), _integers(attrs, "zero_points")
    total = (data.astype(np.int64) - zeros[0]).sum(
        axis=axes, keepdims=bool(attrs["htvm.keep_dims"])
    )
    result = scaled(total, int(attrs["htvm.multiplier"]), int(attrs["htvm.shift"])) + zeros[1]
    limits = np.iinfo(data.dtype)
    return np.clip(result, limits.min, limits.max).astype(data.dtype)


def _l2_normalization(attrs: Any, data: Array) -> Array:
    rows = data.reshape(-1, data.shape[-1])
    zero = int(attrs["htvm.input_zero_point"])
    found = [gemmlowp.normalized_row(row.tolist(), zero) for row in rows]
    return np.asarray(found, np.int8).reshape(data.shape)


def _extreme(attrs: Any, a: Array, b: Array) -> Array:
    larger = str(attrs["htvm.function"]) == "maximum"
    return np.where((a > b) == larger, a, b)


def _reduce_extreme(attrs: Any, data: Array) -> Array:
    pick = np.max if str(attrs["htvm.function"]) == "maximum" else np.min
    axes = tuple(_integers(attrs, "axes"))
    return np.asarray(pick(data, axis=axes, keepdims=bool(attrs["htvm.keepdims"])))


def _arg_extreme(attrs: Any, data: Array) -> Array:
    pick = np.argmax if str(attrs["htvm.function"]) == "maximum" else np.argmin
    return np.asarray(pick(data, axis=int(attrs["htvm.axis"]))).astype(np.int32)


def _select(_: Any, mask: Array, a: Array, b: Array) -> Array:
    return np.where(mask == 1, a, b)


def _bilinear(
    _: Any, data: Array, rows: Array, columns: Array, row_weights: Array, column_weights: Array
) -> Array:
    wide = data.astype(np.int64)
    down = sum(wide[:, rows[i]] * row_weights[i][:, None, None].astype(np.int64) for i in (0, 1))
    total = sum(
        down[:, :, columns[j]] * column_weights[j][:, None].astype(np.int64) for j in (0, 1)
    )
    magnitude = (np.abs(total) + 2**19) // 2**20
    return np.asarray(np.where(total < 0, -magnitude, magnitude).astype(np.int8))


def _matmul(attrs: Any, a: Array, b: Array, _: Array) -> Array:
    zeros, (low, high) = _integers(attrs, "zero_points"), _integers(attrs, "clip")
    turned = [bool(flag) for flag in attrs["htvm.transposed"]]
    first, second = (
        np.swapaxes(part.astype(np.int64) - zero, -1, -2) if swap else part.astype(np.int64) - zero
        for part, zero, swap in zip((a, b), zeros, turned, strict=False)
    )
    product, multiplier, shift = (
        first @ second, int(attrs["htvm.multiplier"]), int(attrs["htvm.shift"])
    )  # fmt: skip
    if a.dtype == np.int16:
        result = (product * multiplier + (1 << (shift - 1))) >> shift
    else:
        result = scaled(product, multiplier, shift)
    return np.clip(result + zeros[2], low, high).astype(a.dtype)


def _piecewise(attrs: Any, data: Array, multipliers: Array, slopes: Any = 1) -> Array:
    zeros, (low, high) = _integers(attrs, "zero_points"), _integers(attrs, "clip")
    centred, parts = data.astype(np.int64) - zeros[0], []
    sides = (("above", centred), ("below", centred * slopes))
    for (name, side), magnitude in zip(sides, multipliers, strict=True):
        multiplier, shift = (int(part) for part in attrs[f"htvm.{name}"])
        parts.append(scaled(side, magnitude, shift) * (-1 if multiplier < 0 else 1))
    result = np.where(centred >= 0, *parts) + zeros[1]
    return np.clip(result, low, high).astype(str(attrs["htvm.dtype"]))


def _wide_conv2d(
    attrs: Any,
    data: Array,
    weight: Array,
    bias: Array,
    multipliers: Array,
    shifts: Array,
    addends: Array | None = None,
) -> Array:
    (sy, sx), (dy, dx) = _integers(attrs, "strides"), _integers(attrs, "dilation")
    groups, (low, high) = int(attrs["htvm.groups"]), _integers(attrs, "clip")
    first = str(attrs["htvm.layout"]) == "NCHW"
    data = data.transpose(0, 2, 3, 1) if first else data
    k, fy, fx, each = weight.shape
    n, y, x, _ = data.shape
    oy, ox = (y - dy * (fy - 1) - 1) // sy + 1, (x - dx * (fx - 1) - 1) // sx + 1
    total = np.zeros((n, oy, ox, k), np.int64) + bias
    for i, j in np.ndindex(fy, fx):
        rows = slice(i * dy, i * dy + (oy - 1) * sy + 1, sy)
        columns = slice(j * dx, j * dx + (ox - 1) * sx + 1, sx)
        part = data[:, rows, columns].astype(np.int64).reshape(n, oy, ox, groups, each)
        taps = weight[:, i, j].astype(np.int64).reshape(groups, k // groups, each)
        total += np.einsum("nyxgc,gkc->nyxgk", part, taps).reshape(n, oy, ox, k)
    wide = shifts.astype(object)
    if addends is None:
        result = (total * multipliers.astype(np.int64) + (1 << (wide - 1))) >> wide
    else:
        # In Python's integers, which nothing exceeds.
        result = _halves_to_even(total.astype(object) * multipliers + addends, wide)
        result += int(attrs["htvm.zero_point"])
    made = np.clip(result, low, high).astype(np.int16)
    return np.asarray(made.transpose(0, 3, 1, 2) if first else made)


def _halves_to_even(raised: Array, shift: Array) -> Array:
    """Quotients of numbers to which half of the divisor was added."""
    span = 2**shift
    whole, rest = raised // span, raised % span
    return whole - ((rest == 0) & (whole % 2 == 1))


def _quantize(attrs: Any, data: Array, scale: Array) -> Array:
    ratio = (data / scale).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(ratio) + 0.5), ratio) + int(attrs["htvm.zero_point"])
    limits = np.iinfo(str(attrs["htvm.dtype"]))
    rounded = np.where(np.isnan(rounded), limits.max, rounded)
    return np.clip(rounded, limits.min, limits.max).astype(limits.dtype)


def _dequantize(attrs: Any, data: Array, scale: Array) -> Array:
    centred = data.astype(np.float64) - int(attrs["htvm.input_zero_point"])
    return np.asarray((centred * scale.astype(np.float64)).astype(np.float32))


def _take(attrs: Any, data: Array, places: Array) -> Array:
    return np.stack(
        [np.take(data, at, axis=int(attrs["htvm.axis"])) for at in places], int(attrs["htvm.axis"])
    )


def _gather(attrs: Any, data: Array, places: Array) -> Array:
    axis = int(attrs["htvm.axis"])
    last = data.shape[axis] - 1
    inside = [max(min(at + last + 1 if at < 0 else at, last), 0) for at in places.reshape(-1)]
    rows = np.stack([np.take(data, at, axis=axis) for at in inside], axis)
    return rows.reshape(*data.shape[:axis], *places.shape, *data.shape[axis + 1 :])


def _attach(attrs: Any, data: Array, constant: Array) -> Array:
    parts = [constant, data] if bool(attrs["htvm.first"]) else [data, constant]
    return np.concatenate(parts, axis=int(attrs["htvm.axis"]))


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "arg_extreme": _arg_extreme,
    "real_arg_extreme": _arg_extreme,
    "select": _select,
    "extreme": _extreme,
    "reduce_extreme": _reduce_extreme,
    "tflite_bilinear": _bilinear,
    "tflite_matmul": _matmul,
    "concat": _concat,
    "dequantize": _dequantize,
    "gather": _gather,
    "interleave": _interleave,
    "attach": _attach,
    "nearest": _nearest,
    "piecewise_rescale": _piecewise,
    "wide_conv2d": _wide_conv2d,
    "wide_matmul": _matmul,
    "pad_axes": _pad_axes,
    "quantize": _quantize,
    "slice": _slice,
    "space_to_depth": _space_to_depth,
    "table": _table,
    "take": _take,
    "tflite_binary": _binary,
    "tflite_l2_normalization": _l2_normalization,
    "tflite_mean": _mean,
    "transpose": _transpose,
}
