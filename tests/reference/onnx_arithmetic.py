"""onnxruntime's arithmetic in numpy: float32 where that is exact, Python's rationals elsewhere.

An independent definition of the PrimFuncs that have it, read by their attributes; part of
`tests.reference.interpreter`.  It shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def scales_of(multipliers: Array, shifts: Array) -> Array:
    """float32 numbers from mantissas and shifts."""
    wide = np.ldexp(np.asarray(multipliers, np.float64), -np.asarray(shifts, np.int64))
    narrow = wide.astype(np.float32)
    assert np.array_equal(narrow, wide), "a scale that is no float32"
    return narrow


def float_rounded(acc: Array, scale: Array) -> Array:
    """``rint(float32(acc) * scale)``."""
    product: Array = acc.astype(np.float32) * scale
    assert product.dtype == np.float32
    return np.rint(product).astype(np.int64)


def _integers(attrs: Any, name: str) -> list[int]:
    return [int(value) for value in attrs[f"htvm.{name}"]]


def requantize(attrs: Any, acc: Array, factors: Array) -> Array:
    scale = scales_of(factors[0], factors[1])
    if scale.size > 1:
        shape = [1] * acc.ndim
        shape[int(attrs["htvm.axis"])] = -1
        scale = scale.reshape(shape)
    return np.clip(float_rounded(acc, scale), -(2**30), 2**30)


def binary(attrs: Any, a: Array, b: Array, *_: Array) -> Array:
    """In reals, or as onnxruntime's kernels for x86, in rationals of all pairs of bytes."""
    if len(attrs["htvm.steps"]):
        return _binary_in_reals(attrs, a, b)
    multipliers, shifts = _integers(attrs, "multiplier"), _integers(attrs, "shift")
    scales = [Fraction(m) / 2**shift for m, shift in zip(multipliers, shifts, strict=True)]
    above = 128 if str(attrs["htvm.kernel"]) == "uint8" else 0
    zero_a, zero_b = (zero + above for zero in _integers(attrs, "input_zero_points"))
    zero_out = int(attrs["htvm.output_zero_point"]) + above
    function = str(attrs.get("htvm.function", "add"))

    left, right = np.broadcast_arrays(a, b)
    columns = np.stack([left.reshape(-1), right.reshape(-1)]).astype(np.int64) + above
    pairs, places = np.unique(columns, axis=1, return_inverse=True)
    if function == "multiply":
        products = ((x - zero_a) * (y - zero_b) for x, y in pairs.T.tolist())
        values = [_float32(_float32(item * scales[0]) + zero_out) for item in products]
    else:
        first, second = scales[0], -scales[1] if function == "subtract" else scales[1]
        # It runs along rows, and takes an operand that is one number there as the second one.
        rows = [axis for axis in range(-left.ndim, 0) if left.shape[axis] != 1]
        if not rows or -rows[-1] > a.ndim or a.shape[rows[-1]] == 1:
            first, second, zero_a, zero_b, pairs = second, first, zero_b, zero_a, pairs[::-1]
        fixed = _float32(zero_out - _float32(first * zero_a + _float32(second * zero_b)))
        starts = {y: _float32(fixed + y * second) for y in set(pairs[1].tolist())}
        values = [_float32(starts[y] + x * first) for x, y in pairs.T.tolist()]
    # round() of a Fraction takes ties to even.
    rounded = np.asarray([round(value) for value in values]) - above
    clipped = np.clip(rounded, *_integers(attrs, "clip")).astype(np.int8)
    return clipped[places.reshape(-1)].reshape(left.shape)


