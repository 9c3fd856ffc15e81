"""Requantizations as the accelerator executes them, where it gives the same results.

The accelerator computes ``p = sum * multiplier`` and then ``(p + half) >> shift``, with
``half = 2**(shift - 1)``.  Its *double* rounding is TFLite's: it adds 2**30 of the sign of p
before, if the shift is above 31.  *Single* rounding adds nothing, so that ties go up.

onnxruntime rounds in float32, torch in integers of 64 bits after adding what is left of the bias;
both round ties to even.  Networks in powers of two floor.  All of these grow with the sum, so two
are the same function if the same sums are the least to reach each value of the output.  These sums
bound the multiplier from both sides; one in between is taken, if there is one with the layer's bias
or another one nearby.  Else the result has fraction bits at first, see `Fractions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.layers import (
    Array,
    Layer,
    MulShift,
    OnnxRequant,
    Shift,
    TfliteRequant,
    TorchRequant,
    Weighted,
)
from byoc_dory.layers.layer import value_of
from byoc_dory.soc.ethos_u.model import (
    output_zero_point_of,
    requantized,
    zero_points_of,
)

Rounding: TypeAlias = Literal["single", "double"]

_Steps: TypeAlias = OnnxRequant | TorchRequant | Shift | MulShift
"""Requantizations that are compared step by step."""

SHIFTS = (2, 62)
"""Least and most bits of a requantization's shift, by TOSA's definition of RESCALE."""
_SUM_BITS = 40
"""Bits of an accumulator of products with int16, and of a bias."""
_LARGEST_SHORT = (1 << 15) - 1
"""Largest multiplier of sums of products with int16, by TOSA's definition of RESCALE."""

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
        biases: what is added to each channel's sums before; none if empty.
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    rounding: Rounding
    biases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fractions:
    """A requantization in steps: to a result with fraction bits, which is rounded afterwards.

    With two offsets that differ, ties round up by the first, and down by the second.  Results are
    sums of two tables, see `parts_of`.  The first one rises at even steps, the second one at odd
    ones, which rounds ties to even; some steps may be the other one's.

    Attributes:
        scaling: that of the sums, to int32 with fraction bits, in single rounding.
        bits: number of fraction bits, which are rounded in single rounding, too.
        offsets: one or two of what is added before that: one integer, or one for each channel.
        others: steps, from the zero point on, that are the other one's.
    """

    scaling: Scaling
    bits: int
    offsets: tuple[tuple[int, ...], ...]
    others: tuple[int, ...] = ()


def parts_of(zero_point: int, others: Sequence[int] = ()) -> tuple[Array, Array]:
    """Return two tables of bytes whose sum is the byte itself; int8 ``[256]``.

    They are half of its distance to the zero point, rounded down, and what is left.

    Args:
        zero_point: the zero point.
        others: distances at which the other one rises by one.
    """
    steps = np.arange(-128, 128) - zero_point
    first = steps >> 1
    for step in others:
        first = first + (steps >= step) * (1 if step % 2 else -1)
    # Where both are from, so that they are bytes.
    first = first - max(int(first.max()) - 127, 0)
    return first.astype(np.int8), (np.arange(-128, 128) - first).astype(np.int8)


def rounded(products: Array, shift: Array | int, rounding: Rounding) -> Array:
    """Return int64 products shifted to the right as the accelerator rounds."""
    shifts = np.asarray(shift, np.int64)
    nudge = np.int64(1) << (shifts - 1)
    if rounding == "double":
        nudge = nudge + np.where(products >= 0, 1 << 30, -(1 << 30)) * (shifts > 31)
    return (products + nudge) >> shifts


@lru_cache(maxsize=1024)
def _scaling_of(digest: bytes, holder: Held) -> Scaling | Fractions | str:
    layer = holder.layer
    requant = layer.requant
    if layer.output.dtype == "int16" and not isinstance(requant, TfliteRequant):
        assert isinstance(layer, Weighted)
        return _of_int16(layer)
    if isinstance(requant, TfliteRequant):
        shifts = tuple(31 - exponent for exponent in requant.shift)
        refusal = out_of_range(shifts) or _beyond_32_bits(layer, requant.shift)
        return refusal or Scaling(requant.multiplier, shifts, "double")
    if not isinstance(requant, OnnxRequant | TorchRequant | Shift | MulShift):
        return f"the requantization is {type(requant).__name__}"
    assert isinstance(layer, Weighted)
    return _of_steps(layer, requant)


