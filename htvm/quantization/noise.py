"""The error model: the noise on the network's outputs for a choice of steps.

Every rounding and clipping is modelled as independent noise.  Its power at the outputs is its
variance times a *gain*, the squared gradient averaged over positions, which follows from the
weights and from how often each rectifier is open.  There are three sources of noise: rounding an
activation (step**2 / 12), rounding a weight (the variance of its operand / 12, in units of
``step_out * 2**-m``), and clipping values that the step cannot represent, measured on calibration
values. Units: squared steps of the source's outputs.

The statistics are those of the source on calibration inputs.  Without data, inputs are drawn from
three kinds of noise in the input's own quantization: uniform integers (hard contrast), rounded
normals around the zero point, and smooth waves (which excite features that white noise averages
away).  None of them is the data that the network was made for; the file's own ranges stay the outer
bound of everything that is derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated, is_end, is_kept
from htvm.quantization.effects import (
    before_clip,
    over_inputs,
    over_outputs,
    pass_back,
    per_input,
    rounding,
    weight_magnitudes,
    weighted,
)
from htvm.quantization.forward import forward
from htvm.quantization.islands import Island
from htvm.quantization.ties import AddChoice
from patterns.reading.node import Node

_BUDGET = 400_000_000  # multiply-accumulates spent on one forward pass of all samples
_ROWS = 1024  # positions kept per tensor for the clipping error
_REACH = 4.0  # standard deviations: one value in 16,000 of a normal distribution lies beyond


def sample_count(net: Annotated) -> int:
    """How many inputs to draw for calibration to take seconds: 24 to 512, a multiple of 3."""
    macs = sum(weighted(node).macs for node in net.products)
    macs += sum(node.op.macs for node in net.nodes if isinstance(node.op, Island))
    return int(np.clip(_BUDGET // max(macs, 1), 24, 512)) // 3 * 3


def noise_inputs(net: Annotated, count: int, seed: int) -> dict[str, Array]:
    """Return ``count`` int8 inputs, a third of each kind of noise; equal on every run."""
    rng = np.random.default_rng(seed)
    samples: dict[str, list[Array]] = {name: [] for name in net.inputs}
    for index in range(count):
        for name, shape in net.inputs.items():
            zero = net.zeros[name]
            if index % 3 == 0:
                x = rng.integers(-128, 128, shape).astype(np.float64)
            elif index % 3 == 1:
                x = rng.normal(zero, 32.0, shape)
            else:
                x = _waves(shape, rng)
            samples[name].append(np.clip(np.rint(x), -128, 127).astype(np.int8))
    return {name: np.stack(values) for name, values in samples.items()}


def _waves(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return a sum of six plane waves of random direction, wavelength, phase and strength."""
    axes = [np.linspace(0.0, 1.0, size) for size in shape[:-1] or shape]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    total = np.zeros(shape)
    for _ in range(6):
        direction = rng.normal(0.0, 2.0, grid.shape[-1])
        wave = np.sin(2 * np.pi * (grid @ direction + rng.uniform()))
        total += wave[..., None] * rng.normal(size=shape[-1]) if len(shape) > 1 else wave
    return np.asarray(total * rng.uniform(15.0, 50.0) + rng.uniform(-90.0, 90.0))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the source on the calibration inputs.  Units: steps of the source.

    Attributes:
        tensors: name -> int8 array of every tensor.
        variance: name -> ``[C]``, variance of the values relative to the zero point.
        active: name -> ``[C]``, share of the positions that are positive before a rectifier.
        before_clip: name -> ``[S, C]``, values before the source clips them, relative to its zero
            point, at some random positions.
        extremes: name -> ``[4, C]``, likewise the smallest and the largest value seen, and bounds
            that a normal distribution with the same mean and variance hardly ever exceeds.
    """

    tensors: Mapping[str, Array]
    variance: Mapping[str, Array]
    active: Mapping[str, Array]
    before_clip: Mapping[str, Array]
    extremes: Mapping[str, Array]


def observe(net: Annotated, inputs: Mapping[str, Array], seed: int) -> Statistics:
    """Run the source and collect its statistics."""
    tensors = forward(net, inputs)
    rng = np.random.default_rng(seed)
    variance, active, before, extremes = {}, {}, {}, {}
    for name, values in tensors.items():
        real = values.reshape(-1, values.shape[-1]).astype(np.float32) - net.zeros[name]
        # The bias can correct the mean; a small part of it remains.
        variance[name] = real.var(axis=0) + 0.05 * np.square(real).mean(axis=0)
        rectified = net.rectified(name)
        active[name] = (real > 0).mean(axis=0) if rectified else np.ones(real.shape[-1])
        exact = _before_clip(net, name, tensors)
        rows = exact if len(exact) <= _ROWS else exact[rng.permutation(len(exact))[:_ROWS]]
        before[name] = rows.astype(np.float32)
        mean, reach = exact.mean(axis=0), _REACH * exact.std(axis=0)
        ends = np.stack([exact.min(axis=0), exact.max(axis=0), mean - reach, mean + reach])
        node = net.producer(name)
        if node is None or node.scaled is None:
            ends = np.clip(ends, -128 - net.zeros[name], 127 - net.zeros[name])
        extremes[name] = ends.astype(np.float32)
    return Statistics(tensors, variance, active, before, extremes)


def _before_clip(net: Annotated, name: str, tensors: Mapping[str, Array]) -> Array:
    node = net.producer(name)
    if node is None:
        values = tensors[name].astype(np.float64) - net.zeros[name]
    else:
        values = before_clip(net, node, tensors)
    return np.asarray(values.reshape(-1, values.shape[-1]))


WEIGHT_LIMIT = 127.5
"""Magnitude up to which a weight rounds to int8."""

_FEEDBACK = 0.3  # share of the weights' rounding noise that remains after error feedback
_TOGETHER = 1 << 14  # weights times candidates that are considered at a time, in the cache
_LARGEST_GAIN = 1e100  # hundreds of layers that amplify have more than a double can hold
_RARE = 1e-3  # weight of an extreme value relative to the mean of the ordinary ones


class NoiseModel:
    """The noise of a network as a function of its steps.

    Args:
        net: the source.
        statistics: statistics of the source on the calibration inputs.
    """

    def __init__(self, net: Annotated, statistics: Statistics) -> None:
        self.net = net
        self.statistics = statistics
        weights = {node.name: weight_magnitudes(weighted(node)) for node in net.products}
        self._taps = {name: values.shape[2] for name, values in weights.items()}
        self._peak = {name: values.max(axis=2) for name, values in weights.items()}
        self.gain = self._gains()

    def _gains(self) -> dict[str, Array]:
        """Return per tensor ``[C]``: output noise power per unit of variance at every position."""
        net = self.net
        gain = {name: np.zeros(net.channels(name)) for name in net.tensors}
        for name in net.anchors:
            gain[name] += 1.0
        for node in reversed(net.nodes):
            if not is_end(node) and not is_kept(node):
                through = gain[node.name] * self.statistics.active[node.name]
                back = pass_back(net, node, through)
                for source, part in zip(node.inputs, back, strict=True):
                    gain[source] = np.minimum(gain[source] + part, _LARGEST_GAIN)
        positions = {name: int(np.prod(net.shape(name)[:-1])) for name in net.tensors}
        return {name: values * positions[name] for name, values in gain.items()}

    # -------------------------------------------------------------------- activations

    def rounding(self, name: str, step: Array, choice: AddChoice | None, input_shift: int) -> Array:
        """Return the variance of rounding to steps ``[C, G]`` of a tensor, in squared source steps.

        The source rounds as well; usually that is independent noise, the same for all choices.
        """
        node = self.net.producer(name)
        if choice is not None or node is None or is_kept(node):
            shift = input_shift if choice is None else choice.shift
            return np.asarray(step**2 * (1 - 4.0**-shift) / 12)
        return rounding(node, step)

    def clipping(self, name: str, step: Array, low: int, high: int) -> Array:
        """Return the mean squared error of clipping a tensor's values to ``low..high`` steps.

        Args:
            name: name of the tensor.
            step: ``[C, G]``, candidates.
            low, high: inclusive bounds, relative to the zero point.
        """
        zero, (least, most) = self.net.zeros[name], self.net.clip(name)
        values, rare = self.statistics.before_clip[name], self.statistics.extremes[name]
        unclipped, rare_wanted = (np.clip(v, least - zero, most - zero) for v in (values, rare))
        # The result has the bounds of activations, but not those of the source's saturation.
        node = self.net.producer(name)
        floor, ceiling = (-np.inf, np.inf) if node is None else self.net.activation(node)
        result = np.empty(step.shape)
        for index in range(step.shape[1]):
            scale = step[:, index].astype(np.float32)
            bounds = np.maximum(low * scale, floor), np.minimum(high * scale, ceiling)
            error = np.square(unclipped - np.clip(values, *bounds)).mean(axis=0)
            outside = rare_wanted - np.clip(rare, *bounds)
            result[:, index] = error + _RARE * np.square(outside).sum(axis=0)
        return result

    def activation_noise(self, name: str, rounding: Array, clipping: Array) -> Array:
        """Return the output noise per channel, ``[C, G]``, of rounding and clipping a tensor."""
        active = self.statistics.active[name][:, None]
        return np.asarray(self.gain[name][:, None] * (active * rounding + clipping))

    # -------------------------------------------------------------------- weights

    def largest_weight(self, node: Node, step_in: Array, step_out: Array) -> float:
        """Return the largest weight in steps of 2**-m, for m = 0."""
        peak = self._peak[node.name]
        return float(((peak * per_input(weighted(node), step_in)).max(axis=1) / step_out).max())

    def row_noise(self, node: Node, shift: float, step_in: Array, step_out: Array) -> Array:
        """Return the noise ``[K, G]`` of the weights of each output channel.

        Args:
            node: the layer.
            shift: its shift m.
            step_in: ``[C]``.
            step_out: ``[K, G]``, candidates.
        """
        variance = self.statistics.variance[node.inputs[0]] / step_in**2
        peak, taps = self._peak[node.name], self._taps[node.name]
        scaled = peak * per_input(weighted(node), step_in) * 2.0**shift
        excess = _by_candidate(
            scaled,
            step_out,
            lambda steps: over_inputs(weighted(node), _excess(scaled / steps[..., None]), variance),
        )
        ordinary = _FEEDBACK * taps * over_inputs(weighted(node), np.ones_like(peak), variance) / 12
        noise = ordinary[:, None] + excess
        return np.asarray(self._at_output(node)[:, None] * 4.0**-shift * step_out**2 * noise)

    def column_noise(self, node: Node, shift: float, step_in: Array, step_out: Array) -> Array:
        """Return the noise ``[C, G]`` of the weights of each input channel.

        Args:
            node: the layer.
            shift: its shift m.
            step_in: ``[C, G]``, candidates.
            step_out: ``[K]``.
        """
        layer, weight = weighted(node), self._at_output(node) * 4.0**-shift * step_out**2
        peak, taps = self._peak[node.name], self._taps[node.name]
        variance = self.statistics.variance[node.inputs[0]][:, None] / step_in**2
        scaled = peak / step_out[:, None] * 2.0**shift
        excess = _by_candidate(
            scaled,
            step_in,
            lambda steps: over_outputs(layer, weight, _excess(scaled * per_input(layer, steps))),
        )
        ordinary = _FEEDBACK * taps * over_outputs(layer, weight, np.ones_like(peak)) / 12
        return np.asarray(variance * (ordinary[:, None] + excess))

    def _at_output(self, node: Node) -> Array:
        return np.asarray(self.gain[node.name] * self.statistics.active[node.name])


def _by_candidate(weights: Array, steps: Array, excess: Callable[[Array], Array]) -> Array:
    """Return ``excess`` of the candidates ``steps [C, G]``, ``[.., G]``.

    It is given some at a time, ``[g, C]``, of which it returns ``[g, ..]``: a call for each would
    take most of the time with few weights, and one for all exceed the cache with many.
    """
    count = max(1, _TOGETHER // weights.size)
    each = steps.T
    parts = [excess(each[start : start + count]) for start in range(0, len(each), count)]
    return np.concatenate(parts).T


def _excess(weight: Array) -> Array:
    """The squared error of weights beyond int8, with a penalty, as such errors are systematic."""
    return np.asarray(4.0 * np.square(np.maximum(weight - WEIGHT_LIMIT, 0.0)))