def _float32(value: Fraction) -> Fraction:
    """The nearest number of 24 bits, ties to even."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - 23)
    return round(value / unit) * unit


def _binary_in_reals(attrs: Any, a: Array, b: Array) -> Array:
    """Dequantized, combined and quantized in float32."""
    first, second, last = (np.float32(step) for step in attrs["htvm.steps"])
    zero_a, zero_b = _integers(attrs, "input_zero_points")
    x = (a.astype(np.int64) - zero_a).astype(np.float32) * first
    y = (b.astype(np.int64) - zero_b).astype(np.float32) * second
    functions = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
    made = functions[str(attrs.get("htvm.function", "add"))](x, y)
    steps = np.rint(made / last).astype(np.int64) + int(attrs["htvm.output_zero_point"])
    return np.clip(steps, *_integers(attrs, "clip")).astype(np.int8)


def _average_in_reals(attrs: Any, windows: Array) -> Array:
    """Each step rounded to float32, rows one after the other; without the zero point."""
    first, last, zero = (np.float32(step) for step in attrs["htvm.steps"])
    parts = windows.astype(np.float32) * first
    total = _summed(parts.reshape(*parts.shape[:4], -1))
    ratio = total / np.float32(windows.shape[4] * windows.shape[5]) / last
    return np.rint(ratio + zero).astype(np.int64) - int(zero)


def _summed(parts: Array) -> Array:
    """Sums along the last axis, one after the other."""
    total = np.zeros(parts.shape[:-1], np.float32)
    for at in range(parts.shape[-1]):
        total = total + parts[..., at]
    return total


def average(attrs: Any, data: Array, _: Array) -> Array:
    layout = str(attrs["htvm.layout"])
    (fy, fx), (sy, sx) = _integers(attrs, "kernel"), _integers(attrs, "strides")
    top, left, bottom, right = _integers(attrs, "padding")
    (zero,), zero_out = _integers(attrs, "input_zero_points"), int(attrs["htvm.output_zero_point"])
    wide = data.astype(np.int64) - zero
    wide = wide if layout == "NCHW" else wide.transpose(0, 3, 1, 2)
    wide = np.pad(wide, ((0, 0), (0, 0), (top, bottom), (left, right)))
    view = np.lib.stride_tricks.sliding_window_view(wide, (fy, fx), axis=(2, 3))
    total = view[:, :, ::sy, ::sx].sum(axis=(4, 5))
    scale = scales_of(_integers(attrs, "multiplier"), _integers(attrs, "shift"))
    low, high = _integers(attrs, "clip")
    rounded = float_rounded(total, scale[0])
    if len(attrs["htvm.steps"]):
        rounded = _average_in_reals(attrs, view[:, :, ::sy, ::sx])
    result = np.clip(rounded + zero_out, low, high).astype(np.int8)
    return result if layout == "NCHW" else result.transpose(0, 2, 3, 1)


def quantize(attrs: Any, data: Array, _: Array) -> Array:
    ratio = data / np.float32(attrs["htvm.step"])
    limits = np.iinfo(str(attrs["htvm.dtype"]))
    rounded = np.rint(np.where(np.isnan(ratio), np.inf, ratio)) + int(attrs["htvm.zero_point"])
    return np.clip(rounded, limits.min, limits.max).astype(limits.dtype)


def real(_: Any, sums: Array, factors: Array) -> Array:
    return np.asarray(sums.astype(np.float32) * factors, np.float32)


def softmax(attrs: Any, data: Array, table: Array) -> Array:
    distances = data.max(axis=-1, keepdims=True).astype(np.int64) - data
    terms = table.astype(np.int64)[distances]
    total = terms.sum(axis=-1, keepdims=True)
    low, high = _integers(attrs, "clip")
    steps = int(1 // np.float32(attrs["htvm.output_step"])) * 2**16
    # Twice the quotient, floored, and one more: half of it is rounded half up.
    doubled = 2 * terms * steps // (total * 2**16)
    return np.clip((doubled + 1) // 2 + int(attrs["htvm.zero_point"]), low, high)


def conv2d_real(attrs: Any, data: Array, weight: Array, bias: Array) -> Array:
    top, left, bottom, right = _integers(attrs, "padding")
    (sy, sx), (dy, dx) = _integers(attrs, "strides"), _integers(attrs, "dilation")
    groups = int(attrs["htvm.groups"])
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    _, each, fy, fx = weight.shape
    view = np.lib.stride_tricks.sliding_window_view(
        padded, (dy * (fy - 1) + 1, dx * (fx - 1) + 1), axis=(2, 3)
    )[:, :, ::sy, ::sx, ::dy, ::dx]
    parts = [
        np.einsum(
            "ncyxij,kcij->nkyx", view[:, group * each : (group + 1) * each],
            np.split(weight, groups)[group].astype(np.float64),
        )
        for group in range(groups)
    ]  # fmt: skip
    total = np.concatenate(parts, axis=1) + bias.reshape(-1, 1, 1)
    return np.asarray(total, np.float32)


def average_real(attrs: Any, data: Array, _: Array) -> Array:
    (sy, sx), (dy, dx) = _integers(attrs, "strides"), _integers(attrs, "dilation")
    fy, fx = _integers(attrs, "kernel")
    spans = (dy * (fy - 1) + 1, dx * (fx - 1) + 1)
    view = np.lib.stride_tricks.sliding_window_view(data.astype(np.float64), spans, axis=(2, 3))
    return np.asarray(view[:, :, ::sy, ::sx, ::dy, ::dx].mean(axis=(4, 5)), np.float32)


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "onnx_add": binary,
    "onnx_average": average,
    "onnx_binary": binary,
    "onnx_quantize": quantize,
    "onnx_real": real,
    "onnx_requantize": requantize,
    "onnx_softmax": softmax,
    "real_average": average_real,
    "real_conv2d": conv2d_real,
}
"""Definitions of PrimFuncs by their kind."""
