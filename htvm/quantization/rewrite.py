"""Writing the network in its new scheme, operator by operator, using the calibration inputs.

Each layer is rounded given the actual results of its predecessors, which are already rounded, so
that its bias corrects the mean error of everything before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add as AddLayer
from byoc_dory.layers import Array, MulShift, Shift, Weighted
from byoc_dory.soc.schemes import MulShiftScheme
from htvm.quantization.annotated import Annotated, is_end, is_kept, range_of, within
from htvm.quantization.effects import (
    bias_of,
    channel_factors,
    per_input,
    product_of,
    real_output,
    weighted,
)
from htvm.quantization.forward import run
from htvm.quantization.rounding import (
    for_own_integers,
    multiplier_and_shift,
    round_nearest,
    round_with_feedback,
    row_units,
)
from htvm.quantization.search import Scales
from htvm.quantization.ternary import ternary_layer
from htvm.quantization.units import fold_tables
from patterns.op import INT8, Op, Range
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.moves.base import Filling
from patterns.ops.scaling import factors_of
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.building import GraphBuilder
from patterns.reading.node import Node

_INT32_MAX = 2**31 - 1
_CONVERT_BITS = 16  # precision of a conversion's factor that is not a power of two
_CONVERT_SHIFT = 22  # and its largest shift: a zero point shifted by it still fits int32
_FEW = 10  # number of positions below which a mean error is not trusted


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A network in the shift scheme, or a multiply-shift scheme.

    Attributes:
        net: the result; operators keep their names, conversions are named ``convert_<n>``, and the
            clips of layers whose core cannot clip to their bounds ``clip_<n>``.
        tensors: source's tensor -> the result's tensor that has its new scale.
        exported: tensor that must be in the source's quantization -> the result's tensor that has
            it.
        clips: what each ``clip_<n>`` does, and why, as sentences.
    """

    net: Annotated
    tensors: Mapping[str, str]
    exported: Mapping[str, str]
    clips: tuple[str, ...] = ()


def rewrite(
    net: Annotated,
    scales: Scales,
    tensors: Mapping[str, Array],
    *,
    feedback: bool = True,
    correct: bool = True,
    scheme: MulShiftScheme | None = None,
) -> Rewritten:
    """Write ``net`` with the given scales.

    Args:
        net: the source.
        scales: for all its tensors.
        tensors: the source's tensors for the calibration inputs, including the inputs.
        feedback: whether to round weights with error feedback instead of to the nearest.
        correct: whether to correct biases by the mean error on the calibration inputs.
        scheme: scheme for the layers; ``None``: the shift scheme, or the ternary one on a ternary
            core.
    """
    writer = _Writer(net, scales, tensors, feedback, correct, scheme)
    for name in net.inputs:
        writer.bring_in(name, tensors[name])
    for node in net.nodes:
        writer.write(node)
    return writer.finish()


def scaled_parameters(net: Annotated, node: Node, scales: Scales) -> tuple[Array, Array, float]:
    """Return a layer's real weights and biases in steps of 2**-m, and m, not yet rounded.

    The bias includes the new zero point and half a step, so that flooring rounds, but not yet the
    zero point of the input.  The shift m is lowered until int32 holds every sum.

    Raises:
        UnsupportedError: no m is small enough.
    """
    layer, read = weighted(node), node.inputs[0]
    step_in, step_out = scales.step[read], scales.step[node.name]
    weight = layer.weight * (channel_factors(layer) / step_out)[:, None, None, None]
    weight = weight * per_input(layer, step_in)[..., None, None]
    bias = bias_of(layer, net.zeros[read]) / step_out + scales.zero_point[node.name] + 0.5
    shift = scales.shift[node.name]
    while shift > 0 and _reach(weight, bias, shift) > _INT32_MAX:
        shift = max(shift - 1, 0)
    if _reach(weight, bias, shift) > _INT32_MAX:
        raise UnsupportedError(
            "a bias so large that no right shift keeps the sums within int32",
            where=f"operator '{node.name}'",
        )
    return weight * 2.0**shift, bias * 2.0**shift, shift


