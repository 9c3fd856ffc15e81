"""The error model: the noise on the network's outputs for a choice of steps.

Every rounding and clipping is modelled as independent noise.  Its power at the outputs is its
variance times a *gain*, the squared gradient averaged over positions, which follows from the
weights and from how often each rectifier is open.  There are three sources of noise: rounding an
activation (step**2 / 12), rounding a weight (the variance of its operand / 12, in units of
``step_out * 2**-m``), and clipping values that the step cannot represent, measured on calibration
values. Units: squared steps of the source's outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.add_choices import AddChoice
from htvm.quantization.annotated import Annotated
from htvm.quantization.calibrate import Statistics
from htvm.quantization.effects import pass_back, rounding
from htvm.quantization.kinds import is_end, is_kept
from htvm.quantization.products import (
    magnitude,
    over_inputs,
    over_outputs,
    per_input,
    weighted,
)
from patterns.reading.node import Node

WEIGHT_LIMIT = 127.5
"""Magnitude up to which a weight rounds to int8."""

_FEEDBACK = 0.3  # share of the weights' rounding noise that remains after error feedback
_TOGETHER = 1 << 14  # weights times candidates that are considered at a time, in the cache
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
        weights = {node.name: magnitude(weighted(node)) for node in net.products}
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
                    gain[source] += part
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
        wanted, rare_wanted = (np.clip(v, least - zero, most - zero) for v in (values, rare))
        # The result has the bounds of activations, but not those of the source's saturation.
        node = self.net.producer(name)
        floor, ceiling = (-np.inf, np.inf) if node is None else self.net.activation(node)
        result = np.empty(step.shape)
        for index in range(step.shape[1]):
            scale = step[:, index].astype(np.float32)
            bounds = np.maximum(low * scale, floor), np.minimum(high * scale, ceiling)
            error = np.square(wanted - np.clip(values, *bounds)).mean(axis=0)
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
