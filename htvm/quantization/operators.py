"""The operators that retargeting supports: their computations and their effect on scales.

Source and result are written in the same few operators, so that one forward pass runs either.
Arrays are channel-last, ``(y, x, C)`` or ``(C,)`` without the batch axis.  An operator that the
result has in the source's form keeps its class of `patterns.ops`; layers with weights are in
`htvm.quantization.products`, those that scales pass through in `htvm.quantization.passing`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from byoc_dory.layers import Array, MulShift, OnnxRequant, Requant, Shift, TfliteRequant
from byoc_dory.soc.schemes import TernaryScheme
from htvm.quantization.scaling import (
    as_scheme,
    factors_of,
    requantize,
    tflite_scale,
)
from patterns.ops.add import Add
from patterns.ops.tflite.factors import ADD_LEFT_SHIFT

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from htvm.quantization.islands import Island
    from patterns.op import Op
    from patterns.reading.building import GraphBuilder

__all__ = [
    "INT8",
    "AddOperator",
    "KeptOperator",
    "Operator",
    "SoftmaxOperator",
    "from_source",
    "to_source",
]

INT8 = (-128, 127)


def to_source(x: Array, channel_first: bool) -> Array:
    """Return a batch ``[N, y, x, C]`` (or of fewer axes) in the module's own layout."""
    return np.moveaxis(x, -1, 1) if channel_first and x.ndim == 4 else x


def from_source(x: Array, channel_first: bool) -> Array:
    """Return a batch in the module's own layout as ``[N, y, x, C]``."""
    return np.moveaxis(x, 1, -1) if channel_first and x.ndim == 4 else x


@dataclass(frozen=True, eq=False)
class Operator:
    """One integer operator; its output tensor has the operator's name.

    Attributes:
        name: name of the layer, unique in the net.
        inputs: names of operators, or of inputs of the net.
        shape: shape of the output, channel-last, without batch.
        clip: inclusive bounds of the output.
        zero_point: zero point of the output.
        home: the accelerator that will run it; ``None`` for the CPU, which supports all arithmetic.

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
        """Whether no output is below zero: a ReLU, or a zero point at the lower end."""
        return self.clip[0] == self.zero_point

    @property
    def activation(self) -> tuple[float, float]:
        """Inclusive bounds of its activation relative to the zero point, in steps of the output.

        An end of int8 that is not zero is the source's saturation, no bound: infinite.
        """
        zero, (low, high) = self.zero_point, self.clip
        return (
            -math.inf if low == INT8[0] != zero else low - zero,
            math.inf if high == INT8[1] != zero else high - zero,
        )

    @property
    def needs_one_step(self) -> bool:
        """Whether channels with different steps would need different bounds."""
        return any(bound and math.isfinite(bound) for bound in self.activation)

    def range(self, inputs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return inclusive bounds of the output, given those of each input."""
        return self.clip

    @property
    def core(self) -> TernaryScheme | None:
        """The number scheme of the ternary core that will run it, or ``None``."""
        scheme = None if self.home is None else self.home.scheme
        return scheme if isinstance(scheme, TernaryScheme) else None

    @property
    def clips_freely(self) -> bool:
        """Whether it can clip to fewer bits than eight, as the CPU and a ternary core can."""
        return self.home is None or self.core is not None

    @property
    def hands_limits_on(self) -> bool:
        """Whether bounds that readers set on its output are bounds on its inputs, too."""
        return self.passes

    @property
    def wants_symmetric(self) -> bool:
        """Whether its inputs should have zero point 0."""
        return self.core is not None

    @property
    def macs(self) -> int:
        """Multiply-accumulates, where these decide how long a forward pass takes."""
        return 0

    def run(self, inputs: Sequence[Array]) -> Array:
        """Return the int8 output for a batch of its inputs, ``[N, ...]``."""
        raise NotImplementedError

    def made(self) -> Op:
        """Return the operator of the integer form.

        Raises:
            UnsupportedError: it is in no accelerator's scheme.
        """
        raise NotImplementedError

    def apply(self, builder: GraphBuilder) -> None:
        """Add the operator to a graph in the integer form."""
        builder.apply(self.made(), self.inputs, self.name)

    def before_clip(self, tensors: Mapping[str, Array], zero: Mapping[str, int]) -> Array:
        """Return the output relative to its zero point, before it is clipped, in real numbers.

        Args:
            tensors: tensors of the network by name.
            zero: zero points of its tensors.
        """
        return np.asarray(tensors[self.name].astype(np.float64) - self.zero_point)

    def rounding(self, step: Array) -> Array:
        """The variance of rounding the output to steps ``[C, G]``, in squared source steps."""
        return np.zeros(step.shape) if self.passes else np.asarray(step**2 / 12)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """Return gains ``[C]`` of each input from those of the output.

        Args:
            through: per channel, output noise power per unit of variance of the output.
            shapes: shapes of the inputs.
        """
        return [through]

    def lanes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array | None]:
        """Which channels of inputs (of ``shapes``) and output belong together, for each input.

        With one input: the input channel that each output channel comes from; with several: for
        each, the output channel that each of its channels goes to.  ``None`` if channels are
        unchanged, empty if they are mixed.
        """
        return [None] * len(self.inputs)

    def ratio(self) -> float:
        """The factor between input and output steps, for an operator that passes them through."""
        return 1.0


# ------------------------------------------------------------------------------ sums


@dataclass(frozen=True, eq=False)
class AddOperator(Operator):
    """The sum of two tensors.

    Attributes:
        requant: requantization of the sum; with two or three factors, TFLite's or onnxruntime's
            addition.
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
        """See `Operator.wants_symmetric`; it has alternatives, see `add_choices`."""
        return True

    def factors(self) -> tuple[Array, Array]:
        """Return real factors ``[1]`` from steps of each operand to output steps."""
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


# ------------------------------------------------------------------------------ kept as they are


@dataclass(frozen=True, eq=False)
class KeptOperator(Operator):
    """What stays as the source has it: on the host, in the source's quantization.

    Its inputs are converted to that quantization, as outputs of the network are, and its output is
    converted back, as inputs are.  The scales in between are free.
    """

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

    def apply(self, builder: GraphBuilder) -> None:
        """See `Operator.apply`."""
        self.island.apply(builder, self.inputs)


@dataclass(frozen=True, eq=False)
class SoftmaxOperator(Operator):
    """A softmax at the end of a network; it is not computed here."""

    ends = True

    _: KW_ONLY
    op: Op

    def made(self) -> Op:
        """See `Operator.made`."""
        return self.op
