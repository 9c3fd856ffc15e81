"""Drawing a network: its topology, seeded weights, and suitable shifts.

A `Sketch` is built by adding one operator after another.  It draws int8 weights, runs a few seeded
inputs through the network in numpy, and chooses for each layer the smallest shift that keeps its
outputs in range, and biases that centre each channel, like a trained network's folded
normalisation. Without this, random networks of this depth give the same answer for every input.

A network can be drawn in three schemes:

* ``"8-bit"``: int8 weights, one right shift per layer, as for the digital core.
* ``"ternary"``: convolutions and dense layers have weights -1, 0, 1 and the analog core's
  requantization; depthwise convolutions and additions, which that core does not support, have 8
  bits.
* ``"mixed"``: the first and the last convolution (in a network without any: dense layer) and all
  dense layers have 8 bits as well, as published.

The analog core reads 7 bits and clips to 7 bits itself; the 8-bit layers before it have shifts for
which their weights prove that no sum exceeds 7 bits, and the input is halved.

Everything is integer arithmetic, so a seed gives the same network on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.errors import ModelError
from byoc_dory.layers import AnalogRequant, Array, Shift
from htvm.tools.zoo import arithmetic
from htvm.tools.zoo.arithmetic import (
    Range,
    array,
    narrowing,
    passes,
    peaked,
    proven_requant,
    thinned,
)
from htvm.tools.zoo.schemes import SCHEMES, Scheme
from patterns.op import Op
from patterns.ops.add import Add
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convert import Convert
from patterns.ops.convolution import Conv2d, Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax

Pad: TypeAlias = tuple[int, int, int, int]
Place: TypeAlias = Literal["first", "inner", "last"]
Handle: TypeAlias = int
"""A tensor of a sketch: its index in the order of tensors (0 is the input)."""

LOGITS_SCALE = 1.0 / 32
"""Scale of the softmax's input with which a typical answer is neither flat nor saturated."""

_INT8: Range = (-128, 127)


# One in this many calibration outputs may leave the int8 range.
_OUTLIERS = 1024


@dataclass(frozen=True, eq=False)
class SketchStep:
    """One operator of a sketch.

    Attributes:
        op: the operator, for maps in NHWC order.
        inputs: the tensors it reads; its output is the next tensor.
        shape: shape of its output, ``(C, y, x)`` or ``(C,)``.
    """

    op: Op
    inputs: tuple[Handle, ...]
    shape: tuple[int, ...]

    @property
    def weight(self) -> Array | None:
        """Int8 weights ``[K, C / groups, fy, fx]`` or ``[K, C]``; None without weights."""
        layers = (Conv2d, Dense, AnalogConv2d, AnalogDense)
        return self.op.weight if isinstance(self.op, layers) else None

    @property
    def macs(self) -> int:
        """Multiply-accumulates per inference."""
        return 0 if self.weight is None else int(self.weight.size) * math.prod(self.shape[1:])


