"""The operators that retargeting knows: what each computes, and what it does with scales.

One small vocabulary serves both sides, the source and the result, so the same forward pass runs
either.  Arrays are channel-last, ``(y, x, C)`` or ``(C,)`` without the batch axis.  An operator
that the result has in the source's form keeps its class of `patterns.ops`; layers with weights are
in `htvm.quantization.products`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from byoc_dory.layers import Array, MulShift, OnnxRequant, Requant, Shift, TfliteRequant
from byoc_dory.soc.schemes import TernaryScheme
from htvm.quantization.evaluate import evaluate
from htvm.quantization.scaling import (
    as_scheme,
    factors_of,
    offset_of,
    requantize,
    tflite_scale,
)
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.moves.base import Filling
from patterns.ops.tflite.factors import ADD_LEFT_SHIFT

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Var

    from byoc_dory.soc.base import Accelerator
    from htvm.quantization.islands import Island
    from patterns.op import Op
    from patterns.ops.max_pool import MaxPool
    from patterns.ops.moves.base import Move
    from patterns.ops.moves.reshape import Reshape
    from patterns.ops.tflite.average_pool import AveragePool

__all__ = [
    "INT8",
    "AddOperator",
    "AverageOperator",
    "ConvertOperator",
    "GatherOperator",
    "IslandOperator",
    "KeptOperator",
    "MaximumOperator",
    "Operator",
    "ReshapeOperator",
    "SoftmaxOperator",
    "from_source",
    "pooled",
    "to_source",
]

INT8 = (-128, 127)
_ALIGNED = 0.5  # what is left of the rounding of an average on the source's own grid, of 1 + 1


def to_source(x: Array, channel_first: bool) -> Array:
    """``[N, y, x, C]`` (or fewer axes) in the module's own layout."""
    return np.moveaxis(x, -1, 1) if channel_first and x.ndim == 4 else x


def from_source(x: Array, channel_first: bool) -> Array:
    """The other way round."""
    return np.moveaxis(x, 1, -1) if channel_first and x.ndim == 4 else x


def pooled(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    value: int,
) -> Array:
    """Return a view of the windows on maps.

    Args:
        x: ``[N, y, x, C]``.
        kernel: rows and columns of a window.
        strides: of windows.
        padding: (top, left, bottom, right).
        value: of the padding.

    Returns:
        ``[N, oy, ox, C, rows, columns]``.
    """
    if any(padding):
        top, left, bottom, right = padding
        border = ((0, 0), (top, bottom), (left, right), (0, 0))
        x = np.pad(x, border, constant_values=value)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))
    return np.asarray(view[:, :: strides[0], :: strides[1]])


