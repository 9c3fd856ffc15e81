"""Helper: a C program that calls the functions for RISC-V's vectors, and what they compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GIVEN, RESULT = 16384, 8192
"""Bytes that the program reads and writes."""

_SHIFTS = ("right", "left")
_OPERATIONS = "\n    ".join(
    f"htvm_many_store32(to, htvm_many_{name}{ending}(a, {operand}, n), n); to += n;"
    for ending, shift, other in (("", "shift", "b"), ("_x", "number & 31", "number"))
    for name in ("add", "sub", "mul", *_SHIFTS, "min", "max")
    for operand in [shift if name in _SHIFTS else other]
)

PROGRAM = f"""
#include <stdint.h>
#include "htvm_vectors.h"
#define OUTSIDE __attribute__((section(".noinit"), aligned(16)))
OUTSIDE uint32_t given[{GIVEN // 4}];
OUTSIDE uint32_t result[{RESULT // 4}];

/* Words: a, b, shifts, sums, multipliers, left shifts, factors, drops, nudges, totals: 16 each. */
static int32_t *many(int32_t *to, const uint32_t *from)
{{
    const uint32_t n = from[0];
    const int32_t *const w = (const int32_t *)(from + 3), number = (int32_t)from[1];
    const htvm_many_t a = htvm_many_load32(w, n), b = htvm_many_load32(w + 16, n);
    const htvm_many_t shift = htvm_many_load32(w + 32, n), sum = htvm_many_load32(w + 48, n);
    const htvm_many_t multiplier = htvm_many_load32(w + 64, n), left = htvm_many_load32(w + 80, n);
    const htvm_many_t low = htvm_many_all(-9, n), high = htvm_many_all(7, n);
    {_OPERATIONS}
    htvm_many_store32(to, htvm_many_clip(a, low, high, n), n);
    htvm_many_store32(to + n, htvm_many_clip_x(a, -9, 7, n), n);
    htvm_many_store32(to + 2 * n, htvm_many_load8((const int8_t *)w + 1, n), n);
    htvm_many_store32(to + 3 * n, htvm_many_load8u((const uint8_t *)w + 3, n), n);
    htvm_many_store32(to + 4 * n, htvm_many_rescale(sum, multiplier, left, n), n);
    htvm_many_store32(to + 5 * n, htvm_many_rescale_x(sum, w[64], w[80], n), n);
    htvm_many_store32(to + 6 * n,
                      htvm_many_float_product(htvm_many_load32(w + 144, n),
                                              htvm_many_load32(w + 96, n),
                                              htvm_many_load32(w + 112, n),
                                              htvm_many_load32(w + 128, n), n), n);
    to += 7 * n;
    for (uint32_t i = 0; i < 3 * n + 2 * n; i++) {{
        to[i] = 0;
    }}
    htvm_many_scatter32(to, 3, a, n);
    htvm_many_scatter8((int8_t *)(to + 3 * n), 2, a, n);
    htvm_many_store8((int8_t *)(to + 4 * n), a, n);
    return to + 5 * n;
}}

/* Products of windows, requantized: pixels, channels, runs, run, then places, starts, bias,
 * multipliers, left shifts, data, weights. */
static int32_t *windows(int32_t *to, const uint32_t *from)
{{
    const uint32_t pixels = from[0], channels = from[1], runs = from[2], run = from[3];
    const int32_t *const places = (const int32_t *)(from + 9), *const starts = places + pixels;
    const int32_t *const bias = starts + runs, *const multipliers = bias + channels;
    const int8_t *const left = (const int8_t *)(multipliers + channels), *const x = left + from[4];
    const int8_t *const weights = x + from[5];
    if (from[6] != 0) {{
        htvm_vectors_products(to, x, places, weights, starts, bias, runs, run, pixels, channels);
    }} else {{
        htvm_vectors_only_products(to, x, places, weights, starts, runs, run, pixels, channels);
    }}
    htvm_vectors_rescale((int8_t *)(to + pixels * channels), to, multipliers, left, pixels,
                         channels, -3, (int32_t)from[7], (int32_t)from[8]);
    return to + pixels * channels + (pixels * channels + 3) / 4;
}}

/* Depthwise sums of a row: pixels, channels, taps, step, then places, bias, data, weights. */
static int32_t *row(int32_t *to, const uint32_t *from)
{{
    const uint32_t pixels = from[0], channels = from[1], taps = from[2];
    const int32_t *const places = (const int32_t *)(from + 5), *const bias = places + taps;
    const int8_t *const x = (const int8_t *)(bias + channels);
    htvm_vectors_sums(to, x, places, x + from[4], bias, taps, pixels, from[3], channels);
    return to + pixels * channels;
}}

__attribute__((noinline)) void first(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) void second(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) int32_t net_run(void);
void first(uint32_t *to, const uint32_t *from)
{{
    int32_t *out = (int32_t *)to;
    for (; from[0] != 0; from += from[1]) {{
        out = from[0] == 1   ? many(out, from + 2)
              : from[0] == 2 ? windows(out, from + 2)
                             : row(out, from + 2);
    }}
}}
void second(uint32_t *to, const uint32_t *from)
{{
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
}}
int32_t net_run(void)
{{
    first(result, given);
    __asm__ volatile("" ::: "memory");
    second(result, given);
    __asm__ volatile("" ::: "memory");
    return 0;
}}
int main(void) {{ return net_run(); }}
"""


@dataclass(frozen=True)
class Section:
    """A call: what the program reads, and the words that it must write."""

    given: np.ndarray
    expected: np.ndarray


def _section(kind: int, parts: list[np.ndarray], expected: np.ndarray) -> Section:
    words = np.concatenate([part.astype("int64").astype("uint32") for part in parts])
    head = np.array([kind, 2 + len(words)], "uint32")
    return Section(
        np.concatenate([head, words]), expected.astype("int64").astype("uint32").view("int32")
    )


def _packed(values: np.ndarray) -> np.ndarray:
    """Bytes as words, filled up."""
    flat = np.asarray(values, order="C").astype("int8").ravel()
    return np.pad(flat, (0, -len(flat) % 4)).view("uint32")


def _bytes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Any bytes, or only the largest and the smallest."""
    if rng.random() < 0.3:
        return rng.choice(np.array([-128, 127], "int8"), shape)
    return rng.integers(-128, 128, shape).astype("int8")


def _rescaled(sums: np.ndarray, multipliers: np.ndarray, left: np.ndarray) -> np.ndarray:
    """TFLite's two roundings: of the product halves up, of the quotient halves away from zero."""

    def one(total: int, multiplier: int, shift: int) -> int:
        product = (total * multiplier + 2**30) // 2**31
        divisor = 2**-shift
        magnitude = (abs(product) + divisor // 2) // divisor
        return magnitude if product >= 0 else -magnitude

    return np.vectorize(one, otypes=[object])(
        sums.astype(object), multipliers.astype(object), left.astype(object)
    ).astype("int64")


def many(n: int, seed: int) -> Section:
    """All functions of n numbers."""
    rng = np.random.default_rng(seed)
    edges = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**16, -(2**16)])
    a, b, sums = (
        np.where(rng.random(16) < 0.4, rng.choice(edges, 16), rng.integers(-(2**31), 2**31, 16))
        for _ in range(3)
    )
    number = int(rng.choice(edges)) if rng.random() < 0.4 else int(rng.integers(-(2**31), 2**31))
    shift, left = rng.integers(0, 32, 16), -rng.integers(1, 32, 16)
    multiplier = np.where(rng.random(16) < 0.3, 2**30, rng.integers(0, 2**31, 16))
    drop = rng.integers(1, 31, 16)
    few = np.ldexp(rng.integers(32, 64, 16), 18).astype("int64")
    mantissa = np.where(rng.random(16) < 0.4, few, rng.integers(2**23, 2**24, 16))
    scale = np.ldexp(mantissa.astype("float64"), -(25 + drop))
    ties = np.rint((rng.integers(-256, 255, 16) + 0.5) / scale) + rng.integers(-1, 2, 16)
    total = np.clip(ties, 1 - 2**24, 2**24 - 1).astype("int64")
    nudge = 2 ** (drop - 1) + np.where(drop >= 17, 2 ** np.maximum(drop - 17, 0), 0)
    product = np.rint(total.astype("float32") * scale.astype("float32")).astype("int64")
    words = np.concatenate([a, b, shift, sums, multiplier, left, mantissa << 7, drop, nudge, total])
    octets = words.astype("int64").astype("uint32").view("uint8")
    turn = number & 31
    apart, apart8 = np.zeros((n, 3), "int64"), np.zeros(4 * n, "uint8")
    apart[:, 0], apart8[: 2 * n : 2] = a[:n], a[:n].astype("uint8")
    stored = np.zeros(4 * n, "uint8")
    stored[:n] = a[:n].astype("uint8")
    of_n = [
        a + b, a - b, a * b, a >> shift, a << shift, np.minimum(a, b), np.maximum(a, b),
        a + number, a - number, a * number, a >> turn, a << turn,
        np.minimum(a, number), np.maximum(a, number),
        np.clip(a, -9, 7), np.clip(a, -9, 7), octets[1:17].view("int8"), octets[3:19],
        _rescaled(sums, multiplier, left),
        _rescaled(sums, np.full(16, multiplier[0]), np.full(16, left[0])), product,
    ]  # fmt: skip
    expected = np.concatenate(
        [
            *(each[:n].astype("int64") for each in of_n),
            apart.ravel(),
            apart8.view("uint32").astype("int64"),
            stored.view("uint32").astype("int64"),
        ]
    )
    return _section(1, [np.array([n, number, 0]), words], expected)


def windows(pixels: int, channels: int, runs: int, run: int, seed: int) -> Section:
    """Products of windows with all channels, and the sums requantized."""
    rng = np.random.default_rng(seed)
    size = 40 + run
    x, weights = _bytes(rng, (size,)), _bytes(rng, (runs * run, channels))
    places, starts = rng.integers(0, 20, pixels), rng.integers(0, 20, runs)
    bias = rng.integers(-(2**31), 2**31, channels) if rng.random() < 0.7 else np.zeros(channels)
    multipliers = np.where(rng.random(channels) < 0.2, 0, rng.integers(2**30, 2**31, channels))
    left = -rng.integers(1, 32, channels)
    low, high = sorted(int(limit) for limit in rng.integers(-128, 128, 2))
    if rng.random() < 0.5:  # results within int8, many of which are ties
        x = rng.integers(-1, 2, size).astype("int8")
        bias, left = rng.integers(-200, 200, channels), -rng.integers(1, 5, channels)
        multipliers, low, high = np.full(channels, 2**30), -128, 127
    at = starts[:, None] + np.arange(run)
    window = x[places[:, None, None] + at].reshape(pixels, -1).astype("int64")
    sums = (window @ weights.astype("int64") + bias.astype("int64")).astype("int32")
    made = np.clip(_rescaled(sums.astype("int64"), multipliers, left) - 3, low, high)
    shifts, data = _packed(left), _packed(x)
    given = [
        np.array([pixels, channels, runs, run, 4 * len(shifts), 4 * len(data), bias.any()]),
        np.array([low, high]), places, starts, bias, multipliers, shifts, data, _packed(weights),
    ]  # fmt: skip
    return _section(2, given, np.concatenate([sums.ravel(), _packed(made).view("int32")]))


def row(pixels: int, channels: int, taps: int, stride: int, seed: int) -> Section:
    """Depthwise sums of a row of pixels."""
    rng = np.random.default_rng(seed)
    step = channels * stride
    x = _bytes(rng, ((pixels * stride + taps) * channels,))
    weights = _bytes(rng, (taps, channels))
    places = rng.permutation(taps) * channels
    bias = rng.integers(-(2**31), 2**31, channels)
    at = np.arange(pixels)[:, None] * step + places
    found = x[at[:, :, None] + np.arange(channels)].astype("int64")
    sums = (found * weights.astype("int64")).sum(axis=1) + bias
    data = _packed(x)
    given = [
        np.array([pixels, channels, taps, step, 4 * len(data)]), places, bias, data,
        _packed(weights),
    ]  # fmt: skip
    return _section(3, given, sums.ravel())