def _reach(weight: Array, bias: Array, shift: float) -> float:
    """Return a bound of every sum of rounded weights and corrected bias."""
    rows = np.minimum(np.abs(weight) * 2.0**shift + 1, 128).reshape(len(weight), -1).sum(axis=1)
    # Twice the inputs: once in the sum, once for a zero point folded into the bias.
    return float((2 * 128 * rows + np.abs(bias) * 2.0**shift).max() * 1.01)


class _Writer:
    def __init__(
        self,
        net: Annotated,
        scales: Scales,
        tensors: Mapping[str, Array],
        feedback: bool,
        correct: bool,
        scheme: MulShiftScheme | None,
    ) -> None:
        self.net = net
        self.scales = scales
        self.source_tensors = tensors
        self.feedback = feedback
        self.correct = correct
        self.scheme = scheme
        self.builder = GraphBuilder(net.graph.inputs)
        self.values: dict[str, Array] = {}  # of the new network, by the source's tensor
        self.new_names: dict[str, str] = {}  # source's tensor -> new tensor
        self.source_values: dict[str, Array] = {}  # of tensors in the source's own quantization
        self.used_names = {*net.inputs, *net.graph.nodes}
        self.clips: list[str] = []
        self.counts: dict[str, int] = {}  # of names of operators that are not in the source
        self.zeros = {name: net.zeros[name] for name in net.inputs}  # by new tensor
        self.ranges: dict[str, Range] = dict.fromkeys(net.inputs, INT8)  # likewise
        self.exported: dict[str, str] = {}  # anchor -> tensor in the source's quantization

    # -------------------------------------------------------------------- borders

    def bring_in(self, name: str, values: Array) -> None:
        """Convert a tensor from the source's own quantization to its new scale."""
        self.source_values[name] = self.values[name] = values
        step, zero = float(self.scales.step[name][0]), self.scales.zero_point[name]
        source, limits = self.net.zeros[name], self.net.limits(name)
        self.new_names[name] = self.exported[name] = name
        if step == 1.0 and zero == source and limits == INT8:
            return
        self.new_names[name] = self._convert(name, 1.0 / step, source, zero, limits)
        self.values[name] = self._run_last([self.source_values[name]])

    def _export(self, name: str) -> str:
        """Return the tensor that holds an anchor in the source's own quantization."""
        if name not in self.exported:
            step, zero = self.scales.step[name], self.scales.zero_point[name]
            target, allowed = self.net.zeros[name], self.net.ranges[name]
            self.exported[name] = self.new_names[name]
            self.source_values[name] = self.values[name]
            if not (step == 1.0).all() or zero != target:
                assert (step == step[0]).all(), name
                self.exported[name] = self._convert(
                    self.new_names[name], float(step[0]), zero, target, allowed
                )
                self.source_values[name] = self._run_last([self.values[name]])
            elif not within(self.ranges[self.new_names[name]], allowed):
                self._clip_behind(name, allowed)
                self.exported[name] = self.new_names[name]
                self.source_values[name] = self.values[name]
        return self.exported[name]

    def _convert(
        self, source: str, factor: float, old_zero: int, new_zero: int, clip: Range
    ) -> str:
        """Append ``round((x - old) * factor) + new``: one shift if the factor is a power of two."""
        shift = -int(np.floor(np.log2(factor)))
        mul = 1
        if factor != 2.0**-shift or shift < 0:
            shift = min(shift + _CONVERT_BITS - 1, _CONVERT_SHIFT)
            mul = round(factor * 2**shift)
        half = (1 << shift) >> 1
        requant: Shift | MulShift = Shift(shift)
        offset = (new_zero << shift) - old_zero + half
        if mul != 1:
            requant = MulShift((mul,), (shift,), ((new_zero << shift) + half,))
            offset = -old_zero
        return self._append(
            Convert(requant, clip, offset), (source,), self._new_name("convert"), new_zero
        )

    def _new_name(self, kind: str) -> str:
        """Return the first name ``<kind>_<n>`` that is free."""
        count = self.counts.get(kind, 0)
        while f"{kind}_{count}" in self.used_names:
            count += 1
        self.counts[kind] = count + 1
        return f"{kind}_{count}"

    def _append(self, op: Op, inputs: tuple[str, ...], name: str, zero_point: int) -> str:
        """Append an operator; return its name."""
        self.builder.apply(op, inputs, name)
        ranges = [self.ranges[each] for each in inputs]
        self.ranges[name] = range_of(self.builder.last, ranges)
        self.zeros[name] = zero_point
        return name

    def _run_last(self, parts: list[Array]) -> Array:
        """Return the results of the operator appended last."""
        node = self.builder.last
        return run(node, parts, self.net.channel_first, self.zeros[node.inputs[0]])

    # -------------------------------------------------------------------- operators

    def write(self, node: Node) -> None:
        """Write one operator of the source."""
        name, source = node.name, self.net.zeros[node.name]
        if is_end(node):
            self._append(node.op, (self._export(node.inputs[0]),), name, source)
            self.new_names[name] = self.exported[name] = name
            return
        if is_kept(node):
            inputs = tuple(self._export(each) for each in node.inputs)
            self._append(node.op, inputs, name, source)
            self.bring_in(name, self._run_last([self.source_values[each] for each in node.inputs]))
            return
        bounds = self._activation(node)
        if isinstance(node.op, Convert) and bounds == INT8:
            # Only the scale differs, which needs no operator if scales are free.
            self.new_names[name] = self.new_names[node.inputs[0]]
            self.values[name] = self.values[node.inputs[0]]
            return
        inputs = tuple(self.new_names[each] for each in node.inputs)
        zero, clip = self.scales.zero_point[name], self._clip_bounds(node, bounds)
        self.new_names[name] = self._append(
            self._new_operator(node, zero, clip), inputs, name, zero
        )
        self.values[name] = self._run_last([self.values[each] for each in node.inputs])
        # A conversion to the source's quantization, which others read, clips by itself.
        readers = self.net.graph.read_by(name)
        inside = any(not (is_kept(user) or is_end(user)) for user in readers)
        if inside and not within(self.ranges[name], bounds):
            self._clip_behind(name, bounds)

    def _new_operator(self, node: Node, zero_point: int, clip: Range) -> Op:
        """Return an operator in its new numbers."""
        match node.scaled or node.op:
            case Weighted():
                return self._linear_operator(node, clip)
            case AddLayer():
                shift = self.scales.adds[node.name].shift
                # An exact factor of two loses less than a rounded multiplier would.
                return Add(Shift(shift) if self.scheme is None else MulShift((1,), (shift,)), clip)
            case Filling() as op:
                return replace(op, value=zero_point)
            case Convert():
                return Convert(Shift(0), clip)
            case AveragePool() as op:
                return replace(op, clip=clip)
        return node.op

    def _activation(self, node: Node) -> Range:
        """Return the bounds that an operator's activation sets in its new quantization."""
        zero, step = self.scales.zero_point[node.name], float(self.scales.step[node.name][0])
        low, high = np.clip(np.rint(zero + np.array(self.net.activation(node)) / step), *INT8)
        return int(low), int(high)

    def _clip_bounds(self, node: Node, bounds: Range) -> Range:
        """Return what an operator clips to: its activation's bounds if its accelerator can."""
        limits = self.net.limits(node.name) if self.net.clips_freely(node) else INT8
        clip = max(limits[0], bounds[0]), min(limits[1], bounds[1])
        home = self.net.homes.get(node.name)
        return clip if home is None or home.can_clip_to(clip) else limits

    def _clip_behind(self, name: str, bounds: Range) -> None:
        """Clip a tensor on the CPU, because the core that computes it cannot."""
        convert, zero = Convert(Shift(0), bounds), self.scales.zero_point[name]
        clip = self._append(convert, (self.new_names[name],), self._new_name("clip"), zero)
        self.values[name] = self._run_last([self.values[name]])
        self.new_names[name] = clip
        home = self.net.homes.get(name)
        core = "its core" if home is None else home.name
        self.clips.append(
            f"{clip}: clips {name} to [{bounds[0]}, {bounds[1]}] on the CPU, as {core} cannot"
        )

    def _linear_operator(self, node: Node, clip: Range) -> Op:
        read = node.inputs[0]
        x = self.values[read]
        if self.net.core(node) is not None:
            return ternary_layer(self.net, node, clip, self.scales, self.source_tensors[read], x)
        weight, bias, requant = self._scaled_layer(node)
        zero = self.scales.zero_point[read]
        if self.feedback:
            rounded = round_with_feedback(weight, product_of(node), x, zero)
        else:
            rounded = round_nearest(weight)
        new = replace(product_of(node), weight=rounded)
        folded = zero * rounded.astype(np.int64).reshape(len(rounded), -1).sum(axis=1)
        bias = bias - folded
        if self.correct:
            accumulated = new.accumulate(x, zero).astype(np.float64) + bias
            corrected = bias + self._mean_error(node, accumulated, requant)
            largest = 128 * np.abs(rounded.astype(np.int64)).reshape(len(rounded), -1).sum(axis=1)
            # A correction must not break the bounds that `scaled_parameters` ensured.
            bias = np.where(np.abs(corrected) + largest < _INT32_MAX, corrected, bias)
        return replace(new, bias=np.rint(bias).astype(np.int64), requant=requant, clip=clip)

    def _scaled_layer(self, node: Node) -> tuple[Array, Array, Shift | MulShift]:
        """Return a layer's real weights and biases in the steps of its requantization."""
        weight, bias, shift = scaled_parameters(self.net, node, self.scales)
        if self.scheme is None:
            return weight, bias, Shift(int(shift))
        integers = weighted(node).weight
        step, bits, units, own_requant = 2.0**-shift, self.scheme.multiplier_bits, np.ones(1), None
        if self.scheme.per_channel:
            own_requant = for_own_integers(integers, weight, step, bits)
            units = row_units(weight, bias)
        requant = own_requant or multiplier_and_shift(units * step, bits)
        factors = np.array(requant.mul) * 2.0 ** (shift - requant.shift[0])
        steps = factors.reshape(-1, 1, 1, 1)
        return (
            integers.astype(np.float64) if own_requant else weight / steps,
            bias / factors,
            requant,
        )

    def _mean_error(self, node: Node, accumulated: Array, requant: Shift | MulShift) -> Array:
        """Return the mean of source minus result before the clip, in accumulator steps.

        It is taken over the positions where the rectifier is open in either.

        Args:
            node: the layer in the source.
            accumulated: accumulators of the result.
            requant: requantization of the result.
        """
        read, zero = node.inputs[0], self.scales.zero_point[node.name]
        lift = 1.0 / np.broadcast_to(factors_of(requant), accumulated.shape[-1:])
        expected = real_output(node, self.source_tensors[read], self.net.zeros[read])
        goal = (expected / self.scales.step[node.name] + zero + 0.5) * lift
        axes = tuple(range(accumulated.ndim - 1))
        if not self.net.rectifies(node):
            return np.asarray((goal - accumulated).mean(axis=axes))
        open_ = (expected > 0) | (accumulated > (zero + 0.5) * lift)
        count = open_.sum(axis=axes)
        mean = ((goal - accumulated) * open_).sum(axis=axes) / np.maximum(count, 1)
        return np.where(count >= _FEW, mean, 0.0)

    # -------------------------------------------------------------------- result

    def finish(self) -> Rewritten:
        """Return the whole network."""
        for name in self.net.anchors:
            self._export(name)
        results = [self.exported.get(name, name) for name in self.net.graph.results]
        net = Annotated(self.builder.graph(results), self.zeros, self.net.channel_first)
        return Rewritten(
            fold_tables(net), dict(self.new_names), dict(self.exported), tuple(self.clips)
        )
