"""Layers with weights, sums and conversions, from scales and zero points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.layers import Array, MulShift, OnnxRequant, Shift, TfliteRequant, TorchRequant
from htvm.frontend.operators import Activation, Applied, Clip, Pair, Quantization
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense, dense_of
from patterns.ops.integer.limits import check_int32
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.onnxruntime.rounding import float_scale
from patterns.ops.requantize import fixed_point, tflite_reach
from patterns.ops.tflite.averages import TfliteMean, mean_factor
from patterns.ops.tflite.binary import (
    ADD_LEFT_SHIFT,
    MULTIPLY_LEFT_SHIFT,
    SQUARE_LEFT_SHIFT,
    WIDE_LEFT_SHIFT,
    AddFactors,
    Function,
    MultiplyFactors,
    SquareFactors,
    TfliteAdd,
    TfliteBinary,
)
from patterns.ops.tflite.wide import WideConv2d, narrowed, uniform
from patterns.ops.torch.rounding import requantization


def converted(before: Quantization, after: Quantization, clip: Clip) -> Convert:
    """Return the conversion of int8 from one quantization to another.

    Raises:
        UnsupportedError: the scales are too far apart.
    """
    zeros = (before.zero_point, after.zero_point)
    return Convert.of_scales((before.scale, after.scale), zeros, clip)


def summed(a: Quantization, b: Quantization, output: Quantization, clip: Clip) -> TfliteAdd:
    """Return the sum of two int8 tensors, each with its own quantization.

    Raises:
        UnsupportedError: the output's scale is absurdly small.
    """
    scales = (a.scale, b.scale, output.scale)
    zeros = (a.zero_point, b.zero_point, output.zero_point)
    return TfliteAdd(AddFactors.from_scales(scales, zeros), clip)


def binary_of(
    function: Function,
    steps: Sequence[Quantization],
    clip: Clip,
    a: Array | None = None,
    b: Array | None = None,
    *,
    wide: bool = False,
) -> TfliteBinary:
    """Return a function of two tensors, broadcast, either of which may be constant.

    Args:
        function: which one.
        steps: quantizations of both operands and the result.
        clip: inclusive range of the result.
        a, b: operands that are constant.
        wide: whether tensors are int16, which have fewer fraction bits to spare.

    Raises:
        UnsupportedError: the scales are too far apart.
    """
    scales = (steps[0].scale, steps[1].scale, steps[2].scale)
    zeros = (steps[0].zero_point, steps[1].zero_point, steps[2].zero_point)
    factors: AddFactors | MultiplyFactors | SquareFactors
    if function == "multiply":
        factors = MultiplyFactors.from_scales(scales, zeros, 0 if wide else MULTIPLY_LEFT_SHIFT)
    elif function == "squared_difference":
        factors = SquareFactors.from_scales(scales, zeros, 0 if wide else SQUARE_LEFT_SHIFT)
    else:
        bits = WIDE_LEFT_SHIFT if wide else ADD_LEFT_SHIFT
        factors = AddFactors.from_scales(scales, zeros, bits)
    return TfliteBinary(function, factors, clip, a, b)


def mean_of(
    stem: Literal["mean", "sum"],
    axes: Sequence[int],
    keep: bool,
    count: int,
    steps: tuple[Quantization, Quantization],
) -> TfliteMean:
    """Return the mean or sum of a tensor over axes.

    Args:
        stem: which of the two.
        axes: axes to reduce, counted from 0.
        keep: whether they remain, with size 1.
        count: number of elements of each mean.
        steps: quantizations of input and output.
    """
    first, last = steps
    scales = (first.scale, last.scale)
    factor = fixed_point(scales[0] / scales[1]) if stem == "sum" else mean_factor(scales, count)
    return TfliteMean(tuple(axes), *factor, (first.zero_point, last.zero_point), keep)


def bound(real: float, step: Quantization, otherwise: int, limits: Clip = (-128, 127)) -> int:
    """Return a real bound in quantized steps, inside the type's limits, int8 by default.

    It is divided as float32 and rounded half away from zero; ``otherwise`` is returned if it is
    infinite.
    """
    if math.isinf(real):
        return otherwise
    scaled = float(np.float32(real) / np.float32(step.scale))
    number = step.zero_point + int(math.copysign(math.floor(abs(scaled) + 0.5), scaled))
    return min(max(number, limits[0]), limits[1])


Rounding: TypeAlias = Literal["tflite", "onnx", "torch"]
"""Whose arithmetic to follow: TFLite Micro's, onnxruntime's or torch's."""

