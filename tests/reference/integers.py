"""Operators of the integer research flows, and of reals, in numpy.

An independent definition: it reads a PrimFunc's attributes and arguments, and shares no code with
the product.  Python's integers and int64 are used throughout; results are asserted to fit where the
form promises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def _number(attrs: Any, name: str) -> int:
    return int(attrs[f"htvm.{name}"])


def _numbers(attrs: Any, name: str) -> list[int]:
    return [int(value) for value in attrs[f"htvm.{name}"]]


def _wide(values: Array) -> Array:
    return values.astype(np.int64)


def _wrapped(values: Array) -> Array:
    """int64 (modulo 2**64) to int32, modulo 2**32."""
    return (values.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)


def _held(values: Array, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    assert values.size == 0 or limits.min <= values.min() and values.max() <= limits.max
    return values.astype(dtype)


def _rescale(attrs: Any, x: Array, mul: Array, add: Array) -> Array:
    low, high = _numbers(attrs, "clip")
    exact = (x.astype(object) * mul.astype(object) + add.astype(object)) >> _number(attrs, "shift")
    return np.clip(exact, low, high).astype(np.int64)


def _cast(attrs: Any, x: Array) -> Array:
    return _held(x, str(attrs["htvm.dtype"]))


def _combine(attrs: Any, a: Array, b: Array) -> Array:
    function = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
    return _wrapped(function[str(attrs["htvm.function"])](_wide(a), _wide(b)))


def _matmul(attrs: Any, a: Array, b: Array) -> Array:
    second = np.swapaxes(b, -1, -2) if _number(attrs, "transpose_b") else b
    return _wrapped(np.matmul(_wide(a), _wide(second)))


def _total(attrs: Any, x: Array) -> Array:
    keep = bool(_number(attrs, "keepdims"))
    return _wrapped(_wide(x).sum(axis=tuple(_numbers(attrs, "axes")), keepdims=keep))


def _mean(attrs: Any, x: Array) -> Array:
    axes = tuple(_numbers(attrs, "axes"))
    count = math.prod(x.shape[axis] for axis in axes)
    total = _wide(x).sum(axis=axes, keepdims=bool(_number(attrs, "keepdims")))
    return _held((total + count // 2) // count, x.dtype.name)


# ------------------------------------------------------------------------------ rows


def _rows(function: Callable[..., list[int]]) -> Callable[..., Array]:
    """Apply a function of a row to every row."""

    def apply(attrs: Any, x: Array, *constants: Array) -> Array:
        plain = [constant.tolist() for constant in constants]
        rows = [function(attrs, row, *plain) for row in x.reshape(-1, x.shape[-1]).tolist()]
        return np.asarray(rows, np.int64).reshape(x.shape)

    return apply


def _toward_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def _saturate(value: int) -> int:
    return max(-128, min(127, value))


def _softmax_row(attrs: Any, row: list[int], _: list[int]) -> list[int]:
    a, b, c = _numbers(attrs, "coefficients")
    log2, levels = _number(attrs, "log2"), _number(attrs, "levels")
    terms = []
    for value in row:
        t = value - max(row)
        z = min(-t // log2, 31)
        terms.append((a * (t + z * log2 + b) ** 2 + c) >> z)
    return [term * (levels - 1) // sum(terms) for term in terms]


def _ita_softmax_row(attrs: Any, row: list[int]) -> list[int]:
    bits, width = _number(attrs, "step_bits"), _number(attrs, "group") or len(row)

    def halvings(distance: int) -> int:
        return (2 * distance + 2**bits) // 2 ** (bits + 1) if bits else distance

    largest, total = -128, 0
    for start in range(0, len(row), width):
        group = row[start : start + width]
        if max(group) > largest:
            total //= 2 ** halvings(max(group) - largest)
            largest = max(group)
        total += sum(256 // 2 ** halvings(largest - value) for value in group)
    inverse = _number(attrs, "numerator") // total
    return [inverse // 2 ** halvings(largest - value) for value in row]


def _layer_norm_row(attrs: Any, row: list[int], weight: list[int], bias: list[int]) -> list[int]:
    middle = _toward_zero(sum(row), len(row))
    spread = math.isqrt(sum((value - middle) ** 2 for value in row) // len(row) + 1)
    return [
        _saturate((_toward_zero((value - middle) * w, spread) + b) >> _number(attrs, "shift"))
        for value, w, b in zip(row, weight, bias, strict=True)
    ]


def _rms_norm_row(attrs: Any, row: list[int], weight: list[int]) -> list[int]:
    spread = math.isqrt(sum(value * value for value in row) // len(row) + 1)
    return [
        _saturate(_toward_zero(value * w, spread) >> _number(attrs, "shift"))
        for value, w in zip(row, weight, strict=True)
    ]


def _affine_norm_row(attrs: Any, row: list[int], weight: list[int], bias: list[int]) -> list[int]:
    mul, shift = _number(attrs, "mul"), _number(attrs, "shift")
    return [
        _saturate(((value * w + b) * mul) >> shift)
        for value, w, b in zip(row, weight, bias, strict=True)
    ]


# ------------------------------------------------------------------------------ element by element


def _gelu(attrs: Any, x: Array) -> Array:
    b, one = _number(attrs, "b"), _number(attrs, "one")
    wide = _wide(x)
    flat = np.sign(wide) * (one - (np.minimum(np.abs(wide), -b) + b) ** 2)
    return _held(wide * ((one + flat) >> 1), "int32")


def _ita_gelu(attrs: Any, x: Array, _: Array) -> Array:
    """From the polynomial, value by value; the table that the call carries is not looked at."""
    b, c, mul = (_number(attrs, name) for name in ("b", "c", "mul"))
    step = 2 ** _number(attrs, "shift")

    def value(q: int) -> int:
        q = max(q, -127)
        inner = b + (-b if abs(q) > -b else abs(q))
        error = inner * inner + c
        product = q * (c + (error if q > 0 else -error if q < 0 else 0)) * mul
        rounded = math.floor(Fraction(product, step) + Fraction(1, 2))
        return _saturate(rounded + _number(attrs, "add"))

    values = [value(q) for q in x.reshape(-1).tolist()]
    return np.asarray(values, np.int64).reshape(x.shape)


def _accumulate(attrs: Any, *parts: Array) -> Array:
    mul, add, shift = (_number(attrs, name) for name in ("mul", "add", "shift"))
    low, high = _numbers(attrs, "clip")
    total = np.sum([part.astype(object) for part in parts], axis=0)
    return np.clip((total * mul + add) // 2**shift, low, high).astype(np.int64)


def _hard_swish(attrs: Any, x: Array) -> Array:
    three, six, sixth = (_number(attrs, name) for name in ("three", "six", "sixth"))
    wide = _wide(x)
    return _held(wide * np.clip(wide + three, 0, six) * sixth, "int32")


def _divide(attrs: Any, x: Array) -> Array:
    return _held(_wide(x) * _number(attrs, "numerator") // _number(attrs, "denominator"), "int32")


def _quotient(attrs: Any, a: Array, b: Array) -> Array:
    factor, eta, eps = (_number(attrs, name) for name in ("factor", "eta", "eps"))

    def one(x: int, y: int) -> int:
        divisor = eta * int(y) + eps
        if divisor == 0:
            return 0
        dividend = factor * int(x)
        half = math.floor(divisor / 2)
        return _toward_zero(dividend + half if dividend >= 0 else dividend - half, divisor)

    return _wrapped(np.vectorize(one, otypes=[np.int64])(a, b))


# ------------------------------------------------------------------------------ reals


def _real(attrs: Any, a: Array, b: Array) -> Array:
    functions: Mapping[str, Callable[[Array, Array], Array]] = {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "divide": np.divide,
        "minimum": np.minimum,
        "maximum": np.maximum,
    }
    return functions[str(attrs["htvm.function"])](a, b)


def _real_matmul(_: Any, a: Array, b: Array) -> Array:
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*shape, a.shape[-2], b.shape[-1]), np.float32)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def _real_map(attrs: Any, x: Array, _: Array) -> Array:
    functions: Mapping[str, Callable[[Array], Array]] = {
        "erf": np.vectorize(math.erf, otypes=[np.float64]),
        "tanh": np.tanh,
    }
    return functions[str(attrs["htvm.function"])](x.astype(np.float64)).astype(np.float32)


def _real_exp(_: Any, x: Array, __: Array, ___: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float64)).astype(np.float32)


def _real_log(_: Any, x: Array, __: Array, ___: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.log(x.astype(np.float64)).astype(np.float32)


def _real_reduce(attrs: Any, x: Array) -> Array:
    axes = tuple(int(axis) for axis in attrs["htvm.axes"])
    function = {"add": np.sum, "maximum": np.max}[str(attrs["htvm.function"])]
    return np.asarray(function(x.astype(np.float64), axis=axes, keepdims=True), np.float32)


def _real_bilinear(_: Any, x: Array, rows: Array, columns: Array, dy: Array, dx: Array) -> Array:
    total = np.zeros((), np.float32)
    for i, j in np.ndindex(2, 2):
        part = x[:, :, rows[i]][:, :, :, columns[j]]
        total = total + (dx[j][None, :] * dy[i][:, None]) * part
    return np.asarray(total, np.float32)


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "accumulate": _accumulate,
    "cast": _cast,
    "integer_affine_norm": _rows(_affine_norm_row),
    "integer_combine": _combine,
    "integer_divide": _divide,
    "integer_gelu": _gelu,
    "integer_hard_swish": _hard_swish,
    "integer_layer_norm": _rows(_layer_norm_row),
    "integer_matmul": _matmul,
    "integer_mean": _mean,
    "integer_quotient": _quotient,
    "integer_rms_norm": _rows(_rms_norm_row),
    "integer_softmax": _rows(_softmax_row),
    "integer_total": _total,
    "ita_gelu": _ita_gelu,
    "ita_softmax": _rows(_ita_softmax_row),
    "real_bilinear": _real_bilinear,
    "real_combine": _real,
    "real_exp": _real_exp,
    "real_log": _real_log,
    "real_map": _real_map,
    "real_matmul": _real_matmul,
    "real_reduce": _real_reduce,
    "real_round": lambda _, x, __: np.rint(x),
    "real_sqrt": lambda _, x, __, ___: np.sqrt(np.maximum(x, 0)),
    "rescale": _rescale,
}
"""By kind of the PrimFunc.  int64 results are cast by the caller to the type the form declares."""
