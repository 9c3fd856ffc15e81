"""Operators on 16-bit activations in TFLite's arithmetic ("int16x8"), softmax aside.

Convolutions also have torch's.

Activations are int16 with zero point 0, weights int8, biases up to int64.  Sums are rescaled with
one rounding by a multiplier of 15 bits, where layers of 8-bit activations have 31 bits and two.
Logistic and tanh are one curve of 256 points, and lines between: tanh(x) is 2 * logistic(2x) - 1,
and both are symmetric, so that one table of the logistic function of positive numbers serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import (
    Array,
    Convolution,
    Layer,
    MulShift,
    TfliteRequant,
    TorchRequant,
)
from patterns.op import Operands, Range, TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.layers import map_of, mean_layer
from patterns.ops.requantize import left_shift, rounding_high_multiply, rounding_right_shift
from patterns.ops.scaling import window_counts
from patterns.ops.torch.rounding import (
    HALF_WORD,
    has_ties,
    nearest_product,
    read_torch_requantize,
)
from patterns.primitive import Argument, Inputs, PrimitiveOp

INT16: Range = (-(2**15), 2**15 - 1)
LARGEST_SUM = 2**47
"""Sums that TFLite rescales must be smaller."""


def narrowed(multiplier: int, shift: int) -> tuple[int, int]:
    """Return a Q31 multiplier and its exponent as TFLite uses them for sums of 64 bits.

    Returns:
        A multiplier of 15 bits, and the right shift.

    Raises:
        UnsupportedError: the exponent is beyond what TFLite allows.
    """
    if not -31 <= shift < 8:
        raise UnsupportedError(f"a scale ratio of about 2**{shift}", hint="2**-31 to 2**7")
    return min((multiplier + (1 << 15)) >> 16, 0x7FFF), 15 - shift


def uniform(multipliers: Array, shifts: Array, largest: int) -> tuple[Array, Array]:
    """Return the same factors with one shift for all channels, if products then fit 62 bits.

    Args:
        multipliers, shifts: from `narrowed`, one per channel.
        largest: largest magnitude of a sum.
    """
    most = int(shifts.max())
    moved = multipliers.astype("int64") << (most - shifts.astype("int64"))
    if int(moved.max()) > INT32_MAX or int(moved.max()) * largest + (1 << most) >= 2**62:
        return multipliers, shifts
    return moved.astype("int32"), np.asarray([most], "int32")


@operator
@dataclass(frozen=True, eq=False)
class WideConv2d(PrimitiveOp):
    """A convolution of int16 maps without padding, to int16.

    Attributes:
        weight: int8, or int16 if some do not fit int8; ``[K, fy, fx, C / groups]``.
        bias: int64 ``[K]``.
        multipliers, shifts: int32, one or one per output channel; TFLite's from `narrowed` and
            `uniform`.
        clip: inclusive range of the output.
        strides, dilation: sizes (y, x).
        groups: number of groups of channels.
        layout: of the maps, ``"NHWC"`` or ``"NCHW"``.
        addends: what is added before the shift in torch's arithmetic, half a step included, int64,
            one or one per output channel; halves then go to the even integer.
        zero_point: of the output.
    """

    kind = "wide_conv2d"
    stem = "conv2d"
    work = Work.PRODUCT
    opaque = True

    weight: Array
    bias: Array
    multipliers: Array
    shifts: Array
    clip: Range = INT16
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    layout: str = "NHWC"
    addends: Array | None = None
    zero_point: int = 0

    @classmethod
    def in_torch(
        cls,
        weight: Array,
        bias: Array,
        requant: TorchRequant,
        clip: Range = INT16,
        strides: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        layout: str = "NHWC",
    ) -> WideConv2d:
        """Return one with torch's arithmetic; arguments as of the class.

        Raises:
            UnsupportedError: a ratio of scales is too large for sums of this size.
        """
        halves = [1 << (shift - 1) for shift in requant.shift]
        addends = np.asarray(requant.addend, "int64") + np.asarray(halves, "int64")
        made = cls(
            weight, bias, np.asarray(requant.multiplier, "int32"),
            np.asarray(requant.shift, "int32"), clip, strides, dilation, groups, layout, addends,
            requant.output_zero_point,
        )  # fmt: skip
        if made._halved and int(made.shifts.min()) <= HALF_WORD:
            raise UnsupportedError("a sum times its multiplier that leaves 64 bits")
        return made

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, (k, fy, fx, each) = inputs[0], self.weight.shape
        shape, last = source.shape, self.layout == "NHWC"
        channels = 3 if last else 1
        fits = len(shape) == 4 and shape[channels] == each * self.groups and not k % self.groups
        if not fits or source.dtype != "int16":
            raise IntegerFormError(
                f"weights of shape {self.weight.shape} on {source.dtype} of shape {shape}"
            )
        maps = shape[1:3] if last else shape[2:]
        sizes = window_counts(maps, (fy, fx), self.strides, dilation=self.dilation)
        if min(sizes) < 1:
            raise IntegerFormError(f"a kernel of {(fy, fx)} on maps of shape {shape}")
        if self.largest >= LARGEST_SUM:
            raise UnsupportedError("sums that can exceed 48 bits")
        return TensorType((shape[0], *sizes, k) if last else (shape[0], k, *sizes), "int16")

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Convolution | None:
        """See `Op.kept_layer`: sums times multipliers, with halves added before the shifts."""
        if self.addends is not None:
            return None
        source, result = (map_of(*each, "NHWC") for each in (inputs[0], (name, output)))
        if source is None or result is None:
            return None
        shifts = tuple(self.shifts.tolist())
        halves = tuple(1 << (shift - 1) for shift in shifts)
        return Convolution(
            name=name, inputs=(source,), output=result, weight=self.weight.transpose(0, 3, 1, 2),
            bias=self.bias, requant=MulShift(tuple(self.multipliers.tolist()), shifts, halves),
            clip=self.clip, input_range=INT16, stride=self.strides, dilation=self.dilation,
            groups=self.groups,
        )  # fmt: skip

    @property
    def _products(self) -> int:
        """The largest magnitude of a sum without the bias."""
        taps = np.abs(self.weight.astype("int64")).reshape(len(self.weight), -1)
        return int(taps.sum(axis=1).max(initial=0)) * 2**15

    @property
    def largest(self) -> int:
        """The largest magnitude of a sum."""
        return self._products + int(np.abs(self.bias).max(initial=0))

    @property
    def _halved(self) -> bool:
        """Whether products with torch's multipliers can leave 64 bits."""
        assert self.addends is not None
        most = self.largest * int(self.multipliers.max()) + int(np.abs(self.addends).max())
        return most >= 1 << 62

    @property
    def _has_ties(self) -> bool:
        assert self.addends is not None
        parts = self.multipliers, self.addends, self.shifts
        return has_ties(read_torch_requantize(parts, self.zero_point), self.largest)

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: all elements of each window."""
        return int(np.prod(output.shape)) * int(np.prod(self.weight.shape[1:]))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, weight, bias, multipliers, shifts, *addends = tensors
        k, fy, fx, each = self.weight.shape
        out = self.extents(tensors)
        kind = "int32" if self._products <= INT32_MAX else "int64"
        i, j, c = (
            te.reduce_axis((0, tirx.const(size, "int64")), part)
            for size, part in zip((fy, fx, each), "ijc", strict=True)
        )

        def tap(n: Any, y: Any, x: Any, o: Any) -> Any:
            first = tirx.floordiv(o, k // self.groups) * each if self.groups > 1 else 0
            rows = y * self.strides[0] + i * self.dilation[0]
            columns = x * self.strides[1] + j * self.dilation[1]
            value = source(*self._index(n, rows, columns, first + c))
            return te.sum(tirx.Cast(kind, value) * tirx.Cast(kind, weight[o, i, j, c]), [i, j, c])

        sums = te.compute(out, self._ordered(tap), name="sums")
        low, high = (tirx.const(limit, "int64") for limit in self.clip)
        one = tirx.const(1, "int64")

        def element(n: Any, y: Any, x: Any, o: Any) -> Any:
            if self.shifts.size == 1:
                amount = tirx.const(int(self.shifts[0]), "int64")
            else:
                # Bounds are written out: TVM assumes that variable amounts may be negative.
                least = HALF_WORD + 1 if addends and self._halved else 1
                amount = tirx.min(tirx.Cast("int64", shifts[o]), 62 if addends else 46)
                amount = tirx.max(amount, tirx.const(least, "int64"))
            factor = tirx.Cast("int64", multipliers[o if self.multipliers.size > 1 else 0])
            value = tirx.Cast("int64", sums(*self._index(n, y, x, o))) + bias[o]
            if self.addends is not None:
                added = addends[0][o if self.addends.size > 1 else 0]
                nearest = nearest_product(
                    value, factor, added, amount, halved=self._halved, even=self._has_ties
                )
                value = nearest + tirx.const(self.zero_point, "int64")
            else:
                value = (value * factor + (one << (amount - one))) >> amount
            return tirx.Cast("int16", tirx.max(tirx.min(value, high), low))

        return te.compute(out, self._ordered(element), name="wide_conv2d")

    def _index(self, n: Any, y: Any, x: Any, c: Any) -> tuple[Any, ...]:
        """Return the index of an element of maps."""
        return (n, y, x, c) if self.layout == "NHWC" else (n, c, y, x)

    def _ordered(self, function: Callable[[Any, Any, Any, Any], Any]) -> Callable[..., Any]:
        """Return a function of an element's batch, row, column and channel as one of its index."""
        if self.layout == "NHWC":
            return function
        return lambda n, o, y, x: function(n, y, x, o)


