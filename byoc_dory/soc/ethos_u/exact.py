"""Requantizations as the accelerator executes them, where it gives the same results.

The accelerator computes ``p = sum * multiplier`` and then ``(p + half) >> shift``, with
``half = 2**(shift - 1)``.  Its *double* rounding is TFLite's: it adds 2**30 of the sign of p
before, if the shift is above 31.  *Single* rounding adds nothing, so that ties go up.

onnxruntime rounds in float32, and ties to even.  Both grow with the sum, so they are the same
function if the same sums are the least to reach each value of the output.  These sums bound the
multiplier from both sides; one in between is taken, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.layers import Add, Array, Layer, OnnxRequant, TfliteRequant, Weighted
from byoc_dory.layers.layer import value_of
from byoc_dory.soc.ethos_u.model import ADD_BITS, added, requantized, zero_points_of

Rounding: TypeAlias = Literal["single", "double"]

SHIFTS = (2, 62)
"""Least and most bits of a requantization's shift, by TOSA's definition of RESCALE."""

_UNIT = 1 << 30
_NEAR = 33
"""Multipliers this far from a sum's own, and nearer, are tried."""


@dataclass(frozen=True)
class Scaling:
    """A requantization as the accelerator executes it.

    Attributes:
        multipliers: one, or one for each channel.
        shifts: as many.
        rounding: how it rounds.
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    rounding: Rounding


def rounded(products: Array, shift: Array | int, rounding: Rounding) -> Array:
    """Return int64 products shifted to the right as the accelerator rounds."""
    shifts = np.asarray(shift, np.int64)
    nudge = np.int64(1) << (shifts - 1)
    if rounding == "double":
        nudge = nudge + np.where(products >= 0, 1 << 30, -(1 << 30)) * (shifts > 31)
    return (products + nudge) >> shifts


@lru_cache(maxsize=1024)
def _scaling_of(digest: bytes, holder: _Held) -> Scaling | str:
    layer = holder.layer
    requant = layer.requant
    if isinstance(requant, TfliteRequant):
        shifts = tuple(31 - exponent for exponent in requant.shift)
        refusal = _out_of_range(shifts) or _beyond_32_bits(layer, requant.shift)
        return refusal or Scaling(requant.multiplier, shifts, "double")
    if not isinstance(requant, OnnxRequant):
        return f"the requantization is {type(requant).__name__}, not TFLite's or onnxruntime's"
    return _of_steps(layer)


class _Held:
    """A layer beside its digest, by which alone answers are remembered."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


def scaling_of(layer: Layer) -> Scaling | str:
    """Return a weighted layer's requantization, or why there is none with the same results."""
    return _scaling_of(value_of(layer), _Held(layer))


def _out_of_range(shifts: tuple[int, ...]) -> str:
    low, high = SHIFTS
    for shift in shifts:
        if not low <= shift <= high:
            return f"a shift of {shift} bits, not of {low} to {high}"
    return ""


def _beyond_32_bits(layer: Layer, exponents: tuple[int, ...]) -> str:
    """Say where TFLite's kernels would lose bits by a shift to the left, which is done first."""
    assert isinstance(layer, Weighted)
    if max(exponents) <= 0:
        return ""
    largest = np.abs(sums_of(layer)).max(0)
    for channel, exponent in enumerate(np.broadcast_to(exponents, largest.shape).tolist()):
        if int(largest[channel]) << max(exponent, 0) >= 1 << 31:
            return f"sums of channel {channel} exceed 32 bits, shifted by {exponent} to the left"
    return ""


def sums_of(layer: Weighted) -> tuple[Array, Array]:
    """Return the least and the largest sum of each channel for any input, int64 ``[K]``."""
    zero = zero_points_of(layer.requant)[0]
    weight = layer.weight.reshape(layer.K, -1).astype(np.int64)
    low, high = layer.input_range[0] - zero, layer.input_range[1] - zero
    # Padding, which is 0 after the zero point, may take the place of an input.
    low, high = min(low, 0), max(high, 0)
    bias = 0 if layer.bias is None else layer.bias.astype(np.int64)
    least = np.minimum(weight * low, weight * high).sum(1) + bias
    most = np.maximum(weight * low, weight * high).sum(1) + bias
    return least, most