def _of_int16(layer: Weighted) -> Scaling | str:
    """Return the requantization of sums of 64 bits, which adds a half as the accelerator does."""
    requant = layer.requant
    if not isinstance(requant, MulShift):
        return f"sums of int16 have the requantization {type(requant).__name__}"
    multipliers, shifts = [], []
    for multiplier, shift, half in np.broadcast(requant.mul, requant.shift, requant.add):
        if half != 1 << (shift - 1):
            return f"{half} is added to products, not a half"
        while multiplier > _LARGEST_SHORT and multiplier % 2 == 0:
            multiplier, shift = multiplier // 2, shift - 1
        if multiplier > _LARGEST_SHORT:
            return f"a multiplier of {int(multiplier).bit_length()} bits, not 15"
        multipliers.append(int(multiplier))
        shifts.append(int(shift))
    least, most = sums_of(layer)
    if max(int(-least.min()), int(most.max())) >= 1 << (_SUM_BITS - 1):
        return f"sums exceed {_SUM_BITS} bits"
    return out_of_range(tuple(shifts)) or Scaling(tuple(multipliers), tuple(shifts), "single")


def scaling_of_product(requant: TfliteRequant) -> Scaling | str:
    """Return the requantization of products of two tensors of int16, or why there is none."""
    shifts = tuple(31 - exponent for exponent in requant.shift)
    return out_of_range(shifts) or Scaling(requant.multiplier, shifts, "double")


class Held:
    """A layer beside its digest, by which alone answers are remembered."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return 0


def scaling_of(layer: Layer) -> Scaling | Fractions | str:
    """Return a weighted layer's requantization, or why there is none with the same results."""
    return _scaling_of(value_of(layer), Held(layer))


def out_of_range(shifts: tuple[int, ...]) -> str:
    """Return what is wrong with shifts; empty if nothing is."""
    low, high = SHIFTS
    for shift in shifts:
        if not low <= shift <= high:
            return f"a shift of {shift} bits, not of {low} to {high}"
    return ""


def _beyond_32_bits(layer: Layer, exponents: tuple[int, ...]) -> str:
    """Say where TFLite's kernels would lose bits by a shift to the left, which is done first."""
    assert isinstance(layer, Weighted)
    if max(exponents) <= 0 and layer.output.dtype == "int8":
        return ""
    largest = np.abs(sums_of(layer)).max(0)
    for channel, exponent in enumerate(np.broadcast_to(exponents, largest.shape).tolist()):
        if int(largest[channel]) << max(exponent, 0) >= 1 << 31:
            shifted = f", shifted by {exponent} to the left" if exponent > 0 else ""
            return f"sums of channel {channel} exceed 32 bits{shifted}"
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


def _of_steps(layer: Weighted, requant: _Steps) -> Scaling | Fractions | str:
    """Return the requantization whose output takes every step at the same sum as the source's."""
    zero = output_zero_point_of(layer)
    steps = np.arange(layer.clip[0] + 1, layer.clip[1] + 1, dtype=np.int64) - zero
    least, most = sums_of(layer)
    within = partial(_least_reaching, steps=steps, least=least, most=most)
    reached = within(lambda sums: requantized(sums, requant, channel_axis=0) - zero)
    rounding = _rounding(requant)
    limits = steps, least, most, reached
    found = _biased(rounding, *limits) or _fractions(rounding, *limits)
    if isinstance(found, Fractions):
        first, second = parts_of(zero, found.others)
        if not np.array_equal(first + second.astype(np.int64), np.arange(-128, 128)):
            return "its steps cannot be told apart by two tables of bytes"
    return found


def _rounding(requant: _Steps) -> OnnxRequant | TorchRequant:
    """Return a requantization as one that rounds: floors are results less a half, rounded."""
    if isinstance(requant, OnnxRequant | TorchRequant):
        return requant
    if isinstance(requant, Shift):
        requant = MulShift((1,), (requant.shift,))
    # By one bit more, so that a half is an integer without any shift, too.
    mul, bits, add = np.broadcast_arrays(requant.mul, np.array(requant.shift) + 1, requant.add)
    addend = 2 * add - (1 << (bits - 1))
    return TorchRequant(tuple((2 * mul).tolist()), tuple(bits.tolist()), tuple(addend.tolist()))


