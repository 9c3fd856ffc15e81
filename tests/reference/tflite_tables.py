"""TFLite's functions of int16 in numpy, which are tables with lines between their points.

An independent definition of their PrimFuncs; part of `tests.reference.interpreter`.  It shares no
code with the product; nor the tables, which are computed here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.reference.tflite_operators import Array, scaled


def _sigmoid_points() -> Array:
    """logistic(n / 24) in Q0.16, between chord and tangent: half the chord's error is added."""
    exact = 65536 / (1 + np.exp(-np.arange(0, 128.5, 0.25) / 12))
    own, middle, following = exact[0:512:2], exact[1:513:2], exact[2:514:2]
    points = np.floor(own + (2 * middle - own - following) / 4 + 0.5).astype(np.int64)
    points[255] = 65535
    return points


def _sigmoid(attrs: Any, data: Array, _: Array) -> Array:
    multiplier, shift = int(attrs["htvm.multiplier"]), int(attrs["htvm.shift"])
    points, wide = _sigmoid_points(), data.astype(np.int64) * multiplier
    number = (wide + (1 << (shift - 1)) >> shift) if shift else wide
    fine = 9 if str(attrs["htvm.function"]) == "logistic" else 8
    place, rest = np.abs(number) >> fine, np.abs(number) % (1 << fine)
    inside = np.minimum(place, 254)
    value = (points[inside] << fine) + rest * (points[inside + 1] - points[inside])
    if fine == 9:
        value = np.where(place >= 255, 32767 << 10, value)
        result = np.where(number >= 0, value + 512, (1 << 25) - value + 511) >> 10
    else:
        value = np.where(place >= 255, 65535 << 8, value)
        result = np.where(number >= 0, value - (1 << 23) + 128, (1 << 23) - value + 127) >> 8
    return result.astype(np.int16)


def _rounded(values: Array) -> Array:
    return np.where(values < 0, np.ceil(values - 0.5), np.floor(values + 0.5)).astype(np.float32)


def _sampled(function: Callable[[Array], Array], first: Any, last: Any) -> Array:
    """513 points of a function in Q0.15; arithmetic is that of float32."""
    real = np.float32
    step = (last - first) / real(512)
    output = real(2) / real(65535)
    unit = real(65536) / (real(32767) * output + real(32768) * output)
    at = np.arange(512).astype(real)
    own = function(first + at * step) * unit
    middle = function(first + at * step + step / real(2)) * unit
    following = function(first + (at + real(1)) * step) * unit
    chord = _rounded((following + _rounded(own)) / real(2))
    points = _rounded(own) - _rounded((chord - _rounded(middle)) / real(2))
    end = _rounded(function(np.asarray([last])) * unit)
    return np.clip(np.concatenate([points, end]), -32768, 32767).astype(np.int64)


def _looked_up(points: Array, values: Array) -> Array:
    values = np.clip(values, -32768, 32767)
    place, rest = (values + 32768) // 128, values % 128
    return points[place] + ((points[place + 1] - points[place]) * rest + 64) // 128


def _softmax(attrs: Any, data: Array, *_: Array) -> Array:
    real = np.float32
    reach = -(real(10) / real(65535) * real(65535))
    exponential = _sampled(lambda x: np.exp(x.astype(float)).astype(real), reach, real(0))
    reciprocal = _sampled(lambda x: real(1) / (real(1) + x), real(0), real(1))
    wide = data.astype(np.int64)
    below = wide - wide.max(axis=-1, keepdims=True)
    difference = scaled(below, int(attrs["htvm.multiplier"]), int(attrs["htvm.shift"]))
    terms = _looked_up(exponential, difference + 32767)
    total = terms.sum(axis=-1, keepdims=True)
    zeros = 32 - np.vectorize(int.bit_length, otypes=[np.int64])(total.astype(object))
    one_to_two = ((total << (zeros - 1)) + (1 << 13)) >> 14
    inverse = _looked_up(reciprocal, one_to_two - 65536 - 32768)
    result = (terms * inverse + (1 << (30 - zeros))) >> (31 - zeros)
    return np.clip(result, 0, 32767).astype(np.int16)


PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "wide_sigmoid": _sigmoid,
    "wide_softmax": _softmax,
}
