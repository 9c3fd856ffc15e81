"""Helper: a C program that calls the functions for vectors, and in numpy what they compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htvm.aot.lanes import magic

GIVEN, RESULT = 8192, 4096
"""Bytes that the program reads and writes."""

PROGRAM = f"""
#include <stdint.h>
#include "htvm_intrinsics.h"
#define OUTSIDE __attribute__((section(".noinit"), aligned(16)))
OUTSIDE uint32_t given[{GIVEN // 4}];
OUTSIDE uint32_t result[{RESULT // 4}];
static int8_t column[3 * 160];
static uint32_t quads[4096];

static void rows(int32_t *to, const uint32_t *from)
{{
    const uint32_t pixels = from[0], channels = from[1], run = from[2], lines = from[3];
    const uint32_t steps = (run * lines + 15) / 16;
    const int8_t *const x = (const int8_t *)(from + 16);
    const int8_t *const weights = x + from[5];
    const uint32_t pixel = lines * run, each = 16 * steps;
    if (pixels == 3) {{
        htvm_rows_windows(column, x, x + pixel, x + 2 * pixel, lines, run, run, each, each);
    }} else {{
        htvm_rows_window(column, x, lines, run, run, each, each);
    }}
    htvm_rows_products(to, column, weights, steps, pixels, channels, from[4]);
}}

static void nines(int32_t *to, const uint32_t *from)
{{
    const uint32_t pitch = from[0], channels = from[1], width = from[2], stride = from[3];
    const int32_t *const bias = (const int32_t *)(from + 16);
    const int32_t *const multipliers = bias + channels;
    const int8_t *const left = (const int8_t *)(multipliers + channels);
    const int8_t *const weights = left + from[5], *const x = weights + from[6];
    const uint32_t bytes = (3 - stride) * width * channels;
    int8_t *const out = (int8_t *)to;
    for (uint32_t i = bytes; i % 4 != 0; i++) {{
        out[i] = 0;
    }}
    htvm_nines(out, x, quads, weights, bias, multipliers, left, pitch, channels, width, stride,
               (int32_t)from[4]);
}}

static void pool(int32_t *to, const uint32_t *from)
{{
    htvm_pool_sums(to, (const int8_t *)(from + 16), from[0], from[1], from[2], from[3], from[4]);
}}

static void rescaled(int32_t *to, const uint32_t *from)
{{
    const uint32_t pixels = from[0], channels = from[1];
    const int32_t *const bias = (const int32_t *)(from + 16);
    const int32_t *const multipliers = bias + channels, *const sums = multipliers + channels;
    const int8_t *const left = (const int8_t *)(sums + pixels * channels);
    htvm_rescale_all((int8_t *)to, sums, bias, multipliers, left, pixels, channels,
                     (int32_t)from[2], (int32_t)from[3], (int32_t)from[4]);
    int8_t *const ones = (int8_t *)to + pixels * channels;
    for (uint32_t k = 0; k < channels; k++) {{
        const int32_t low = (int32_t)from[3], high = (int32_t)from[4];
        const int32_t made = htvm_rescale(bias[k], multipliers[k], left[k]);
        ones[k] = (int8_t)htvm_clip(made, low, high);
    }}
}}

static void taps(int32_t *to, const uint32_t *from)
{{
    const int32_t *const places = (const int32_t *)(from + 16);
    const int32_t *const bias = (const int32_t *)(from + 16 + from[3]);
    const int8_t *const x = (const int8_t *)(from + 16 + from[4]);
    htvm_taps_sum(to, x, places, x + from[2], bias, from[0], from[1]);
}}

static void lanes(int32_t *to, const uint32_t *from)
{{
    const int32_t *const words = (const int32_t *)(from + 16);
    const htvm_lanes_t a = htvm_lanes_load32(words), b = htvm_lanes_load32(words + 4);
    const htvm_lanes_t shift = htvm_lanes_load32(words + 8), sum = htvm_lanes_load32(words + 12);
    const htvm_lanes_t low = htvm_lanes_all(words[20]), high = htvm_lanes_all(words[21]);
    htvm_lanes_store32(to, htvm_lanes_add(a, b));
    htvm_lanes_store32(to + 4, htvm_lanes_sub(a, b));
    htvm_lanes_store32(to + 8, htvm_lanes_mul(a, b));
    htvm_lanes_store32(to + 12, htvm_lanes_right(a, shift));
    htvm_lanes_store32(to + 16, htvm_lanes_left(a, shift));
    htvm_lanes_store32(to + 20, htvm_lanes_min(a, b));
    htvm_lanes_store32(to + 24, htvm_lanes_max(a, b));
    htvm_lanes_store32(to + 28, htvm_lanes_clip(a, low, high));
    htvm_lanes_store32(to + 32, htvm_lanes_load8((const int8_t *)words + 1));
    htvm_lanes_store32(to + 36, htvm_lanes_load8u((const uint8_t *)words + 3));
    const htvm_lanes_t left = htvm_lanes_load32(words + 44), half = htvm_lanes_load32(words + 48);
    htvm_lanes_store32(to + 40, htvm_lanes_rescale(sum, half, left));
    to[44] = 0;
    htvm_lanes_store8((int8_t *)(to + 44), a);
    for (uint32_t i = 0; i < 4; i++) {{
        to[45 + i] = htvm_scale(words[12 + i], (uint32_t)words[16 + i], (uint32_t)words[24 + i]);
        to[49 + i] = htvm_clip(words[i], words[20], words[21]);
    }}
    const htvm_lanes_t total = htvm_lanes_load32(words + 28);
    const htvm_lanes_t factor = htvm_lanes_load32(words + 32);
    const htvm_lanes_t drop = htvm_lanes_load32(words + 36), nudge = htvm_lanes_load32(words + 40);
    htvm_lanes_store32(to + 53, htvm_lanes_float_product(total, factor, drop, nudge));
    for (uint32_t i = 57; i < 71; i++) {{
        to[i] = 0;
    }}
    htvm_lanes_store32(to + 71, htvm_lanes_add_x(a, words[4]));
    htvm_lanes_store32(to + 75, htvm_lanes_sub_x(a, words[4]));
    htvm_lanes_store32(to + 79, htvm_lanes_mul_x(a, words[4]));
    htvm_lanes_store32(to + 83, htvm_lanes_right_x(a, words[8]));
    htvm_lanes_store32(to + 87, htvm_lanes_rescale_x(a, words[48], words[44]));
    htvm_lanes_store32(to + 91, htvm_lanes_by_sign(a, words[4], words[5]));
    htvm_lanes_store32(to + 95, htvm_lanes_divide(a, words[52], words[53], words[54]));
    htvm_lanes_scatter32(to + 57, 3, a);
    htvm_lanes_scatter8((int8_t *)(to + 67), 5, a);
}}

__attribute__((noinline)) void first(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) void second(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) int32_t net_run(void);
void first(uint32_t *to, const uint32_t *from)
{{
    for (; from[0] != 0; to += from[2], from += from[1]) {{
        int32_t *const here = (int32_t *)to;
        if (from[0] == 1) {{
            rows(here, from + 3);
        }} else if (from[0] == 2) {{
            taps(here, from + 3);
        }} else if (from[0] == 4) {{
            rescaled(here, from + 3);
        }} else if (from[0] == 5) {{
            nines(here, from + 3);
        }} else if (from[0] == 6) {{
            pool(here, from + 3);
        }} else {{
            lanes(here, from + 3);
        }}
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


def _words(kind: int, numbers: list[int], parts: list[np.ndarray], results: int) -> np.ndarray:
    body = np.concatenate([part.view("uint32") for part in parts])
    head = np.zeros(19, "uint32")
    head[0], head[1], head[2] = kind, 19 + len(body), results
    head[3 : 3 + len(numbers)] = numbers
    return np.concatenate([head, body])


def _whole(values: np.ndarray) -> np.ndarray:
    """Bytes, filled up to whole words."""
    flat = np.asarray(values, order="C").astype("int8").ravel()
    return np.pad(flat, (0, -len(flat) % 4))


def _extreme(rng: np.random.Generator, low: int, shape: tuple[int, ...]) -> np.ndarray:
    """Any bytes, or only the largest and the smallest."""
    if rng.random() < 0.3:
        return rng.choice(np.array([low, 127], "int8"), shape)
    return rng.integers(low, 128, shape).astype("int8")


def rows(pixels: int, channels: int, run: int, lines: int, seed: int) -> Section:
    """Products of some pixels, of some lines each, with all channels."""
    rng = np.random.default_rng(seed)
    taps = run * lines
    x = _extreme(rng, -128, (pixels, taps))
    weights = _extreme(rng, -128, (channels, taps))
    block = 4 if channels % 4 == 0 else 1
    side = 2 if (pixels, block) == (3, 4) else block
    packed = []  # channel by channel of those side by side, step by step
    for k in range(0, channels, side):
        for start in range(0, taps, 16):
            for channel in range(k, k + side):
                vector = np.zeros(16, "int8")
                part = weights[channel, start : start + 16]
                vector[: len(part)] = part
                packed.append(vector)
    data, packing = _whole(x), _whole(np.concatenate(packed))
    given = _words(
        1,
        [pixels, channels, run, lines, block, len(data)],
        [data, packing],
        pixels * channels,
    )
    sums = x.astype("int64") @ weights.T.astype("int64")
    # The sums of a block and a pixel are neighbours.
    laid = sums.reshape(pixels, -1, block).transpose(1, 0, 2)
    return Section(given, laid.astype("int32").ravel())


def nines(channels: int, width: int, stride: int, more: int, seed: int) -> Section:
    """Two rows of depthwise 3x3 sums at stride 1, one at stride 2, requantized."""
    rng = np.random.default_rng(seed)
    width = max(width, {1: 2, 2: 4}[stride])
    columns, rows = (width - 1) * stride + 3, 3 - stride
    columns += more + max(0, -(-16 // channels) - columns)
    x = _extreme(rng, -128, ((rows - 1) * stride + 3, columns, channels))
    width += (columns - (width - 1) * stride - 3) // stride if more == 0 else 0
    filters = _extreme(rng, -128, (3, 3, channels))
    bias, multipliers = rng.integers(-(2**20), 2**20, channels), rng.integers(0, 2**31, channels)
    right, zero = rng.integers(1, 14, channels), int(rng.integers(-128, 128))
    packed = np.zeros((channels, 3, 4), "int8")
    packed[:, :, :3] = filters.transpose(2, 1, 0)
    packing, shifts = _whole(np.pad(packed.ravel(), (0, 4))), _whole(-right)
    sizes = [int(np.uint32(np.int32(zero))), len(shifts), len(packing)]
    words = np.concatenate([bias, multipliers]).astype("int32")
    results = -(-rows * width * channels // 4)
    given = _words(
        5,
        [columns * channels, channels, width, stride, *sizes],
        [words, shifts, packing, _whole(x)],
        results,
    )
    out = np.zeros((rows, width, channels), "int64")
    for fy in range(3):
        for fx in range(3):
            last = fx + stride * (width - 1) + 1
            part = x[fy : fy + rows, fx:last:stride].astype("int64")
            out += part * filters[fy, fx]
    sums = (out + bias).reshape(-1, channels)
    rows_made = [
        [_scaled(*(int(n) for n in part)) for part in zip(row, multipliers, right + 1, strict=True)]
        for row in sums
    ]
    made = np.clip(np.array(rows_made) + zero, -128, 127).astype("int8")
    return Section(given, _whole(made).view("int32"))


def pool(rows: int, columns: int, channels: int, seed: int) -> Section:
    """Sums of a window of a map with a further column."""
    rng = np.random.default_rng(seed)
    x = _extreme(rng, -128, (rows, columns + 1, channels))
    sizes = [rows, (columns + 1) * channels, columns, channels, channels]
    given = _words(6, sizes, [_whole(x)], channels)
    return Section(given, x[:, :columns].sum(axis=(0, 1), dtype="int32"))


def rescaled(pixels: int, fours: int, seed: int) -> Section:
    """Sums of some pixels requantized, and the biases by themselves."""
    rng = np.random.default_rng(seed)
    channels = 4 * fours
    sums = rng.integers(-(2**31), 2**31, (pixels, channels)) >> rng.integers(0, 31, channels)
    bias = rng.integers(-(2**30), 2**30, channels) >> rng.integers(0, 30, channels)
    sums = np.clip(sums, -(2**31) + 2**30, 2**31 - 2**30 - 1)
    multipliers = rng.choice([0, 1, 2**30, 2**31 - 1], channels)
    own = rng.integers(2**30, 2**31, channels)
    multipliers = np.where(rng.random(channels) < 0.6, own, multipliers)
    right = rng.integers(1, 32, channels)
    zero = int(rng.integers(-128, 128))
    low, high = sorted(int(n) for n in rng.integers(-128, 128, 2))
    laid = sums.reshape(pixels, fours, 4).transpose(1, 0, 2).ravel()
    words = np.concatenate([bias, multipliers, laid]).astype("int32")
    limits = [int(np.uint32(np.int32(number))) for number in (zero, low, high)]
    given = _words(
        4, [pixels, channels, *limits], [words, _whole(-right)], channels * (pixels + 1) // 4
    )

    def made(total: np.ndarray, moved: int) -> np.ndarray:
        parts = zip(total, multipliers, right + 1, strict=True)
        scaled = np.array([_scaled(*(int(n) for n in part)) for part in parts])
        return np.clip(scaled + moved, low, high).astype("int8")

    rows = [made(pixel + bias, zero) for pixel in sums]
    return Section(given, np.concatenate([*rows, made(bias, 0)]).view("int32"))


def taps(groups: int, group: int, count: int, seed: int) -> Section:
    """Depthwise sums of one pixel."""
    rng = np.random.default_rng(seed)
    channels = groups * group
    x = _extreme(rng, -128, (count + 2, channels))
    places = rng.permutation(count + 2)[:count]
    weights = _extreme(rng, -127, (count, channels))
    bias = rng.integers(-(2**31), 2**31, channels).astype("int32")
    own = 16 if channels % 16 == 0 else 8
    packed = [weights[:, c : c + own].ravel() for c in range(0, channels, own)]
    data = _whole(x)
    offsets = (places * channels).astype("int32")
    given = _words(
        2,
        [count, channels, len(data), count, count + channels],
        [offsets, bias, data, _whole(np.concatenate(packed))],
        channels,
    )
    sums = (x[places].astype("int64") * weights).sum(axis=0) + bias
    return Section(given, sums.astype("int32"))


def lanes(seed: int) -> Section:
    """All functions of four numbers."""
    rng = np.random.default_rng(seed)
    edges = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**16, -(2**16)])
    a, b = (
        np.where(rng.random(4) < 0.4, rng.choice(edges, 4), rng.integers(-(2**31), 2**31, 4))
        for _ in range(2)
    )
    shift = rng.integers(0, 32, 4)
    sums = rng.integers(-(2**29) + 1, 2**29, 4) >> rng.integers(0, 29, 4)
    multiplier = np.where(rng.random(4) < 0.3, 2**30, rng.integers(2**30, 2**31, 4))
    right = rng.integers(2, 30, 4)
    low, high = sorted(int(n) for n in rng.integers(-128, 128, 2))
    words = np.concatenate([a, b, shift, sums, 2 * multiplier, [low, high, 0, 0], right])
    total, *factors, product = _in_floats(rng)
    words = np.concatenate([words, total, *factors, 1 - right, multiplier])
    divisor = int(rng.choice([2, 3, 7, 9, 25, 64, 125, 641, 2**30, int(rng.integers(2, 2**31))]))
    words = np.concatenate([words, [divisor, *magic(divisor), 0]])
    # 64-bit numbers wrap around to the lower half.
    memory = words.astype("int64").astype("uint32")
    given = _words(3, [], [memory], 99)
    clipped = np.clip(a, low, high)
    scaled = [
        _scaled(*(int(n) for n in part)) for part in zip(sums, multiplier, right, strict=True)
    ]
    octets = memory.view("uint8")
    apart, apart8 = np.zeros((4, 3), "int64"), np.zeros(20, "uint8")
    apart[:, 0], apart8[::5] = a, a.astype("uint8")
    expected = np.concatenate(
        [
            a + b, a - b, a * b, a >> shift, a << shift, np.minimum(a, b), np.maximum(a, b),
            clipped,
            octets[1:5].view("int8"), octets[3:7], scaled,
            a.astype("uint8").view("uint32"), scaled, clipped, product,
            apart.ravel()[:10], apart8[:16].view("uint32"),
            a + b[0], a - b[0], a * b[0], a >> shift[0],
            [_scaled(int(n), int(multiplier[0]), int(right[0])) for n in a],
            np.where(a < 0, b[1], b[0]),
            [abs(int(n)) // divisor * (1 if n >= 0 else -1) for n in a],
        ]
    )  # fmt: skip
    return Section(given, expected.astype("int64").astype("uint32").view("int32"))


def _in_floats(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Sums, many beside a tie, three factors of a product in float32, and its rounded results."""
    drop = rng.integers(1, 31, 4)
    few = np.ldexp(rng.integers(32, 64, 4), 18).astype("int64")
    mantissa = np.where(rng.random(4) < 0.4, few, rng.integers(2**23, 2**24, 4))
    scale = np.ldexp(mantissa.astype("float64"), -(25 + drop))
    sums = np.rint((rng.integers(-256, 255, 4) + 0.5) / scale) + rng.integers(-1, 2, 4)
    total = np.clip(sums, 1 - 2**24, 2**24 - 1).astype("int64")
    nudge = 2 ** (drop - 1) + np.where(drop >= 17, 2 ** np.maximum(drop - 17, 0), 0)
    product = np.rint(total.astype("float32") * scale.astype("float32")).astype("int64")
    return total, mantissa << 7, drop, nudge, product


def _scaled(total: int, multiplier: int, right: int) -> int:
    """TFLite's two roundings: of the product halves up, of the quotient halves away from zero."""
    product = (total * multiplier + 2**30) // 2**31
    divisor = 2 ** (right - 1)
    magnitude = (abs(product) + divisor // 2) // divisor
    return magnitude if product >= 0 else -magnitude
