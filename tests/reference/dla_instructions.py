"""Instructions of the accelerator in plain Python numbers.

An independent definition of what `docs/reference/dla-isa.md` says; it shares no code with the
product.  Tensors are numpy arrays ``[y][x][channel]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def wrapped(value: int) -> int:
    """``value`` modulo 2^32, as a signed number."""
    return (value + 2**31) % 2**32 - 2**31


def clipped(value: int, p: Mapping[str, Any]) -> int:
    """A sum after its requantization; Python's shift floors."""
    low, high = p["clip"]
    return int(min(max(wrapped(value) >> p["shift"], low), high))


def _windows(x: Array, p: Mapping[str, Any]) -> Any:
    """For each output position: its (ky, kx, y, x) that are inside the input."""
    (fy, fx), (sy, sx), (top, left) = p["kernel"], p["stride"], p["pad"]
    for oy in range(p["out"][0]):
        for ox in range(p["out"][1]):
            yield (
                oy,
                ox,
                [
                    (ky, kx, oy * sy - top + ky, ox * sx - left + kx)
                    for ky in range(fy)
                    for kx in range(fx)
                    if 0 <= oy * sy - top + ky < x.shape[0]
                    and 0 <= ox * sx - left + kx < x.shape[1]
                ],
            )


def convolve(x: Array, weights: Array, bias: Array, p: Mapping[str, Any]) -> Array:
    """int32 sums of ``weights[K][fy][fx][C]``."""
    out = np.zeros((*p["out"], len(weights)), np.int64)
    for oy, ox, taps in _windows(x, p):
        for k in range(len(weights)):
            total = int(bias[k])
            for ky, kx, y, column in taps:
                total += int(x[y, column].astype(int) @ weights[k, ky, kx].astype(int))
            out[oy, ox, k] = wrapped(total)
    return out


def convolve_depthwise(x: Array, weights: Array, bias: Array, p: Mapping[str, Any]) -> Array:
    """int32 sums of ``weights[C][fy][fx]``."""
    out = np.zeros((*p["out"], len(weights)), np.int64)
    for oy, ox, taps in _windows(x, p):
        for c in range(len(weights)):
            total = sum(int(x[y, column, c]) * int(weights[c, a, b]) for a, b, y, column in taps)
            out[oy, ox, c] = wrapped(total + int(bias[c]))
    return out


def pool(x: Array, p: Mapping[str, Any], average: bool) -> Array:
    """Maximum, or average with halves rounded up; 0 of no element."""
    out = np.zeros((*p["out"], x.shape[2]), np.int64)
    for oy, ox, taps in _windows(x, p):
        for c in range(x.shape[2]):
            values = [int(x[y, column, c]) for _, _, y, column in taps]
            if values:
                n = len(values)
                out[oy, ox, c] = (2 * sum(values) + n) // (2 * n) if average else max(values)
    return out


ELEMENTS: dict[str, Callable[[int, int, Mapping[str, Any]], int]] = {
    "OP_ACT_RELU": lambda a, b, p: max(a, 0),
    "OP_ACT_LRELU": lambda a, b, p: a if a >= 0 else a >> p["alpha"],
    "OP_E_ABS": lambda a, b, p: min(abs(a), 127),
    "OP_C_MIN": lambda a, b, p: min(a, b),
    "OP_C_MAX": lambda a, b, p: max(a, b),
    "OP_E_ADD": lambda a, b, p: clipped(a + b, p),
    "OP_E32_ADD": lambda a, b, p: wrapped(a + b),
    "OP_E32_SHR": lambda a, b, p: clipped(a, p) if p["requant"] else a >> p["shift"],
    "OP_E32_SHL": lambda a, b, p: wrapped(a << p["shift"]),
}
"""Element-wise instructions: a function of one or two elements."""