def _of_steps(layer: Layer) -> Scaling | str:
    """Return the requantization whose output takes every step at the same sum as the source's."""
    assert isinstance(layer, Weighted) and isinstance(layer.requant, OnnxRequant)
    zero = layer.requant.output_zero_point
    steps = np.arange(layer.clip[0] + 1, layer.clip[1] + 1, dtype=np.int64) - zero

    def source(sums: Array) -> Array:
        return requantized(sums, layer.requant, channel_axis=0) - zero

    least, most = sums_of(layer)
    reached = _least_reaching(source, steps, least, most)
    # A step is reached where the sum is at least (step - 0.5) times the sums of one step.
    halves = steps - 0.5
    positive = np.broadcast_to(halves > 0, reached.shape)
    ends = np.stack([reached / halves, (reached - 1) / halves])
    # Of a step that every sum reaches only one side counts, and of one that none does.
    ends[1] = np.where(reached == least[:, None], np.where(positive, 0.0, np.inf), ends[1])
    ends[0] = np.where(reached > most[:, None], np.where(positive, np.inf, 0.0), ends[0])
    low, high = ends.min(0).max(1), ends.max(0).min(1)
    multipliers, shifts = [], []
    for channel, (lowest, highest) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if not max(lowest, 0.0) < highest:
            return f"no multiplier rounds the sums of channel {channel} as onnxruntime does"
        # A channel whose output takes no step leaves the multiplier open.
        middle = (max(lowest, 0.0) + highest) / 2 if highest < np.inf else max(2 * lowest, 1.0)
        _, exponent = np.frexp(1 / middle)
        shift = 31 - int(exponent)
        multipliers.append(min(int(np.rint(2.0**shift / middle)), (1 << 31) - 1))
        shifts.append(shift)
    refusal = _out_of_range(tuple(shifts))
    if refusal:
        return refusal
    factors, bits = np.array(multipliers, np.int64)[:, None], np.array(shifts, np.int64)[:, None]

    def device(sums: Array) -> Array:
        return rounded(sums * factors, bits, "single")

    differing = (reached != _least_reaching(device, steps, least, most)).any(1)
    if differing.any():
        channel = int(differing.argmax())
        return f"no multiplier rounds the sums of channel {channel} as onnxruntime does"
    return Scaling(tuple(multipliers), tuple(shifts), "single")


def _least_reaching(
    function: Callable[[Array], Array], steps: Array, least: Array, most: Array
) -> Array:
    """Return for each channel and step the least sum whose result is at least that, [K, steps].

    Where no sum from ``least`` to ``most`` is, it is one above.
    """
    low = np.broadcast_to(least[:, None], (least.size, steps.size)).copy()
    high = np.broadcast_to(most[:, None] + 1, low.shape).copy()
    while (low < high).any():
        middle = (low + high) >> 1
        there = function(middle) >= steps
        high = np.where(there & (low < high), middle, high)
        low = np.where(there | (low >= high), low, middle + 1)
    return low


# ------------------------------------------------------------------------ sums of two tensors


@dataclass(frozen=True)
class Sum:
    """A sum of two tensors as the accelerator executes it: each operand scaled, then the result.

    Attributes:
        multipliers: those of both operands and of the result.
        shifts: likewise.
    """

    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]


def sum_of(layer: Add) -> Sum | str:
    """Return how a sum is executed with the same results for all pairs of bytes, or why not.

    One operand is scaled by a half, exactly; the other one's multiplier must be odd, or Vela writes
    another one, of which the accelerator rounds differently.
    """
    requant = layer.requant
    if not isinstance(requant, TfliteRequant) or len(requant.multiplier) != 3:
        return f"the requantization is {type(requant).__name__}, not TFLite's of a sum"
    key = (requant.multiplier, requant.shift, requant.input_zero_points)
    return _sum_of(*key, requant.output_zero_point, layer.clip, _Held(layer))


@lru_cache(maxsize=256)
def _sum_of(
    multipliers: tuple[int, int, int],
    exponents: tuple[int, int, int],
    zero_points: tuple[int, int],
    output_zero_point: int,
    clip: tuple[int, int],
    holder: _Held,
) -> Sum | str:
    layer = holder.layer
    assert isinstance(layer, Add)
    halved = [pair == (_UNIT, 0) for pair in zip(multipliers[:2], exponents[:2], strict=True)]
    if not any(halved):
        return "neither operand has the larger scale"
    other = 0 if halved[1] else 1
    shifts = tuple(31 - ADD_BITS - exponent for exponent in exponents[:2])
    refusal = _out_of_range((*shifts, 31 - exponents[2]))
    if refusal:
        return refusal
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = np.meshgrid(every, every, indexing="ij")
    wanted = np.clip(added(layer, a, b), *clip)
    operands = [every.astype(np.int64) - zero for zero in zero_points]
    half = operands[1 - other] << (ADD_BITS - 1)
    best = a.size
    for distance in range(_NEAR):
        for multiplier in {multipliers[other] - distance, multipliers[other] + distance}:
            if multiplier % 2 == 0 or (multiplier, exponents[other]) == (_UNIT + 1, 0):
                continue
            product = (operands[other] << ADD_BITS) * multiplier
            scaled = rounded(product, 31 - exponents[other], "double")
            total = scaled[:, None] + half if other == 0 else half[:, None] + scaled
            found = rounded(total * multipliers[2], 31 - exponents[2], "double")
            differing = int((np.clip(found + output_zero_point, *clip) != wanted).sum())
            if not differing:
                chosen = [multipliers[0], multipliers[1], multipliers[2]]
                chosen[other] = multiplier
                return Sum(
                    (chosen[0], chosen[1], chosen[2]),
                    (*shifts, 31 - exponents[2]),  # type: ignore[arg-type]
                )
            best = min(best, differing)
    return f"{best} of 65536 pairs of bytes are rounded differently"
