"""Writing the network in its new scheme, operator by operator, using the calibration inputs.

Each layer is rounded given the actual results of its predecessors, which are already rounded, so
that its bias corrects the mean error of everything before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array, MulShift, Shift
from byoc_dory.soc.schemes import MulShiftScheme
from htvm.quantization.folding import fold_tables
from htvm.quantization.graph import Net, missing_zero, within
from htvm.quantization.mul_shift import for_own_integers, multiplier_and_shift, row_units
from htvm.quantization.operators import INT8, AddOperator, Operator
from htvm.quantization.passing import ConvertOperator, GatherOperator
from htvm.quantization.products import ConvolutionOperator, ProductOperator
from htvm.quantization.rounding import round_nearest, round_with_feedback
from htvm.quantization.search import Scales
from htvm.quantization.ternary import ternary_layer

__all__ = ["Rewritten", "rewrite", "scaled_parameters"]

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

    net: Net
    tensors: Mapping[str, str]
    exported: Mapping[str, str]
    clips: tuple[str, ...] = ()


def rewrite(
    net: Net,
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
    for op in net.operators:
        writer.write(op)
    return writer.finish()


def scaled_parameters(net: Net, op: ProductOperator, scales: Scales) -> tuple[Array, Array, float]:
    """Return a layer's real weights and biases in steps of 2**-m, and m, not yet rounded.

    The bias includes the new zero point and half a step, so that flooring rounds, but not yet the
    zero point of the input.  The shift m is lowered until int32 holds every sum.

    Raises:
        UnsupportedError: no m is small enough.
    """
    step_in, step_out = scales.step[op.inputs[0]], scales.step[op.name]
    weight = op.weight * (op.factor() / step_out)[:, None, None, None]
    weight = weight * op.per_input(step_in)[..., None, None]
    bias = net.real_bias(op) / step_out + scales.zero_point[op.name] + 0.5
    shift = scales.shift[op.name]
    while shift > 0 and _reach(weight, bias, shift) > _INT32_MAX:
        shift = max(shift - 1, 0)
    if _reach(weight, bias, shift) > _INT32_MAX:
        raise UnsupportedError(
            "a bias so large that no right shift keeps the sums within int32",
            where=f"operator '{op.name}'",
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
        net: Net,
        scales: Scales,
        tensors: Mapping[str, Array],
        feedback: bool,
        correct: bool,
        scheme: MulShiftScheme | None,
    ) -> None:
        self.net = net
        self.scales = scales
        self.source = tensors
        self.feedback = feedback
        self.correct = correct
        self.scheme = scheme
        self.operators: list[Operator] = []
        self.values: dict[str, Array] = {}  # of the new network, by the source's tensor
        self.name: dict[str, str] = {}  # source's tensor -> new tensor
        self.given: dict[str, Array] = {}  # of tensors in the source's own quantization
        self.taken = {*net.inputs, *(op.name for op in net.operators)}
        self.clips: list[str] = []
        self.counts: dict[str, int] = {}  # of names of operators that the source has not
        self.ranges: dict[str, tuple[int, int]] = dict.fromkeys(net.inputs, INT8)  # by new tensor
        self.exported: dict[str, str] = {}  # anchor -> tensor in the source's quantization

    # -------------------------------------------------------------------- borders

    def bring_in(self, name: str, values: Array) -> None:
        """Convert a tensor from the source's own quantization to its new scale."""
        self.given[name] = self.values[name] = values
        step, zero = float(self.scales.step[name][0]), self.scales.zero_point[name]
        source = self.net.zero_point(name)
        limits = self.net.limits(name)
        self.name[name] = self.exported[name] = name
        if step == 1.0 and zero == source and limits == INT8:
            return
        convert = replace(self._convert(name, name, 1.0 / step, source, zero), clip=limits)
        self.values[name] = convert.run([self.given[name]])
        self._append(convert)
        self.name[name] = convert.name

    def _export(self, name: str) -> str:
        """Return the tensor that holds an anchor in the source's own quantization."""
        if name not in self.exported:
            step, zero = self.scales.step[name], self.scales.zero_point[name]
            self.exported[name] = self.name[name]
            self.given[name] = self.values[name]
            if not (step == 1.0).all() or zero != self.net.zero_point(name):
                assert (step == step[0]).all(), name
                target = self.net.zero_point(name)
                convert = self._convert(self.name[name], name, float(step[0]), zero, target)
                self._append(replace(convert, clip=self.net.ranges[name]))
                self.exported[name] = convert.name
                self.given[name] = self.operators[-1].run([self.values[name]])
            elif not within(self.ranges[self.name[name]], self.net.ranges[name]):
                self._clip_behind(name, self.net.ranges[name])
                self.exported[name] = self.name[name]
                self.given[name] = self.values[name]
        return self.exported[name]

    def _convert(
        self, source: str, like: str, factor: float, old: int, new: int
    ) -> ConvertOperator:
        """Return ``round((x - old) * factor) + new``: one shift if the factor is a power of two."""
        shift = -int(np.floor(np.log2(factor)))
        mul = 1
        if factor != 2.0**-shift or shift < 0:
            shift = min(shift + _CONVERT_BITS - 1, _CONVERT_SHIFT)
            mul = round(factor * 2**shift)
        half = (1 << shift) >> 1
        requant: Shift | MulShift = Shift(shift)
        offset = (new << shift) - old + half
        if mul != 1:
            requant = MulShift((mul,), (shift,), ((new << shift) + half,))
            offset = -old
        name, shape = self._fresh("convert"), self.net.shape(like)
        return ConvertOperator(
            name, (source,), shape, requant=requant, offset=offset, zero_point=new
        )

    def _fresh(self, kind: str) -> str:
        """Return the first name ``<kind>_<n>`` that nothing has."""
        count = self.counts.get(kind, 0)
        while f"{kind}_{count}" in self.taken:
            count += 1
        self.counts[kind] = count + 1
        return f"{kind}_{count}"

    def _append(self, op: Operator) -> None:
        self.operators.append(op)
        self.ranges[op.name] = op.range([self.ranges[name] for name in op.inputs])

    # -------------------------------------------------------------------- operators

    def write(self, op: Operator) -> None:
        """Write one operator of the source."""
        if op.ends:
            new = replace(op, inputs=(self._export(op.inputs[0]),))
            self._append(new)
            self.name[op.name] = self.exported[op.name] = op.name
            return
        if op.kept:
            inputs = tuple(self._export(name) for name in op.inputs)
            self._append(replace(op, inputs=inputs))
            values = [self.given[name] for name in op.inputs]
            self.bring_in(op.name, op.run(values))
            return
        bounds = self._activation(op)
        if isinstance(op, ConvertOperator) and bounds == INT8:
            # Only the scale differs, which needs no operator if scales are free.
            self.name[op.name] = self.name[op.inputs[0]]
            self.values[op.name] = self.values[op.inputs[0]]
            return
        inputs = tuple(self.name[name] for name in op.inputs)
        zero = self.scales.zero_point[op.name]
        new = replace(op, inputs=inputs, zero_point=zero, clip=self._clip(op, bounds))
        match new:
            case ProductOperator():
                assert isinstance(op, ProductOperator)
                new = self._linear(op, new)
            case AddOperator():
                shift = self.scales.adds[op.name].shift
                # An exact factor of two loses less than a rounded multiplier would.
                requant = Shift(shift) if self.scheme is None else MulShift((1,), (shift,))
                new = replace(new, requant=requant)
            case GatherOperator():
                new = replace(new, fill=zero)
            case ConvertOperator():
                new = replace(new, requant=Shift(0), offset=0)
        values = [self.values[name] for name in op.inputs]
        self.values[op.name] = new.run(values)
        self.name[op.name] = op.name
        self._append(new)
        # A conversion to the source's quantization, which others read, clips by itself.
        inside = any(not (user.kept or user.ends) for user in self.net.consumers(op.name))
        if inside and not within(self.ranges[op.name], bounds):
            self._clip_behind(op.name, bounds)

    def _activation(self, op: Operator) -> tuple[int, int]:
        """Return the bounds that an operator's activation sets in its new quantization."""
        zero, step = self.scales.zero_point[op.name], float(self.scales.step[op.name][0])
        low, high = np.clip(np.rint(zero + np.array(op.activation) / step), *INT8)
        return int(low), int(high)

    def _clip(self, op: Operator, bounds: tuple[int, int]) -> tuple[int, int]:
        """Return what an operator shall clip to: its activation's bounds where its home can."""
        limits = self.net.limits(op.name) if op.clips_freely else INT8
        clip = max(limits[0], bounds[0]), min(limits[1], bounds[1])
        return clip if op.home is None or op.home.can_clip_to(clip) else limits

    def _clip_behind(self, name: str, bounds: tuple[int, int]) -> None:
        """Clip a tensor on the CPU, because the core that computes it cannot."""
        clip = ConvertOperator(
            self._fresh("clip"), (self.name[name],), self.net.shape(name), requant=Shift(0),
            clip=bounds, zero_point=self.scales.zero_point[name],
        )  # fmt: skip
        self.values[name] = clip.run([self.values[name]])
        self.name[name] = clip.name
        self._append(clip)
        op = self.net.producer(name)
        core = "its core" if op is None or op.home is None else op.home.name
        self.clips.append(
            f"{clip.name}: clips {name} to [{bounds[0]}, {bounds[1]}] on the CPU, as {core} cannot"
        )

    def _linear(self, op: ProductOperator, new: ProductOperator) -> ProductOperator:
        if op.core is not None:
            new = _padding_with(0, new)
            source, x = self.source[op.inputs[0]], self.values[op.inputs[0]]
            return ternary_layer(self.net, op, new, self.scales, source, x)
        weight, bias, requant = self._scaled(op)
        source = op.inputs[0]
        zero = self.scales.zero_point[source]
        new = _padding_with(zero, replace(new, requant=requant))
        x = self.values[source]
        if self.feedback:
            rounded = round_with_feedback(weight, new, x, zero)
        else:
            rounded = round_nearest(weight)
        new = replace(new, weight=rounded)
        folded = zero * rounded.astype(np.int64).reshape(len(rounded), -1).sum(axis=1)
        bias = bias - folded
        corrected = bias + self._mean_error(op, new, bias) if self.correct else bias
        largest = 128 * np.abs(rounded.astype(np.int64)).reshape(len(rounded), -1).sum(axis=1)
        # A correction must not break the bounds that `scaled_parameters` ensured.
        fits = np.abs(corrected) + largest < _INT32_MAX
        return replace(new, bias=np.rint(np.where(fits, corrected, bias)).astype(np.int64))

    def _scaled(self, op: ProductOperator) -> tuple[Array, Array, Shift | MulShift]:
        """Return a layer's real weights and biases in the steps of its requantization."""
        weight, bias, shift = scaled_parameters(self.net, op, self.scales)
        if self.scheme is None:
            return weight, bias, Shift(int(shift))
        step, bits, units, own = 2.0**-shift, self.scheme.multiplier_bits, np.ones(1), None
        if self.scheme.per_channel:
            own = for_own_integers(op.weight, weight, step, bits)
            units = row_units(weight, bias)
        requant = own or multiplier_and_shift(units * step, bits)
        made = np.array(requant.mul) * 2.0 ** (shift - requant.shift[0])
        steps = made.reshape(-1, 1, 1, 1)
        return op.weight.astype(np.float64) if own else weight / steps, bias / made, requant

    def _mean_error(self, op: ProductOperator, new: ProductOperator, bias: Array) -> Array:
        """Return the mean of source minus result before the clip, in accumulator steps.

        It is taken over the positions where the rectifier is open in either.
        """
        step_out = self.scales.step[op.name]
        lift = 1.0 / new.factor()
        wanted = op.real(self.source[op.inputs[0]], missing_zero(op))
        goal = (wanted / step_out + self.scales.zero_point[op.name] + 0.5) * lift
        have = new.accumulate(self.values[op.inputs[0]]).astype(np.float64) + bias
        axes = tuple(range(have.ndim - 1))
        if not op.rectifies:
            return np.asarray((goal - have).mean(axis=axes))
        open_ = (wanted > 0) | (have > (self.scales.zero_point[op.name] + 0.5) * lift)
        count = open_.sum(axis=axes)
        mean = ((goal - have) * open_).sum(axis=axes) / np.maximum(count, 1)
        return np.where(count >= _FEW, mean, 0.0)

    # -------------------------------------------------------------------- result

    def finish(self) -> Rewritten:
        """Return the whole network."""
        for name in self.net.anchors:
            self._export(name)
        outputs = tuple(self.exported.get(name, name) for name in self.net.outputs)
        zeros = dict(self.net.zero_points)
        net = Net(self.net.inputs, zeros, tuple(self.operators), outputs, self.net.channel_first)
        return Rewritten(fold_tables(net), dict(self.name), dict(self.exported), tuple(self.clips))


def _padding_with(value: int, op: ProductOperator) -> ProductOperator:
    return replace(op, pad_value=value) if isinstance(op, ConvolutionOperator) else op