@dataclass(frozen=True, eq=False)
class Operator:
    """One integer operator; its output tensor has the operator's name.

    Attributes:
        name: layer name, unique in the net.
        inputs: names of operators, or of inputs of the net.
        shape: of the output, channel-last, without batch.
        clip: inclusive bounds of the output.
        zero_point: of the output.
        home: the accelerator that shall run it; ``None`` for the CPU, which has all arithmetic.

    Class attributes:
        passes: whether the output has the scale and zero point of the input.
        computes: whether it rounds and clips numbers of its own, which a report measures.
        requantizes: whether its output is clipped from something wider.
        kept: whether it computes on in the source's own quantization, on the host.
        ends: whether it is known as the last operator of a network only.
    """

    name: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    _: KW_ONLY
    clip: tuple[int, int] = INT8
    zero_point: int = 0
    home: Accelerator | None = None

    passes: ClassVar[bool] = False
    computes: ClassVar[bool] = False
    requantizes: ClassVar[bool] = False
    kept: ClassVar[bool] = False
    ends: ClassVar[bool] = False

    @property
    def rectifies(self) -> bool:
        """Whether no output lies below zero: a ReLU, or a zero point at the lower end."""
        return self.clip[0] == self.zero_point

    @property
    def core(self) -> TernaryScheme | None:
        """The number scheme of the ternary core that shall run it, if one shall."""
        scheme = None if self.home is None else self.home.scheme
        return scheme if isinstance(scheme, TernaryScheme) else None

    @property
    def clips_freely(self) -> bool:
        """Whether it can clip to fewer bits than eight, as the CPU and a ternary core can."""
        return self.home is None or self.core is not None

    @property
    def hands_limits_on(self) -> bool:
        """Whether bounds that its readers set are those of its inputs."""
        return self.passes

    @property
    def wants_symmetric(self) -> bool:
        """Whether its inputs shall have zero point 0."""
        return self.core is not None

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a forward pass that count."""
        return 0

    def run(self, inputs: Sequence[Array]) -> Array:
        """The int8 output for a batch of its inputs, ``[N, ...]``."""
        raise NotImplementedError

    def made(self) -> Op:
        """The operator of the integer form.

        Raises:
            UnsupportedError: if it is in no accelerator's scheme.
        """
        raise NotImplementedError

    def write(self, builder: BlockBuilder, inputs: list[Var], shared: dict[Var, Var]) -> Var:
        """Write the operator of the integer form; ``shared`` is what islands have written."""
        return self.made().write(builder, inputs, self.name)

    def before_clip(self, tensors: Mapping[str, Array], zero: Mapping[str, int]) -> Array:
        """The output relative to its zero point, before it is clipped, in real numbers.

        Args:
            tensors: what the network computes.
            zero: zero points of its tensors.
        """
        return np.asarray(tensors[self.name].astype(np.float64) - self.zero_point)

    def rounding(self, step: Array) -> Array:
        """Variance of rounding the output to steps ``[C, G]``, in squared steps of the source."""
        return np.zeros(step.shape) if self.passes else np.asarray(step**2 / 12)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """Gains ``[C]`` of each input from those of the output.

        Args:
            through: per channel, output noise power per unit of variance of the output.
            shapes: of the inputs.
        """
        return [through]

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """Which channels of inputs (of ``shapes``) and output belong together, for each input.

        With one input: its channel that each output channel comes from; with several: for each,
        the output channel that each of its channels goes to.  ``None`` if channels stay, empty if
        they get mixed.
        """
        return [None] * len(self.inputs)

    def ratio(self) -> float:
        """Factor between input and output steps, of an operator that passes them on."""
        return 1.0


# ------------------------------------------------------------------------------ sums, conversions


@dataclass(frozen=True, eq=False)
class AddOperator(Operator):
    """The sum of two tensors.

    Attributes:
        requant: of the sum; with two or three factors, TFLite's or onnxruntime's addition.
    """

    computes = requantizes = True

    _: KW_ONLY
    requant: Requant

    @property
    def hands_limits_on(self) -> bool:
        """See `Operator.hands_limits_on`."""
        return not self.clips_freely

    @property
    def wants_symmetric(self) -> bool:
        """See `Operator.wants_symmetric`; it can do otherwise, see `ties.add_choices`."""
        return True

    def factors(self) -> tuple[Array, Array]:
        """Real factors ``[1]`` from steps of each operand to output steps."""
        factors = factors_of(self.requant)
        if isinstance(self.requant, TfliteRequant):
            first, second, out = factors[:, None]
            lift = 2.0**ADD_LEFT_SHIFT
            return first * out * lift, second * out * lift
        if isinstance(self.requant, OnnxRequant):
            return factors[:1], factors[1:]
        return factors, factors

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        first, second = (x.astype(np.int64) for x in inputs)
        requant = self.requant
        if isinstance(requant, Shift | MulShift):
            return requantize(first + second, requant, self.clip)
        assert isinstance(requant, TfliteRequant | OnnxRequant), self.name
        a, b = requant.input_zero_points
        if isinstance(requant, OnnxRequant):
            left, right = factors_of(requant)
            total = (first - a) * left + (second - b) * right + requant.output_zero_point
            return np.clip(np.rint(total), *self.clip).astype(np.int8)
        mul, shift = requant.multiplier, requant.shift
        total = tflite_scale((first - a) << ADD_LEFT_SHIFT, mul[0], shift[0])
        total = total + tflite_scale((second - b) << ADD_LEFT_SHIFT, mul[1], shift[1])
        out = tflite_scale(total, mul[2], shift[2]) + requant.output_zero_point
        return np.clip(out, *self.clip).astype(np.int8)

    def made(self) -> Op:
        """See `Operator.made`."""
        return Add(as_scheme(self.requant, self.name), self.clip)

    def before_clip(self, tensors: Mapping[str, Array], zero: Mapping[str, int]) -> Array:
        """See `Operator.before_clip`."""
        parts = zip(self.inputs, self.factors(), strict=True)
        first, second = ((tensors[t].astype(np.float64) - zero[t]) * f for t, f in parts)
        return np.asarray(first + second)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through * factor**2 for factor in self.factors()]


@dataclass(frozen=True, eq=False)
class ConvertOperator(Operator):
    """``clip(requant(x + offset))``.

    One of the source only changes the scale, which is free in the result: there it has nothing left
    to do.
    """

    passes = True

    _: KW_ONLY
    requant: Requant
    offset: int = 0

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        return requantize(inputs[0].astype(np.int64) + self.offset, self.requant, self.clip)

    def made(self) -> Op:
        """See `Operator.made`."""
        return Convert(as_scheme(self.requant, self.name), self.clip, self.offset)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through * factors_of(self.requant) ** 2]

    def ratio(self) -> float:
        """See `Operator.ratio`."""
        return float(factors_of(self.requant)[0])

    def moves_zero(self, zero: int) -> float:
        """How far from zero the number zero is taken, in steps of the result; what is left of
        rounding is below one.  ``zero`` is the zero point of the input."""
        moved = (self.offset + zero) * factors_of(self.requant)
        return float(np.max(np.abs(moved + offset_of(self.requant))))


# ------------------------------------------------------------------------------ pools


@dataclass(frozen=True, eq=False)
class AverageOperator(Operator):
    """Averages of windows: sum over count, rounded half away from zero; padding does not count."""

    passes = computes = True

    _: KW_ONLY
    op: AveragePool

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        x, window = inputs[0], (self.op.kernel, self.op.strides, self.op.padding, 0)
        total = pooled(x.astype(np.int64), *window).sum(axis=(-2, -1))
        count = pooled(np.ones_like(x[:1], np.int64), *window).sum(axis=(-2, -1))
        away = (np.abs(total) + count // 2) // count
        return np.clip(np.where(total < 0, -away, away), *self.clip).astype(np.int8)

    def made(self) -> Op:
        """See `Operator.made`."""
        return replace(self.op, clip=self.clip)

    def rounding(self, step: Array) -> Array:
        """See `Operator.rounding`.

        An average varies so little between source and result that on the same grid both round
        alike, and on different grids the source's rounding adds to ours.
        """
        return np.where(step == 1.0, _ALIGNED, 1.0 + step**2) / 12

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through / (np.prod(self.op.kernel) * np.prod(self.op.strides))]


@dataclass(frozen=True, eq=False)
class MaximumOperator(Operator):
    """Maxima of windows; padding never wins."""

    passes = True

    _: KW_ONLY
    op: MaxPool

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        windows = pooled(inputs[0], self.op.kernel, self.op.strides, self.op.padding, INT8[0])
        return np.asarray(windows.max(axis=(-2, -1)))

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        return [through / np.prod(self.op.strides)]


# ------------------------------------------------------------------------------ moves


@dataclass(frozen=True, eq=False)
class ReshapeOperator(Operator):
    """The same elements in another shape.

    Attributes:
        channel_first: whether the module's own layout is NCHW.
    """

    passes = True

    _: KW_ONLY
    op: Reshape
    channel_first: bool = False

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        x = to_source(inputs[0], self.channel_first)
        return from_source(x.reshape(len(x), *self.op.shape[1:]), self.channel_first)

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        channels = shapes[0][-1]
        if not self.channel_first and self.shape[-1] % channels == 0:
            return [through.reshape(-1, channels).mean(axis=0)]
        return [np.full(channels, through.mean())]

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """See `Operator.lanes`."""
        before, after = shapes[0], self.shape
        if before[-1] == after[-1]:
            return [None]
        if len(after) == 1 and after[0] == int(np.prod(before)):
            lanes = np.arange(before[-1])
            places = int(np.prod(before[:-1]))
            return [np.repeat(lanes, places) if self.channel_first else np.tile(lanes, places)]
        return [np.zeros(0, np.int64)]  # channels get mixed: one lane for all


@dataclass(frozen=True, eq=False)
class GatherOperator(Operator):
    """What moves elements.

    Attributes:
        op: the operator.
        index: which element each of the output's is, int64 ``[elements]``, counted through all
            inputs one after the other; -1 for the number zero.
        fill: the integer that is the number zero.
    """

    passes = True

    _: KW_ONLY
    op: Move
    index: Array
    fill: int

    @property
    def wants_symmetric(self) -> bool:
        """See `Operator.wants_symmetric`: what is joined shares a zero point; all agree on 0."""
        return len(self.inputs) > 1 or self.core is not None

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        flat = np.concatenate([x.reshape(len(x), -1) for x in inputs], axis=1)
        out = np.where(self.index < 0, np.int8(self.fill), flat[:, self.index])
        return out.reshape(len(out), *self.shape)

    def made(self) -> Op:
        """See `Operator.made`: the number zero is another integer in the result's quantization."""
        return replace(self.op, value=self.fill) if isinstance(self.op, Filling) else self.op

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`: each element of an input counts as often as it is taken."""
        found = []
        for shape, taken, target in self._taken(shapes):
            back = np.zeros(shape[-1])
            np.add.at(back, taken % shape[-1], through[target])
            found.append(back * shape[-1] / int(np.prod(shape)))
        return found

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """See `Operator.lanes`."""
        found: list[Array | None] = []
        for shape, taken, target in self._taken(shapes):
            source, size = taken % shape[-1], self.shape[-1]
            if len(self.inputs) > 1:
                source, target, size = target, source, shape[-1]
            lanes = np.full(size, -1)
            lanes[target] = source
            whole = bool((lanes >= 0).all() and (lanes[target] == source).all())
            found.append(lanes if whole else np.zeros(0, np.int64))
        return found

    def _taken(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> list[tuple[tuple[int, ...], Array, Array]]:
        """For each input its shape, the elements that are taken of it, and the channels they go
        to."""
        channels, start = np.arange(self.index.size) % self.shape[-1], 0
        found = []
        for shape in shapes:
            size = int(np.prod(shape))
            taken = (self.index >= start) & (self.index < start + size)
            found.append((shape, self.index[taken] - start, channels[taken]))
            start += size
        return found


# ------------------------------------------------------------------------------ kept as they are


@dataclass(frozen=True, eq=False)
class KeptOperator(Operator):
    """What computes on in the source's own quantization, on the host.

    Its inputs come out in that quantization, as outputs of the network do, and what it computes
    enters the network as an input of it does.  What lies between is free.
    """

    kept = True

    _: KW_ONLY
    op: Op
    channel_first: bool = False

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        parts = [to_source(x, self.channel_first) for x in inputs]
        return from_source(evaluate(self.op, parts), self.channel_first)

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op


@dataclass(frozen=True, eq=False)
class IslandOperator(Operator):
    """Several operators of the source that are kept as one."""

    kept = True

    _: KW_ONLY
    island: Island
    channel_first: bool = False

    @property
    def macs(self) -> int:
        """See `Operator.macs`."""
        return self.island.macs

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        parts = [to_source(x, self.channel_first) for x in inputs]
        return from_source(self.island.run(parts), self.channel_first)

    def write(self, builder: BlockBuilder, inputs: list[Var], shared: dict[Var, Var]) -> Var:
        """See `Operator.write`."""
        return self.island.write(builder, inputs, shared)


@dataclass(frozen=True, eq=False)
class SoftmaxOperator(Operator):
    """A softmax at the end of a network, which is not computed here."""

    ends = True

    _: KW_ONLY
    op: Op

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op