BIAS_TOLERANCE = 0.02
"""How far the scale of a bias may be from s_in * s_w for its integers to be used unchanged."""


@dataclass(frozen=True, eq=False)
class QuantizedProduct:
    """A layer with weights whose input and output are quantized.

    Attributes:
        weight: int8 or int16 ``[K, C / groups, fy, fx]``, or ``[K, C]``.
        bias: int32 ``[K]``, in steps of s_in * s_w.
        ratios: s_in * s_w / s_out, one number or one per output channel.
        zero_points: zero points of input and output.
        clip: inclusive range of the output.
        where: description of the place in the source, for messages.
        rounding: whose requantization to use.
        fractions: what is left of the bias behind whole steps, float64 ``[K]``, in torch's
            arithmetic; elsewhere ``None``.
        dtypes: types of input and output, int8 or uint8.
    """

    weight: Array
    bias: Array
    ratios: tuple[float, ...]
    zero_points: Pair
    clip: Clip
    where: str
    rounding: Rounding = "tflite"
    fractions: Array | None = None
    dtypes: tuple[str, str] = ("int8", "int8")

    def convolved(
        self, source: Activation, window: Window, position: Callable[[int], Pair]
    ) -> Applied:
        """Return the convolution of a tensor, padded explicitly if its zero point is not 0.

        Args:
            source: the input.
            window: window of the filter.
            position: positions of the operators that it consists of, by their number.

        Raises:
            UnsupportedError: the folded bias, some accumulator, or what its requantization makes
                of it before the clip, does not fit int32, or the scales are too far apart.
        """
        source, window = padded(source, window, self.zero_points[0], position, self.where)
        parameters = self._bias, window, self._requant, self.clip, self.dtypes[1]
        op = conv2d_of(np.asarray(self.weight, order="C"), *parameters)
        return Applied(position(1), self.where, (source,), op)

    def dense(self, source: Activation, position: Pair) -> Applied:
        """Return the product with rows ``(N, C)``; errors as for `convolved`."""
        rows = source.shape[:-1]
        op = dense_of(rows, self.weight, self._bias, self._requant, self.clip, self.dtypes[1])
        return Applied(position, self.where, (source,), op, stem=Dense.kind)

    @cached_property
    def _requant(self) -> Shift | MulShift | TfliteRequant | OnnxRequant | TorchRequant:
        if self.fractions is not None:
            if self.shifts is not None:
                most = max(self.shifts)
                factors = tuple(1 << (most - shift) for shift in self.shifts)
                return Shift(most) if len(factors) == 1 else MulShift(factors, (most,))
            ratios = np.asarray(self.ratios, "float64")
            return requantization(ratios, self.fractions, self.zero_points[1])
        onnx = self.rounding == "onnx"
        parts = [(float_scale if onnx else fixed_point)(ratio) for ratio in self.ratios]
        multiplier, shift = zip(*parts, strict=True)
        requant = OnnxRequant if onnx else TfliteRequant
        return requant(multiplier, shift, self.zero_points[1])

    @cached_property
    def shifts(self) -> tuple[int, ...] | None:
        """The right shifts that round as torch does, with half of their steps added; else ``None``.

        They round halves up, so there must be none: either nothing is shifted out, or the bias lies
        between whole steps of the sum.  There is one shift, or one for each channel.
        """
        if self.fractions is None or self.zero_points[1]:
            return None
        mantissas, exponents = zip(*map(math.frexp, self.ratios), strict=True)
        shifts = 1 - np.array(exponents)
        without_ties = np.where(shifts > 0, self.fractions != 0, self.fractions == 0)
        exact = set(mantissas) == {0.5} and without_ties.all()
        if not exact or shifts.min() < 0 or shifts.max() >= 31:
            return None
        return tuple(shifts.tolist())

    @property
    def _bias(self) -> Array:
        bias = folded_bias(self.weight, self.bias, self.zero_points[0])
        if self.fractions is not None and self.shifts is not None:
            half = (1 << np.array(self.shifts)) >> 1
            bias = bias + half + np.floor(self.fractions).astype("int64")
        # Weights times activations, each at its worst.
        above, below = (_sums(part(self.weight, 0)) for part in (np.maximum, np.minimum))
        read = np.iinfo(self.dtypes[0])
        highest = bias + read.max * above + read.min * below
        lowest = bias + read.max * below + read.min * above
        for part in (bias, highest, lowest):
            check_int32(int(part.min(initial=0)), int(part.max(initial=0)), self.where)
        requant, zero = self._requant, self.zero_points[1]
        if isinstance(requant, TfliteRequant):
            largest = np.maximum(np.abs(lowest), np.abs(highest))
            multiplier, shift = np.asarray(requant.multiplier), np.asarray(requant.shift)
            reach = tflite_reach(largest, multiplier, shift)
            check_int32(zero - reach, zero + reach, self.where)
        return bias.astype("int32")


