"""Helper: draw the parts of random operators: requantizations, weights, geometry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from byoc_dory.layers import MulShift, Requant, Shift, TfliteRequant
from patterns.ops.requantize import fixed_point

Array = Any
Scheme = Literal["shift", "mul_shift", "tflite"]
Pair = tuple[int, int]
Four = tuple[int, int, int, int]

SPREAD = 74.0
"""Standard deviation of bytes that use the whole range."""

_WANTED = 50.0  # and what a layer's output should have, so that few values are clipped
_INT32_MAX = 2**31 - 1


class Draws:
    """Choices that follow from a seed.

    Args:
        seed: of all of them.
        scheme: of the requantizations.
    """

    def __init__(self, seed: int, scheme: Scheme) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.scheme = scheme
        self.plain = self.chance(0.6)  # geometry and clips of convolutions that the core takes

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return bool(self.rng.random() < probability)

    def pick(self, values: Sequence[Any]) -> Any:
        """One of them, all equally likely."""
        return values[int(self.rng.integers(len(values)))]

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def channels(self) -> int:
        """A number of maps: multiples of the array's rows and others."""
        return self.pick([self.between(1, 8), self.between(1, 40), 16, 32, 4, 64])

    # -------------------------------------------------------------------- requantization

    def zero(self) -> int:
        """A zero point."""
        if self.scheme != "tflite":
            return 0
        return self.pick([-128, 0, self.between(-128, 127)])

    def scale(self) -> float:
        """Of what a layer with weights computes: any, because the scale of weights is free."""
        return float(2.0 ** self.rng.uniform(-6, -1)) if self.scheme == "tflite" else 1.0

    def clip(self, zero: int) -> tuple[int, int]:
        """Everything, ReLU, ReLU6, or something that the digital core refuses."""
        choices = [(-128, 127), (-128, 127), (zero, 127), (zero, min(zero + 90, 127))]
        if self.scheme == "shift":
            choices = choices[:3]
        low, high = sorted((self.between(-128, 127), self.between(-128, 127)))
        odd = not self.plain and self.chance(0.1)
        return (low, high) if odd else self.pick(choices)

    def requant(self, deviation: Array, bound: Array, zero: int) -> Requant:
        """A scaling under which accumulators of these deviations [K] use the range of a byte.

        ``bound`` is the largest magnitude any of them can have.
        """
        wanted = _WANTED / np.maximum(deviation, 1e-3)
        if self.scheme == "shift":
            shift = int(np.clip(np.rint(-np.log2(np.median(wanted))), 0, 31))
            return Shift(self.pick([0, 31, shift + 1]) if self.chance(0.05) else shift)
        count = len(deviation) if self.chance(0.6) else 1
        wanted = wanted[:count] * 2.0 ** self.rng.uniform(-1, 1, count)
        if self.scheme == "tflite":
            parts = [fixed_point(min(float(value), 8.0)) for value in wanted]
            return TfliteRequant(
                tuple(mul for mul, _ in parts), tuple(shift for _, shift in parts), zero
            )
        return self.mul_shift(wanted, int(np.max(bound)))

    def mul_shift(self, factors: Array, bound: int) -> MulShift:
        """Any mixture of per-channel and per-tensor entries; never beyond int32."""
        largest = max(1, min(2**15, (_INT32_MAX // 2) // max(bound, 1)))
        top = float(np.max(factors))
        shift = int(np.clip(np.floor(np.log2(largest / top)), 0, 24))
        mul = [int(np.clip(round(value * 2.0**shift), 1, largest)) for value in factors]
        shifts = [shift] * (len(mul) if self.chance(0.3) else 1)
        if len(shifts) > 1:
            shifts = [max(0, value - self.between(0, 1)) for value in shifts]
        half = (1 << shift) // 2
        adds = [self.pick([0, half, self.between(-half, half)])]
        if len(mul) > 1 and self.chance(0.3):
            adds = [self.between(-half, half) for _ in mul]
        return MulShift(tuple(mul), tuple(shifts), tuple(adds))

    # -------------------------------------------------------------------- layers with weights

    def weights(self, size: tuple[int, ...]) -> Array:
        """Weights of small, medium or the largest numbers."""
        spread = self.pick([3, 30, 127])
        weight = self.rng.integers(-spread - 1, spread + 1, size)
        return weight.astype(np.int8)

    def ending(self, weight: Array) -> tuple[Array, Requant, tuple[int, int], int]:
        """Bias, requantization, clip and zero point of a layer with these weights."""
        rows = weight.astype(np.int64).reshape(len(weight), -1)
        deviation = SPREAD * np.sqrt((rows**2).sum(axis=1))
        bias = np.rint(self.rng.normal(size=len(rows)) * (deviation + 1)).astype(np.int64)
        zero = self.zero()
        if self.scheme == "shift" and self.chance(0.05):
            # As far as int32 reaches.
            room = _INT32_MAX - 128 * np.abs(rows).sum(axis=1)
            bias = np.where(bias < 0, -room, room)
            return bias.astype(np.int32), Shift(self.between(22, 31)), (-128, 127), 0
        bound = np.abs(bias) + 128 * np.abs(rows).sum(axis=1)
        requant = self.requant(deviation, bound, zero)
        return bias.astype(np.int32), requant, self.clip(zero), zero

    # -------------------------------------------------------------------- geometry

    def kernel(self) -> tuple[Pair, Pair, Pair]:
        """Kernel, strides and dilation of a convolution."""
        kernel = self.pick(
            [
                (1, 1), (3, 3), (3, 3), (5, 5), (self.between(1, 7),) * 2,
                (self.between(1, 7), self.between(1, 7)),
            ]
        )  # fmt: skip
        strides, dilation = self.pick([(1, 1), (2, 2)]), (1, 1)
        if not self.plain:
            strides = self.pick([(1, 1), (2, 2), (3, 3), (1, 2), (2, 1)])
            dilation = self.pick([(2, 2), (1, 2), (3, 1)]) if self.chance(0.15) else (1, 1)
            kernel = (self.between(1, 9), 8) if self.chance(0.05) else kernel
        return kernel, strides, dilation

    def padding(self, spans: Pair, sizes: Pair) -> Four:
        """Padding of a convolution: none, enough to keep the size, or any on each side."""
        if self.chance(0.3) and all(n <= size for n, size in zip(spans, sizes, strict=True)):
            return (0, 0, 0, 0)
        same = [(n - 1) // 2 for n in spans] + [n // 2 for n in spans]
        if self.chance(0.5):
            return same[0], same[1], same[2], same[3]
        # A pad of the kernel's size and more is refused.
        extra = 2 if not self.plain and self.chance(0.15) else 0
        top, left, bottom, right = (self.between(0, n - 1 + extra) for n in (*spans, *spans))
        # Nothing may be negative, not even where a kernel is larger than its input.
        bottom = max(bottom, spans[0] - sizes[0] - top)
        right = max(right, spans[1] - sizes[1] - left)
        return top, left, bottom, right

    def window(self, sizes: Pair) -> tuple[Pair, Pair, Four, Pair] | None:
        """Kernel, strides, padding and output size of a pool; None if a window has no element."""
        kernel = (self.between(1, min(sizes[0], 7)), self.between(1, min(sizes[1], 7)))
        if self.chance(0.3):
            kernel = sizes
        strides = self.pick([(1, 1), (2, 2), (3, 3), (2, 1), kernel])
        padding = (0, 0, 0, 0)
        if self.chance(0.5):
            top, left, bottom, right = (self.between(0, size - 1) for size in (*kernel, *kernel))
            padding = (min(top, 3), min(left, 3), min(bottom, 3), min(right, 3))
        oy, ox = (
            (size + padding[axis] + padding[axis + 2] - kernel[axis]) // strides[axis] + 1
            for axis, size in enumerate(sizes)
        )
        outside = (oy - 1) * strides[0] - padding[0] >= sizes[0]
        outside |= (ox - 1) * strides[1] - padding[1] >= sizes[1]
        return None if outside else (kernel, strides, padding, (oy, ox))


def factor(requant: Requant) -> float:
    """By what the (first) accumulator is multiplied."""
    if isinstance(requant, Shift):
        return float(2.0**-requant.shift)
    if isinstance(requant, MulShift):
        return float(requant.mul[0] * 2.0 ** -requant.shift[0])
    return float(requant.multiplier[0] * 2.0 ** (requant.shift[0] - 31))


def brief(requant: Requant) -> str:
    """The requantization with long tuples cut short."""
    words = []
    for key, value in vars(requant).items():
        if isinstance(value, tuple) and len(value) > 3:
            words.append(f"{key}=({', '.join(map(str, value[:3]))}, ... {len(value)})")
        else:
            words.append(f"{key}={value}")
    return f"{type(requant).__name__}({', '.join(words)})"