_LEAST_FRACTIONS, _MOST_FRACTIONS = 8, 24
_INT32_BITS = 31 - 2.0**-16
"""What a magnitude may have, which leaves room for what is added below."""
_NUDGES = tuple(sign * near for near in range(0, 257, 4) for sign in (1, -1))[1:]
"""What is tried to add to multipliers: 32 move the highest output by about a step of fractions."""
_FEW = 17
"""After so many of these, two offsets do where one has not been found."""
_CHANGES = 8
"""How often other steps are tried."""
_MOSTLY = 0.4
"""Part of the steps that an offset must have right to be one of two."""
_OFFSETS = tuple(sign * near for near in range(17) for sign in (1, -1))[1:]
"""What is tried to add to results, in steps of fractions."""
_BIASES = tuple(sign * near for near in range(9) for sign in (1, -1))[1:]
"""What is tried to add to biases."""


def _fractions(
    requant: OnnxRequant | TorchRequant, steps: Array, least: Array, most: Array, reached: Array
) -> Fractions | str:
    """Return a requantization in two steps whose output takes every step at the same sum.

    Its multipliers are the source's, and it has as many fraction bits as fit.  As these are not
    enough to tell every sum from its neighbour, other multipliers and offsets nearby are tried,
    too, channel by channel.
    """
    shape = least.shape
    multipliers = np.broadcast_to(np.array(requant.multiplier, np.int64), shape)
    shifts = np.broadcast_to(np.array(requant.shift, np.int64), shape)
    addends = np.array(getattr(requant, "addend", (0,)), np.int64)
    sums = np.maximum(np.abs(least), np.abs(most))
    largest = float(((sums * multipliers + np.abs(addends)) / 2.0**shifts).max())
    bits = min(int(_INT32_BITS - np.log2(max(largest, 1.0))), _MOST_FRACTIONS)
    if bits < _LEAST_FRACTIONS:
        return f"results reach {largest:.0f}, which leaves no room for fractions"
    own = np.rint(addends * 2.0 ** (bits - shifts)).astype(np.int64)
    # As large as the field holds, so that the shift is long enough, too.
    room = 31 - np.frexp(np.maximum(multipliers, 1).astype(np.float64))[1]
    multipliers, shifts = multipliers << room, shifts + room - bits
    refusal = out_of_range(tuple(shifts.tolist()))
    if refusal:
        return refusal
    return _Search(multipliers, shifts, own, bits, (steps, least, most, reached)).fractions()


@dataclass(frozen=True, eq=False)
class _Search:
    """What is looked for near to a source's factors, channel by channel.

    Attributes:
        multipliers, shifts: the source's, to results with fraction bits, ``[K]``.
        own: the source's addends, in their steps, ``[K]``.
        bits: number of fraction bits.
        steps: values of the output, least and largest sums, and sums that reach the values.
    """

    multipliers: Array
    shifts: Array
    own: Array
    bits: int
    steps: tuple[Array, Array, Array, Array]

    def fractions(self) -> Fractions | str:
        """Return the requantization with nudges and offsets for each channel; or why not.

        At first, the even steps are the first offset's.  A channel that has a step which is only
        right by the other one's gives it to that, if no other channel minds.
        """
        steps = self.steps[0]
        first = steps % 2 == 0
        for _ in range(_CHANGES):
            found = self._chosen(first)
            if not isinstance(found, int):
                scaling = Scaling(
                    tuple(self._nudged(found[:, 0]).tolist()), tuple(self.shifts.tolist()), "single"
                )
                offsets = (tuple((self.own + each).tolist()) for each in found[:, 1:].T)
                others = steps[first != (steps % 2 == 0)]
                return Fractions(scaling, self.bits, tuple(offsets), tuple(others.tolist()))
            changed = self._other(found, first)
            if changed is None:
                break
            first = changed
        return f"the sums of channel {found} are rounded differently"

    def _chosen(self, first: Array) -> Array | int:
        """Return a nudge and one or two offsets for each channel, ``[K, 2 or 3]``.

        Args:
            first: which steps are the first offset's.

        Returns:
            The first channel for which there are none.
        """
        channels = range(self.own.size)
        alone: dict[int, tuple[int, ...]] = {}
        pairs: dict[int, tuple[int, ...]] = {}
        for number, nudge in enumerate(_NUDGES):
            settled = alone if number < _FEW else pairs
            left = [channel for channel in channels if channel not in settled]
            if not left:
                break
            right = self._right(np.array(left), nudge)
            ends = right[..., first].all(2), right[..., ~first].all(2)
            for at, channel in enumerate(left):
                both = ends[0][:, at] & ends[1][:, at]
                if both.any():
                    alone.setdefault(channel, (nudge, _OFFSETS[both.argmax()]))
                if ends[0][:, at].any() and ends[1][:, at].any():
                    pair = (_OFFSETS[each[:, at].argmax()] for each in ends)
                    pairs.setdefault(channel, (nudge, *pair))
        found = alone if len(alone) == len(channels) else pairs
        for channel in channels:
            if channel not in found:
                return channel
        return np.array([found[channel] for channel in channels], np.int64)

    def _other(self, channel: int, first: Array) -> Array | None:
        """Return which steps are the first offset's so that a channel's are right; None if none."""
        best, least = None, first.size + 1
        moved = first != (self.steps[0] % 2 == 0)  # what another channel needs stays
        for nudge in _NUDGES:
            right = self._right(np.array([channel]), nudge)[:, 0]
            right = right[right.mean(1) > _MOSTLY]
            for one, other in np.argwhere((right[:, None] | right).all(2)).tolist():
                changed = np.where(right[one] & right[other], first, right[one])
                count = int((changed != first).sum())
                if count < least and not (changed != first)[moved].any():
                    best, least = changed, count
            if least == 1:
                break
        return best

    def _right(self, left: Array, nudge: int) -> Array:
        """Return which steps of channels are at the right sums, ``[offsets, left, steps]``."""
        steps, least, most, reached = self.steps
        reached = reached[left]
        unreached, always = reached > most[left, None], reached == least[left, None]
        factors = self._nudged(nudge)[left, None]
        there, before = (
            rounded(sums * factors, self.shifts[left, None], "single")
            for sums in (reached, reached - 1)
        )
        added = self.own[left, None] + np.array(_OFFSETS)[:, None, None]
        right = (rounded(there + added, self.bits, "single") >= steps) | unreached
        return right & ((rounded(before + added, self.bits, "single") < steps) | always)

    def _nudged(self, nudge: Array | int) -> Array:
        return np.minimum(self.multipliers + nudge, (1 << 31) - 1)


