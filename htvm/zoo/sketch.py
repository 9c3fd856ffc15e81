"""A network being drawn: topology, seeded weights, and shifts that suit them.

A `Sketch` is told one operator after the other.  It draws int8 weights, runs a few seeded inputs
through the network in numpy, and chooses for each layer the smallest shift that keeps its outputs
in range, and biases that centre each channel, as a trained network's folded normalisation does.
Without that, random networks of this depth answer every input alike.

Everything is integer arithmetic, so that a seed gives the same network on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.layer import Array
from htvm.zoo import forward

__all__ = ["Handle", "Sketch", "Step"]

Op: TypeAlias = Literal["conv2d", "depthwise", "dense", "add", "average_pool", "softmax"]
Pad: TypeAlias = tuple[int, int, int, int]

# Of the calibration outputs, one in so many may leave the int8 range.
_OUTLIERS = 1024


@dataclass(frozen=True)
class Handle:
    """A tensor of a sketch: its place in the order of tensors (0 is the input)."""

    index: int


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of a sketch.

    Attributes:
        op: the operator.
        inputs: the tensors it reads; it writes the next one.
        shape: of its output, ``(C, y, x)`` or ``(C,)``.
        weight: int8 ``[K, C / groups, fy, fx]`` or ``[K, C]``; None for operators without.
        bias: int32 ``[K]``, half a step for rounding included; None for operators without.
        shift: right shift of the requantization.
        clip: inclusive range of the output.
        stride: of both axes.
        pad: zeros (top, left, bottom, right).
    """

    op: Op
    inputs: tuple[Handle, ...]
    shape: tuple[int, ...]
    weight: Array | None = None
    bias: Array | None = None
    shift: int = 0
    clip: tuple[int, int] = (-128, 127)
    stride: int = 1
    pad: Pad = (0, 0, 0, 0)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        if self.weight is None:
            return 0
        positions = math.prod(self.shape[1:])
        return int(self.weight.size) * positions


class Sketch:
    """Draws a network operator by operator (see the module's docstring).

    Args:
        name: of the network; networks of different names have different weights.
        shape: of the input, ``(C, y, x)`` or ``(C,)``.
        seed: of the weights and of the calibration inputs.
    """

    def __init__(self, name: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self.name = name
        self.shape = shape
        self.steps: list[Step] = []
        self._rng = np.random.default_rng([seed, *name.encode()])
        inputs = 8 if len(shape) == 3 else 64
        self._data = [self._rng.integers(-128, 128, (inputs, *shape))]

    @property
    def input(self) -> Handle:
        """The network's input."""
        return Handle(0)

    @property
    def last(self) -> Handle:
        """The tensor computed last."""
        return Handle(len(self._data) - 1)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(step.macs for step in self.steps)

    def calibration(self, step: int) -> Array:
        """Outputs ``[n, *shape]`` of a step for the calibration inputs."""
        return self._data[step + 1]

    def conv2d(
        self,
        x: Handle,
        k: int,
        filter: tuple[int, int],
        stride: int = 1,
        pad: Pad | None = None,
        relu: bool = True,
    ) -> Handle:
        """A convolution to ``k`` maps; ``pad`` defaults to half the filter on every side."""
        fy, fx = filter
        weight = self._weights((k, self._data[x.index].shape[1], fy, fx))
        return self._conv(x, weight, stride, pad, relu, depthwise=False)

    def depthwise(self, x: Handle, stride: int = 1) -> Handle:
        """A 3x3 depthwise convolution with ReLU."""
        weight = self._weights((self._data[x.index].shape[1], 1, 3, 3))
        return self._conv(x, weight, stride, None, True, depthwise=True)

    def _conv(
        self, x: Handle, weight: Array, stride: int, pad: Pad | None, relu: bool, depthwise: bool
    ) -> Handle:
        fy, fx = weight.shape[2:]
        sides = (fy // 2, fx // 2, fy // 2, fx // 2) if pad is None else pad
        acc = forward.conv2d(self._data[x.index], weight, stride, sides, depthwise)
        bias, shift, clip = self._requantization(acc, relu)
        data = forward.requantize(acc + bias[:, None, None], shift, clip)
        op: Op = "depthwise" if depthwise else "conv2d"
        step = Step(op, (x,), data.shape[1:], weight, bias, shift, clip, stride, sides)
        return self._record(step, data)

    def dense(self, x: Handle, k: int, relu: bool = False) -> Handle:
        """A fully connected layer; ``(C, 1, 1)`` is read as ``(C,)``."""
        source = self._data[x.index].reshape(len(self._data[0]), -1)
        weight = self._weights((k, source.shape[1]))
        acc = forward.dense(source, weight)
        bias, shift, clip = self._requantization(acc, relu)
        data = forward.requantize(acc + bias, shift, clip)
        return self._record(Step("dense", (x,), (k,), weight, bias, shift, clip), data)

    def add(self, a: Handle, b: Handle, relu: bool = True) -> Handle:
        """Element-wise sum."""
        acc = self._data[a.index] + self._data[b.index]
        clip = (0, 127) if relu else (-128, 127)
        shift = _shift(acc, relu)
        data = forward.requantize(acc, shift, clip)
        return self._record(Step("add", (a, b), data.shape[1:], shift=shift, clip=clip), data)

    def average_pool(self, x: Handle) -> Handle:
        """The mean of each map."""
        data = forward.average_pool(self._data[x.index])
        return self._record(Step("average_pool", (x,), data.shape[1:]), data)

    def softmax(self, x: Handle) -> Handle:
        """Softmax over a vector.  Its numbers are not needed here, so none are computed."""
        data = self._data[x.index]
        return self._record(Step("softmax", (x,), data.shape[1:]), data)

    def _record(self, step: Step, data: Array) -> Handle:
        self.steps.append(step)
        self._data.append(data)
        return self.last

    def _weights(self, shape: tuple[int, ...]) -> Array:
        # The sum of four uniform integers: bell-shaped, within int8, and no floating point.
        return self._rng.integers(-31, 32, (4, *shape)).sum(axis=0).astype("int8")

    def _requantization(self, acc: Array, relu: bool) -> tuple[Array, int, tuple[int, int]]:
        """Bias, shift and clip that suit these accumulators (channels on axis 1)."""
        channels = acc.swapaxes(0, 1).reshape(acc.shape[1], -1)
        mean = channels.sum(axis=1) // channels.shape[1]
        spread = channels - mean[:, None]
        deviation = [math.isqrt(int(square)) for square in (spread**2).sum(axis=1)]
        deviation = [value // math.isqrt(channels.shape[1]) for value in deviation]
        # After a ReLU, between 40 % and 77 % of a channel's values stay positive.
        offset = self._rng.integers(-64, 193, len(mean)) * np.array(deviation) // 256
        bias = offset - mean
        shift = _shift(channels + bias[:, None], relu)
        if shift:
            bias = bias + (1 << (shift - 1))
        return bias.astype("int32"), shift, (0, 127) if relu else (-128, 127)


def _shift(values: Array, relu: bool) -> int:
    """The smallest shift after which all but a few outliers lie within int8."""
    magnitude = np.sort(values.reshape(-1) if relu else np.abs(values).reshape(-1))
    peak = int(magnitude[-1 - magnitude.size // _OUTLIERS])
    return max(peak.bit_length() - 7, 0)