class Sketch:
    """Draws a network operator by operator (see the module's docstring).

    Args:
        name: name of the network; networks with different names have different weights.
        shape: shape of the input, ``(C, y, x)`` or ``(C,)``.
        seed: seed of the weights and of the calibration inputs.
        scheme: scheme of the weights; see the module's docstring.

    Raises:
        ModelError: there is no such scheme.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], seed: int = 0, scheme: Scheme = "8-bit"
    ) -> None:
        if scheme not in SCHEMES:
            raise ModelError(
                f"there is no scheme {scheme!r}",
                where=f"htvm.zoo, network '{name}'",
                hint=f"one of {', '.join(SCHEMES)}",
            )
        self.name = name if scheme == "8-bit" else f"{name}_{scheme}"
        self.scheme = scheme
        self.shape = shape
        self.steps: list[SketchStep] = []
        self._rng = np.random.default_rng([seed, *name.encode()])
        inputs = 8 if len(shape) == 3 else 64
        self._data = [self._rng.integers(-128, 128, (inputs, *shape))]
        self._ranges: list[Range] = [_INT8]
        self._wide = scheme == "8-bit"  # whether no analog core reads the following tensors
        if scheme == "ternary":
            limits = array().activation_range
            data = arithmetic.requantize(self._data[0], 1, limits)
            self._record(Convert(Shift(1), limits), (0,), data, limits)

    @property
    def input(self) -> Handle:
        """The network's input; 7 bits in the ternary scheme."""
        return 1 if self.scheme == "ternary" else 0

    @property
    def last(self) -> Handle:
        """The tensor computed last."""
        return len(self._data) - 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates per inference."""
        return sum(step.macs for step in self.steps)

    def calibration(self, step: int) -> Array:
        """Return a step's outputs ``[n, *shape]`` for the calibration inputs."""
        return self._data[step + 1]

    def conv2d(
        self,
        x: Handle,
        k: int,
        filter: tuple[int, int],
        stride: int = 1,
        pad: Pad | None = None,
        relu: bool = True,
        place: Place = "inner",
    ) -> Handle:
        """Add a convolution to ``k`` maps; ``pad`` defaults to half the filter on every side."""
        fy, fx = filter
        ternary = self._enter(place)
        weight = self._weights((k, self._data[x].shape[1], fy, fx), ternary)
        sides = (fy // 2, fx // 2, fy // 2, fx // 2) if pad is None else pad
        window = Window((stride, stride), sides)
        source = self._data[x]

        def accumulate(part: slice) -> Array:
            return arithmetic.conv2d(source[:, part], weight[:, part], stride, sides, False)

        return self._linear(x, weight, window, accumulate, relu, ternary)

    def depthwise(self, x: Handle, stride: int = 1) -> Handle:
        """Add a 3x3 depthwise convolution with ReLU."""
        source, sides = self._data[x], (1, 1, 1, 1)
        weight = self._weights((source.shape[1], 1, 3, 3), False)
        if not self._wide:
            weight = peaked(weight)
        window = Window((stride, stride), sides, groups=len(weight))

        def accumulate(part: slice) -> Array:
            return arithmetic.conv2d(source, weight, stride, sides, True)

        return self._linear(x, weight, window, accumulate, True, False)

    def dense(self, x: Handle, k: int, relu: bool = False, place: Place = "last") -> Handle:
        """Add a fully connected layer; ``(C, 1, 1)`` is read as ``(C,)``."""
        ternary = self._enter(place, dense=True)
        source = self._data[x].reshape(len(self._data[0]), -1)
        if self._data[x].ndim > 2:
            x = self._record(Reshape((1, source.shape[1])), (x,), source, self._ranges[x])
        weight = self._weights((k, source.shape[1]), ternary)
        if not ternary and not self._wide:
            weight = thinned(weight)

        def accumulate(part: slice) -> Array:
            return arithmetic.dense(source[:, part], weight[:, part])

        return self._linear(x, weight, None, accumulate, relu, ternary)

    def _enter(self, place: Place, *, dense: bool = False) -> bool:
        """Whether a layer is ternary; after the last one that reads 7 bits, all 8 are used."""
        kept = self.scheme == "8-bit" or (self.scheme == "mixed" and place != "inner")
        if place == "last" and (dense or self.scheme == "mixed"):
            self._wide = True
        return not kept

    def _linear(
        self,
        x: Handle,
        weight: Array,
        window: Window | None,
        accumulate: Callable[[slice], Array],
        relu: bool,
        ternary: bool,
    ) -> Handle:
        """Choose a layer's requantization by its accumulators, and record it."""
        if ternary:
            core, slices = array(), passes(weight)
            sums = [accumulate(part) for part in slices]
            gain = max(_shift(part, False, core.adc_bits) for part in sums)
            acc = np.sum([np.clip(part >> gain, *core.adc_range) for part in sums], axis=0)
            return self._analog(x, weight, window, acc, 1 << gain, relu)
        acc = accumulate(slice(None))
        bias, shift = self._requantization(acc, relu, 8)
        clip = (0, 127) if relu else _INT8
        held = clip
        if not self._wide:
            pad = window.padding if window is not None else ()
            shift, held = proven_requant(weight, bias, self._ranges[x], pad, clip)
        bias = _rounding(bias, shift)
        data = arithmetic.requantize(acc + _along(bias, acc), shift, clip)
        bias, requant = bias.astype("int32"), Shift(shift)
        op = (
            Dense(weight, bias, requant, clip)
            if window is None
            else conv2d_of(weight, bias, window, requant, clip)
        )
        return self._record(op, (x,), data, held)

    def _analog(
        self, x: Handle, weight: Array, window: Window | None, acc: Array, gain: int, relu: bool
    ) -> Handle:
        """Record a ternary layer whose converters output ``acc``."""
        core = array()
        bits = 8 if self._wide else core.activation_bits
        mul = self._rng.integers(48, 129, acc.shape[1])
        scaled = acc * _along(mul, acc)
        add, shift = self._requantization(scaled, relu, bits)
        add = _rounding(add, shift)
        assert np.abs(add).max() < 1 << 15
        top = (1 << (bits - 1)) - 1
        clip = (0 if relu else -top - 1, top)
        data = arithmetic.requantize(scaled + _along(add, acc), shift, clip)
        requant = AnalogRequant(gain, _ints(mul), _ints(add), shift, core.rows)
        op = (
            AnalogDense(weight, requant, clip)
            if window is None
            else AnalogConv2d(weight, requant, clip, window)
        )
        return self._record(op, (x,), data, clip)

    def add(self, a: Handle, b: Handle, relu: bool = True) -> Handle:
        """Add an element-wise sum."""
        acc = self._data[a] + self._data[b]
        clip = (0, 127) if relu else _INT8
        shift, held = _shift(acc, relu, 8), clip
        if not self._wide:
            least, most = (sum(self._ranges[h][end] for h in (a, b)) for end in (0, 1))
            shift, held = narrowing(least, most, clip)
        data = arithmetic.requantize(acc, shift, clip)
        return self._record(Add(Shift(shift), clip), (a, b), data, held)

    def average_pool(self, x: Handle) -> Handle:
        """Add the mean of each map."""
        data = arithmetic.average_pool(self._data[x])
        kernel = self._data[x].shape[2:]
        op = AveragePool(kernel=kernel, strides=kernel)
        return self._record(op, (x,), data, self._ranges[x])

    def softmax(self, x: Handle) -> Handle:
        """Add a softmax over a vector; its values are not needed here, so they are not computed."""
        return self._record(TfliteSoftmax.of_scale(LOGITS_SCALE), (x,), self._data[x], _INT8)

    def _record(self, op: Op, inputs: tuple[Handle, ...], data: Array, held: Range) -> Handle:
        self.steps.append(SketchStep(op, inputs, data.shape[1:]))
        self._data.append(data)
        self._ranges.append(held)
        return self.last

    def _weights(self, shape: tuple[int, ...], ternary: bool) -> Array:
        if ternary:
            return self._rng.integers(-1, 2, shape).astype("int8")
        # The sum of four uniform integers: bell-shaped, within int8, and no floating point.
        return self._rng.integers(-31, 32, (4, *shape)).sum(axis=0).astype("int8")

    def _requantization(self, acc: Array, relu: bool, bits: int) -> tuple[Array, int]:
        """Return bias and shift that suit these accumulators (channels on axis 1)."""
        channels = acc.swapaxes(0, 1).reshape(acc.shape[1], -1)
        mean = channels.sum(axis=1) // channels.shape[1]
        spread = channels - mean[:, None]
        deviation = [math.isqrt(int(square)) for square in (spread**2).sum(axis=1)]
        deviation = [value // math.isqrt(channels.shape[1]) for value in deviation]
        # After a ReLU, between 40 % and 77 % of a channel's values stay positive.
        offset = self._rng.integers(-64, 193, len(mean)) * np.array(deviation) // 256
        bias = offset - mean
        shift = _shift(channels + bias[:, None], relu, bits)
        return bias, shift


def _shift(values: Array, relu: bool, bits: int) -> int:
    """Return the smallest shift after which all but a few outliers fit ``bits`` bits."""
    magnitude = np.sort(values.reshape(-1) if relu else np.abs(values).reshape(-1))
    peak = int(magnitude[-1 - magnitude.size // _OUTLIERS])
    return max(peak.bit_length() - bits + 1, 0)


def _rounding(bias: Array, shift: int) -> Array:
    """Return the bias plus half a step, so that the floor of a shift rounds."""
    return bias + ((1 << shift) >> 1)


def _along(values: Array, like: Array) -> Array:
    """Reshape values per channel so that they broadcast over ``[n, C, ...]``."""
    return values.reshape(-1, *(1,) * (like.ndim - 2))


def _ints(values: Array) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
