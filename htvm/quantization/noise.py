"""The error model: how much noise a choice of steps puts on the network's outputs.

Every rounding and clipping is taken as independent noise.  Its power at the outputs is its
variance times a *gain*, the squared gradient averaged over positions, which follows from the
weights and from how often each rectifier is open.  Three sources of noise exist: rounding an
activation (step**2 / 12), rounding a weight (the variance of what it multiplies / 12, in units of
``step_out * 2**-m``), and clipping what the step cannot hold, measured on calibration values.
Units: squared steps of the source's outputs.
"""

from __future__ import annotations

import numpy as np

from htvm.quantization.calibrate import Statistics
from htvm.quantization.graph import LINEAR, PASSING, Array, Net, Operator
from htvm.quantization.ties import AddChoice, anchors

__all__ = ["WEIGHT_LIMIT", "NoiseModel"]

WEIGHT_LIMIT = 127.5
"""Magnitude up to which a weight rounds into int8."""

_FEEDBACK = 0.3  # share of the weights' rounding noise that error feedback leaves
_RARE = 1e-3  # weight of an extreme value beside the mean of the ordinary ones
_ALIGNED = 0.5  # what is left of the rounding of an average on the source's own grid, of 1 + 1


class NoiseModel:
    """The noise of a network as a function of its steps.

    Args:
        net: the source.
        statistics: of the source on the calibration inputs.
    """

    def __init__(self, net: Net, statistics: Statistics) -> None:
        self.net = net
        self.statistics = statistics
        self.magnitude: dict[str, Array] = {}
        for op in net.operators:
            if op.kind in LINEAR:
                scale = op.factors()[0][:, None, None]
                weight = op.weights().reshape(*op.weights().shape[:2], -1)
                self.magnitude[op.name] = np.abs(weight * scale)
        self.gain = self._gains()

    def _gains(self) -> dict[str, Array]:
        """Per tensor ``[C]``: output noise power per unit of variance at every position."""
        net = self.net
        gain = {name: np.zeros(net.channels(name)) for name in net.tensors}
        for name in anchors(net):
            gain[name] += 1.0
        for op in reversed(net.operators):
            if op.kind not in ("softmax", "kept"):
                self._pass_back(op, gain)
        positions = {name: int(np.prod(net.shape(name)[:-1])) for name in net.tensors}
        return {name: values * positions[name] for name, values in gain.items()}

    def _pass_back(self, op: Operator, gain: dict[str, Array]) -> None:
        through = gain[op.name] * self.statistics.active[op.name]
        area = op.stride[0] * op.stride[1]
        source = op.inputs[0]
        if op.kind in LINEAR:
            squares = np.square(self.magnitude[op.name]).sum(axis=-1)
            back = through * squares[:, 0] if op.kind == "depthwise" else through @ squares
            gain[source] += back / area
        elif op.kind == "add":
            for operand, factor in zip(op.inputs, op.factors(), strict=True):
                gain[operand] += through * factor**2
        elif op.kind == "average_pool":
            gain[source] += through / (op.pool[0] * op.pool[1] * area)
        elif op.kind == "convert":
            gain[source] += through * op.factors()[0] ** 2
        elif op.kind == "gather":
            self._gather_back(op, through, gain)
        elif op.kind == "max_pool":
            gain[source] += through / area
        elif op.kind == "reshape":
            folded = through.reshape(-1, len(gain[source])) if self._folds(op) else None
            gain[source] += through.mean() if folded is None else folded.mean(axis=0)
        else:
            gain[source] += through

    def _gather_back(self, op: Operator, through: Array, gain: dict[str, Array]) -> None:
        """Each element of an input counts as often as it is taken."""
        assert op.index is not None
        channels, start = np.arange(op.index.size) % op.shape[-1], 0
        for name in op.inputs:
            size, own = int(np.prod(self.net.shape(name))), self.net.channels(name)
            taken = (op.index >= start) & (op.index < start + size)
            back = np.zeros(own)
            np.add.at(back, (op.index[taken] - start) % own, through[channels[taken]])
            gain[name] += back * own / size
            start += size

    def _folds(self, op: Operator) -> bool:
        return not self.net.channel_first and op.shape[-1] % self.net.channels(op.inputs[0]) == 0

    # -------------------------------------------------------------------- activations

    def rounding(self, name: str, step: Array, choice: AddChoice | None, input_shift: int) -> Array:
        """Variance of rounding to steps ``[C, G]`` of a tensor, in squared steps of the source.

        The source rounds as well.  Usually that is noise of its own, the same whatever we do; but
        an average varies so little between source and result that on the same grid both round
        alike, and on different grids the source's rounding adds to ours.
        """
        op = self.net.producer(name)
        given = op is None or op.kind == "kept"
        shift = input_shift if given else choice.shift if choice is not None else None
        if shift is not None:
            return np.asarray(step**2 * (1 - 4.0**-shift) / 12)
        assert op is not None
        if op.kind == "average_pool":
            return np.where(step == 1.0, _ALIGNED, 1.0 + step**2) / 12
        return np.zeros(step.shape) if op.kind in PASSING else np.asarray(step**2 / 12)

    def clipping(self, name: str, step: Array, low: int, high: int) -> Array:
        """Mean squared error of holding a tensor's values in ``low..high`` steps.

        Args:
            name: of the tensor.
            step: ``[C, G]``, candidates.
            low, high: inclusive bounds, relative to the zero point.
        """
        op = self.net.producer(name)
        zero = self.net.zero_point(name)
        least, most = (-128, 127) if op is None else op.clip
        values, rare = self.statistics.before_clip[name], self.statistics.extremes[name]
        wanted, rare_wanted = (np.clip(v, least - zero, most - zero) for v in (values, rare))
        result = np.empty(step.shape)
        for index in range(step.shape[1]):
            scale = step[:, index].astype(np.float32)
            error = np.square(wanted - np.clip(values, low * scale, high * scale)).mean(axis=0)
            outside = rare_wanted - np.clip(rare, low * scale, high * scale)
            result[:, index] = error + _RARE * np.square(outside).sum(axis=0)
        return result

    def activation_noise(self, name: str, rounding: Array, clipping: Array) -> Array:
        """Noise at the outputs per channel, ``[C, G]``, of rounding and clipping a tensor."""
        active = self.statistics.active[name][:, None]
        return np.asarray(self.gain[name][:, None] * (active * rounding + clipping))

    # -------------------------------------------------------------------- weights

    def largest_weight(self, op: Operator, step_in: Array, step_out: Array) -> float:
        """Largest weight in steps of 2**-m, for m = 0."""
        peak = self.magnitude[op.name].max(axis=2)
        ratio = peak[:, 0] * step_in if op.kind == "depthwise" else (peak * step_in).max(axis=1)
        return float((ratio / step_out).max())

    def row_noise(self, op: Operator, shift: float, step_in: Array, step_out: Array) -> Array:
        """Noise ``[K, G]`` of the weights of each output channel.

        Args:
            op: a linear operator.
            shift: its m.
            step_in: ``[C]``.
            step_out: ``[K, G]``, candidates.
        """
        variance = self.statistics.variance[op.inputs[0]] / step_in**2
        peak, taps = self.magnitude[op.name].max(axis=2), self.magnitude[op.name].shape[2]
        if op.kind == "depthwise":
            excess = _excess((peak[:, 0] * step_in)[:, None] * 2.0**shift / step_out)
            noise = variance[:, None] * (_FEEDBACK * taps / 12 + excess)
        else:
            scaled = peak * step_in * 2.0**shift
            excess = np.stack([_excess(scaled / s[:, None]) @ variance for s in step_out.T], axis=1)
            noise = _FEEDBACK * taps * variance.sum() / 12 + excess
        return np.asarray(self._at_output(op)[:, None] * 4.0**-shift * step_out**2 * noise)

    def column_noise(self, op: Operator, shift: float, step_in: Array, step_out: Array) -> Array:
        """Noise ``[C, G]`` of the weights of each input channel.

        Args:
            op: a linear operator.
            shift: its m.
            step_in: ``[C, G]``, candidates.
            step_out: ``[K]``.
        """
        weight = self._at_output(op) * 4.0**-shift * step_out**2
        peak, taps = self.magnitude[op.name].max(axis=2), self.magnitude[op.name].shape[2]
        variance = self.statistics.variance[op.inputs[0]][:, None] / step_in**2
        if op.kind == "depthwise":
            excess = _excess((peak[:, 0] / step_out)[:, None] * 2.0**shift * step_in)
            return np.asarray(weight[:, None] * variance * (_FEEDBACK * taps / 12 + excess))
        scaled = peak / step_out[:, None] * 2.0**shift
        excess = np.stack([weight @ _excess(scaled * s) for s in step_in.T], axis=1)
        return np.asarray(variance * (weight.sum() * _FEEDBACK * taps / 12 + excess))

    def _at_output(self, op: Operator) -> Array:
        return np.asarray(self.gain[op.name] * self.statistics.active[op.name])


def _excess(weight: Array) -> Array:
    """Squared error of a weight beyond int8, raised: such an error is the same everywhere."""
    return np.asarray(4.0 * np.square(np.maximum(weight - WEIGHT_LIMIT, 0.0)))