def _biased(
    requant: OnnxRequant | TorchRequant, steps: Array, least: Array, most: Array, reached: Array
) -> Scaling | None:
    """Return a requantization of sums with other biases, whose multipliers are between bounds.

    What the source adds to its products moves to the sums as far as it is an integer there: all of
    it, if results floor.
    """
    own = np.array(getattr(requant, "addend", (0,)), np.int64)
    own = np.broadcast_to(np.rint(own / np.maximum(requant.multiplier, 1)), least.shape)
    settled = np.zeros(least.shape, bool)
    multipliers, shifts, biases = (np.zeros(least.shape, np.int64) for _ in range(3))
    for nudge in _BIASES:
        bias = own.astype(np.int64) + nudge
        found = _between(steps, least + bias, most + bias, reached + bias[:, None])
        new = found[2] & ~settled
        for kept, each in zip((multipliers, shifts, biases), (*found[:2], bias), strict=True):
            kept[new] = each[new]
        settled |= new
        if settled.all():
            added = tuple(biases.tolist()) if biases.any() else ()
            return Scaling(tuple(multipliers.tolist()), tuple(shifts.tolist()), "single", added)
    return None


def _between(steps: Array, least: Array, most: Array, reached: Array) -> tuple[Array, Array, Array]:
    """Return multipliers between the bounds that the steps give, shifts, and where both are right.

    All are of ``[K]``.
    """
    # A step is reached where the sum is at least (step - 0.5) times the sums of one step.
    halves = steps - 0.5
    positive = np.broadcast_to(halves > 0, reached.shape)
    ends = np.stack([reached / halves, (reached - 1) / halves])
    # Of a step that every sum reaches only one side counts, and of one that none does.
    always, never = reached == least[:, None], reached > most[:, None]
    ends[1] = np.where(always, np.where(positive, 0.0, np.inf), ends[1])
    ends[0] = np.where(never, np.where(positive, np.inf, 0.0), ends[0])
    low, high = np.maximum(ends.min(0).max(1), 0.0), ends.max(0).min(1)
    # A channel whose output takes no step leaves the multiplier open.
    middle = np.where(high < np.inf, (low + high) / 2, np.maximum(2 * low, 1.0))
    right = (low <= high) & (np.maximum(-least, most) < 1 << 31)
    middle = np.where(right, middle, 1.0)
    shifts = 31 - np.frexp(1 / middle)[1].astype(np.int64)
    right &= (shifts >= SHIFTS[0]) & (shifts <= SHIFTS[1])
    shifts = np.clip(shifts, *SHIFTS)
    multipliers = np.minimum(np.rint(2.0**shifts / middle), (1 << 31) - 1).astype(np.int64)
    there, before = (
        rounded(sums * multipliers[:, None], shifts[:, None], "single")
        for sums in (reached, reached - 1)
    )
    right &= ((there >= steps) | never).all(1) & ((before < steps) | always).all(1)
    return multipliers, shifts, right


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
