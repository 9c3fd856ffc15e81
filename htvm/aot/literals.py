"""C types of numpy dtypes, arrays and numbers as C writes them, and arrays read back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import ModelError, UnsupportedError

C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
"""C types of the dtypes of tensors and constants."""

_WIDTH = 100

MATH_CALL = (
    r"(?:(?:a?(?:cos|sin|tan)h?|atan2|ceil|copysign|erf|exp|exp2|fabs|floor|fmod|hypot|ldexp|log|"
    r"log10|log1p|log2|nearbyint|nextafter|pow|round|sqrt|trunc)f?|isinf|isnan|isfinite)"
)
"""Functions of ``math.h`` that TVM calls, as a regular expression."""

NEEDS_MATH = re.compile(rf"\b(?:{MATH_CALL}(?=\()|INFINITY\b|NAN\b)")
"""What needs that header."""


def shape_text(shape: Iterable[int]) -> str:
    """Return the sizes of a tensor as comments have them, such as "3x3x16"; "" without axes."""
    return "x".join(map(str, shape))


def c_type(dtype: str) -> str:
    """Return the C type of a numpy dtype name.

    Raises:
        UnsupportedError: there is no C type for it in generated code.
    """
    try:
        return C_TYPES[dtype]
    except KeyError:
        raise UnsupportedError(
            f"dtype '{dtype}' has no counterpart in the generated C",
            hint="known are " + ", ".join(C_TYPES),
        ) from None


LOWEST = {"int32": "(-2147483647 - 1)", "int64": "(-9223372036854775807LL - 1)"}
"""The smallest numbers that are no literals: their positive ones do not exist in C."""


def c_array(data: np.ndarray) -> str:
    """Return the elements of an array as C initializers, in C order, in lines of 100 columns."""
    flat = np.asarray(data, order="C").reshape(-1)
    if flat.size == 0:
        raise UnsupportedError("an empty array has no counterpart in C")
    # A weight occurs many times, so each is spelled once; by bits, because 0.0 equals -0.0.
    bits = flat.view(f"u{flat.itemsize}")
    _, first, which = np.unique(bits, return_index=True, return_inverse=True)
    words = [_literal(value) for value in flat[first]]
    # Equal widths, so that a changed value changes a single line.
    width = max(map(len, words))
    words = [word.rjust(width) for word in words]
    per_line = max(1, (_WIDTH - 4) // (width + 2))
    numbers = which.tolist()
    lines = [
        "    " + ", ".join([words[number] for number in numbers[start : start + per_line]]) + ","
        for start in range(0, len(numbers), per_line)
    ]
    return "\n".join(lines)


# C strings of all bytes, in three octal digits, so that no digit behind one belongs to it.
_OCTAL = np.array([f"\\{byte:03o}" for byte in range(256)], "S4")
STRING_BYTES = 4096
"""Bytes of one string; adjacent strings are one."""


def c_string(data: np.ndarray) -> str:
    """Return the elements of an array of bytes as C strings, in C order.

    For compilers only: they read a string about 30 times as fast as a list of numbers.
    """
    flat = np.asarray(data, order="C").reshape(-1).view("u1")
    return "\n".join(
        f'    "{_OCTAL[flat[start : start + STRING_BYTES]].tobytes().decode()}"'
        for start in range(0, flat.size, STRING_BYTES)
    )


def _real(value: float, suffix: str) -> str:
    """Return a number as a real one of C; if it is not finite, as a quotient without a header."""
    if math.isfinite(value):
        return f"{value.hex()}{suffix}"
    sign = "-" if value < 0 else ""
    return f"{sign}{int(not math.isnan(value))}.0{suffix}/0.0{suffix}"


def c_float(value: float) -> str:
    """Return a finite number as a decimal float of C and C++, the shortest for float32."""
    return f"{np.float32(value)!s}f"


def _literal(value: np.generic) -> str:
    if isinstance(value, np.float32 | np.float64):
        return _real(float(value), "f" if isinstance(value, np.float32) else "")
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.uint32 | np.uint64):
        return f"{value}u"
    lowest = isinstance(value, np.integer) and value == np.iinfo(value.dtype).min
    return LOWEST.get(value.dtype.name, str(value)) if lowest else str(value)


# A body has neither of these signs, so that its end is looked for once.
_ARRAY = re.compile(r"\bconst (\w+) (\w+)\[(\d+)\] = \{\n([^{};]*)\n\};")
_DTYPES = {c: dtype for dtype, c in C_TYPES.items()}


def read_c_arrays(text: str, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return every array defined in a text, by its C name.

    Args:
        text: C text with arrays as `c_array` prints them.
        where: file name for messages.

    Raises:
        ModelError: a definition has another form than printed.
    """
    found = {}
    for kind, name, size, body in _ARRAY.findall(text):
        try:
            array, elements = _array(_DTYPES[kind], body), int(size)
        except (KeyError, ValueError, OverflowError) as error:
            raise ModelError(f"the array '{name}' cannot be read", where=where) from error
        if array.size != elements:
            raise ModelError(
                f"the array '{name}' has {array.size} of {elements} elements", where=where
            )
        found[name] = array
    return found


def _array(dtype: str, body: str) -> npt.NDArray[Any]:
    for kind, printed in LOWEST.items():
        body = body.replace(printed, str(np.iinfo(kind).min))
    words = [word.strip() for word in body.replace("\n", " ").split(",")]
    words = words[:-1] if words and not words[-1] else words
    if dtype in ("float32", "float64"):
        return np.array([_read_real(word) for word in words], dtype)
    if dtype == "uint64":
        return np.array([int(word.removesuffix("u")) for word in words], dtype)
    return np.array([int(word.removesuffix("u")) for word in words], np.int64).astype(dtype)


def _read_real(word: str) -> float:
    number, _, zero = word.partition("/")
    value = float.fromhex(number.removesuffix("f"))
    return value * math.inf if zero else value