@dataclass(frozen=True, eq=False)
class WideProduct:
    """A layer with weights whose input and output are int16.

    Attributes:
        weight: int8 ``[K, C / groups, fy, fx]``, or ``[K, C]``.
        bias: int64 ``[K]``, in steps of s_in * s_w.
        ratios: s_in * s_w / s_out, one number or one per output channel.
        clip: inclusive range of the output.
        where: description of the place in the source, for messages.
        zero_points: zero points of input and output; TFLite has none.
        fractions: as of `QuantizedProduct`.
    """

    weight: Array
    bias: Array
    ratios: tuple[float, ...]
    clip: Clip
    where: str
    zero_points: Pair = (0, 0)
    fractions: Array | None = None

    def convolved(
        self, source: Activation, window: Window, position: Callable[[int], Pair]
    ) -> Applied:
        """Return the convolution of a tensor, padded explicitly; arguments as above."""
        if any(window.padding):
            top, left, bottom, right = window.padding
            sides, none = ((top, bottom), (left, right)), (0, 0)
            maps = (none, *sides, none) if window.layout == "NHWC" else (none, none, *sides)
            pad = PadAxes(self.zero_points[0], maps)
            source = Activation.of(Applied(position(0), self.where, (source,), pad))
        return Applied(position(1), self.where, (source,), self.filter(window))

    def filter(self, window: Window) -> WideConv2d:
        """Return the operator: products with rows are a convolution of one row of pixels."""
        weight = self.weight if self.weight.ndim == 4 else self.weight[:, :, None, None]
        weight = np.asarray(weight.transpose(0, 2, 3, 1), order="C")
        bias = folded_bias(self.weight, self.bias, self.zero_points[0])
        moves = self.clip, window.strides, window.dilation, window.groups, window.layout
        if self.fractions is not None:
            requant = requantization(
                np.asarray(self.ratios, "float64"), self.fractions, self.zero_points[1]
            )
            return WideConv2d.in_torch(weight, bias, requant, *moves)
        factors = [narrowed(*fixed_point(ratio)) for ratio in self.ratios]
        multipliers, shifts = (np.asarray(part, "int32") for part in zip(*factors, strict=True))
        made = WideConv2d(weight, bias, multipliers, shifts, *moves)
        multipliers, shifts = uniform(multipliers, shifts, made.largest)
        return replace(made, multipliers=multipliers, shifts=shifts)


def folded_bias(weight: Array, bias: Array, zero_point: int) -> Array:
    """Return the bias minus the input's zero point times the sum of the weights, int64 ``[K]``."""
    return np.asarray(bias.astype("int64") - zero_point * _sums(weight))


def _sums(weight: Array) -> Array:
    """Return the sum of each channel's weights, int64 ``[K]``."""
    # Not -1: a damaged file may have no channels, which is reported where sizes are checked.
    rows = weight.reshape(len(weight), math.prod(weight.shape[1:]))
    return np.asarray(rows.sum(axis=1, dtype="int64"))


def padded(
    source: Activation,
    window: Window,
    zero_point: int,
    position: Callable[[int], Pair],
    where: str,
) -> tuple[Activation, Window]:
    """Pad a convolution's input where the number 0.0 is another integer than 0.

    A convolution pads with the integer 0 by itself.

    Returns:
        What the convolution reads, and its window.
    """
    if not any(window.padding) or zero_point == 0:
        return source, window
    pad = Pad(zero_point, window.padding, window.layout)
    made = Activation.of(Applied(position(0), where, (source,), pad))
    return made, replace(window, padding=(0, 0, 0, 0))