@operator
@dataclass(frozen=True, eq=False)
class PiecewiseRescale(PrimitiveOp):
    """Integers rescaled by one factor above zero and another below, as in a leaky ReLU or a PReLU.

    Attributes:
        above, below: Q31 multiplier and exponent for either side; a negative multiplier negates
            what its magnitude gives.
        zero_points: those of input and output.
        clip: inclusive range of the output.
        dtype: type of the output.
        slopes: integers, one or one for each element of the last axis, by which numbers below zero
            are multiplied first, int32 ``[C]``; products must fit int32.
    """

    kind = "piecewise_rescale"
    stem = "rescale"

    above: tuple[int, int]
    below: tuple[int, int]
    zero_points: tuple[int, int] = (0, 0)
    clip: Range = INT16
    dtype: str = "int16"
    slopes: Array | None = None

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].dtype not in ("int8", "uint8", "int16", "int32"):
            raise UnsupportedError(f"an input of type {inputs[0].dtype}")
        shape = inputs[0].shape
        if self.slopes is not None and self.slopes.shape not in ((1,), shape[-1:]):
            raise IntegerFormError(f"slopes of shape {self.slopes.shape} for a tensor of {shape}")
        return TensorType(shape, self.dtype)

    @property
    def special(self) -> str:
        if self.slopes is not None:
            return " with slopes"
        if self.above == self.below and self.above[0] > 0:
            return ""
        negated = self.below == (-self.above[0], self.above[1])
        return " of absolute numbers" if negated else " with two factors"

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """See `Op.kept_layer`: numbers of int16 with one factor, as products with ones."""
        if self.special or {inputs[0][1].dtype, output.dtype} != {"int16"}:
            return None
        multiplier, exponent = self.above
        requant = TfliteRequant(
            (multiplier,), (exponent,), self.zero_points[1], self.zero_points[:1]
        )
        return mean_layer(name, inputs[0], (), requant, clip=self.clip)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, the multipliers, and slopes if there are any."""
        multipliers = np.asarray([abs(self.above[0]), abs(self.below[0])], "int32")
        slopes = [] if self.slopes is None else [Argument("slopes", self.slopes, "slopes")]
        return Argument("x", inputs[0]), Argument("multipliers", multipliers), *slopes

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, multipliers, *slopes = tensors
        low, high = self.clip

        def scaled(value: Any, at: int, factor: tuple[int, int]) -> Any:
            shift = factor[1]
            if shift > 0:
                value = left_shift(value, tirx.const(shift, "int32"), known=True)
            value = rounding_high_multiply(value, multipliers[at])
            if shift < 0:
                value = rounding_right_shift(value, tirx.const(-shift, "int32"))
            return value if factor[0] >= 0 else -value

        def element(*index: Any) -> Any:
            value = tirx.Cast("int32", source(*index)) - self.zero_points[0]
            result = scaled(value, 0, self.above)
            if slopes or self.below != self.above:
                below = value
                if slopes:
                    below = value * slopes[0][index[-1] if slopes[0].shape[0] > 1 else 0]
                result = tirx.Select(value >= 0, result, scaled(below, 1, self.below))
            result = result + self.zero_points[1]
            return tirx.Cast(self.dtype, tirx.max(tirx.min(result, high), low))

        return te.compute(source.shape, element, name="rescaled")


_POINTS = 256
_POINTS_PER_UNIT = 24
_UNIT = 3 << 12  # of numbers that are scaled to be looked up
_MOST_BITS = 15  # of the factor


@operator
@dataclass(frozen=True, eq=False)
class WideSigmoid(PrimitiveOp):
    """The logistic function or tanh of int16; output scale 1/32768, zero point 0.

    Attributes:
        function: name of the function.
        multiplier, shift: a number times ``multiplier``, shifted right and rounded, is what is
            looked up; from `of_scale`.
    """

    kind = "wide_sigmoid"

    function: Literal["logistic", "tanh"]
    multiplier: int
    shift: int

    @classmethod
    def of_scale(cls, function: Literal["logistic", "tanh"], scale: float) -> WideSigmoid:
        """Return the function for an input of this scale.

        Raises:
            UnsupportedError: the scale is too large for TFLite's arithmetic.
        """
        # TFLite takes a scale of 1/4096, or for tanh 1/2048, within 0.07 %, for exactly that.
        power = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
        exponent = round(float(power))
        whole = (-12,) if function == "logistic" else (-12, -11)
        if abs(power - np.float32(exponent)) < np.float32(1e-3) and exponent in whole:
            return cls(function, 3 << (12 + exponent), 0)
        factor, shift = float(np.float32(scale)) * _UNIT, 0
        while factor <= (2**_MOST_BITS - 1) / 2 and shift < 31:
            factor, shift = factor * 2, shift + 1
        if factor >= 2**_MOST_BITS:
            raise UnsupportedError(
                f"a {function} whose input scale is {scale:g}", hint="use below 2.6"
            )
        return cls(function, int(factor), shift)

    @property
    def stem(self) -> str:
        return self.function

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].dtype != "int16":
            raise IntegerFormError(f"an input of type {inputs[0].dtype}, not int16")
        return inputs[0]

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the curve."""
        return {"curve": _curve()}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, curve = tensors
        logistic = self.function == "logistic"
        # Bits between two points, bits of the result's fraction that are rounded, and the result
        # for zero before that, with a half.
        between, dropped = (9, 10) if logistic else (8, 8)
        centre = (1 << 24 if logistic else 0) + (1 << (dropped - 1))
        last = ((_POINTS - 1) << between) - 1
        half = 1 << (self.shift - 1) if self.shift else 0
        scaled = (tirx.Cast("int32", source(*index)) * self.multiplier + half) >> self.shift
        magnitude = tirx.min(tirx.Select(scaled < 0, -scaled, scaled), last)
        place, part = magnitude >> between, magnitude & ((1 << between) - 1)
        low, high = (tirx.Cast("int32", curve[at]) for at in (place, place + 1))
        value = (low << between) + part * (high - low)
        signed = tirx.Select(scaled < 0, -1 - value, value)
        return tirx.Cast("int16", (signed + centre) >> dropped)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: all of int16."""
        return INT16


@cache
def _curve() -> Array:
    """The logistic function less 1/2 of 0 to 255 / 24, with 16 fraction bits: int16 [256].

    Each point is half as much too high as the line to the next one is too low between them.
    """

    def exact(point: float) -> float:
        return 2**16 / (1 + math.exp(-point / _POINTS_PER_UNIT)) - 2**15

    def raised(point: int) -> float:
        below = exact(point + 0.5) - (exact(point) + exact(point + 1)) / 2
        return exact(point) + below / 2

    points = [math.floor(raised(point) + 0.5) for point in range(_POINTS - 1)]
    return np.asarray([*points, 2**15 - 1], "int16")
