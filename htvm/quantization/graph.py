"""The network as retargeting sees it: a list of integer operators on channel-last arrays.

One small vocabulary serves both sides, the source (TFLite's requantization) and the result
(shifts, ternary layers), so the same forward pass runs either, and nothing of the compiler's IR is
needed to reason about scales.  Arrays are channel-last, ``(y, x, C)`` or ``(C,)`` without the batch
axis; weights are ``[K, C / groups, fy, fx]`` as in :class:`byoc_dory.layers.Layer`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from byoc_dory.layers import AnalogRequant, Array, MulShift, OnnxRequant, Shift
from byoc_dory.soc.schemes import TernaryScheme

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from patterns.op import Op

__all__ = [
    "LINEAR",
    "PASSING",
    "AnalogRequant",
    "Array",
    "FloatAdd",
    "FloatScale",
    "Kind",
    "MulShift",
    "Net",
    "Operator",
    "Origin",
    "Requantization",
    "Shift",
    "TfliteAdd",
    "TfliteScale",
]

Kind: TypeAlias = Literal[
    "add", "average_pool", "conv2d", "convert", "dense", "depthwise", "gather", "kept", "max_pool",
    "pad", "reshape", "softmax",
]  # fmt: skip
LINEAR = ("conv2d", "depthwise", "dense")
"""Operators with weights."""
PASSING = ("average_pool", "convert", "gather", "max_pool", "pad", "reshape")
"""Operators whose output has the scale and zero point of their input.  A ``convert`` of the source
only changes the scale, which is free in the result: there it has nothing left to do."""


@dataclass(frozen=True, eq=False)
class TfliteScale:
    """TFLite's requantization of a linear operator.

    Attributes:
        multiplier: int64 ``[K]``, Q31.
        shift: int64 ``[K]``, positive means left.
        zero_point: of the output.
    """

    multiplier: Array
    shift: Array
    zero_point: int


@dataclass(frozen=True, eq=False)
class FloatScale:
    """onnxruntime's float32 requantization of a linear operator.

    Attributes:
        multiplier: int64 ``[K]``, mantissas of 24 bits.
        shift: int64 ``[K]``, to the right.
        zero_point: of the output.
    """

    multiplier: Array
    shift: Array
    zero_point: int

    @property
    def scale(self) -> Array:
        """The scales, float32 ``[K]``."""
        return np.ldexp(self.multiplier.astype(np.float32), -self.shift.astype(np.int32))


@dataclass(frozen=True)
class FloatAdd:
    """onnxruntime's addition: the operands scaled to the output's step, added, rounded once.

    Attributes:
        scales: of the two operands in steps of the output, float32 numbers.
        zero_points: of the two operands, then of the output.
    """

    scales: tuple[float, float]
    zero_points: tuple[int, int, int]

    @classmethod
    def from_requant(cls, requant: OnnxRequant) -> FloatAdd:
        """From what the layer says."""
        first, second = (
            math.ldexp(multiplier, -shift)
            for multiplier, shift in zip(requant.multiplier, requant.shift, strict=True)
        )
        a, b = requant.input_zero_points
        return cls((first, second), (a, b, requant.output_zero_point))


@dataclass(frozen=True)
class TfliteAdd:
    """TFLite's addition: both operands scaled to a common fixed-point scale, then added.

    Attributes:
        multipliers, shifts: of the two operands, then of the output.
        zero_points: likewise.
        left_shift: of the operands before scaling.
    """

    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    zero_points: tuple[int, int, int]
    left_shift: int = 20


Requantization: TypeAlias = (
    "Shift | MulShift | AnalogRequant | TfliteScale | TfliteAdd | FloatScale | FloatAdd | None"
)

INT8 = (-128, 127)


@dataclass(frozen=True, eq=False)
class Origin:
    """How the source writes an operator that this vocabulary has no name for.

    Attributes:
        kind, attrs: of its `patterns.reading.read.Node`.
        op: the operator, if it has a class.
    """

    kind: str
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    op: Op | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """One integer operator; its output tensor has the operator's name.

    Attributes:
        name: layer name, unique in the net.
        kind: what it computes.
        inputs: names of operators, or of inputs of the net.
        shape: of the output, channel-last, without batch.
        weight: int8, of a linear operator.
        bias: int64 ``[K]``, with the input's zero point folded in.
        stride: (y, x), also of a pool.  dilation: (y, x).
        pad: (top, left, bottom, right), also of a pool.
        pad_value: what the padding holds; anything but 0 takes an explicit padding operator.
        groups: 1, or the channels of a depthwise convolution.
        requant: how the accumulator becomes int8; a ``convert`` requantizes ``x + offset``.
        clip: inclusive bounds of the output.
        offset: of a ``convert``.
        pool: kernel (y, x) of a pool.
        zero_point: of the output.
        origin: of a ``gather``, which moves elements, of a ``kept`` operator, which computes on in
            the source's own quantization, and of a ``softmax`` that is not TFLite's.
        index: of a ``gather``: which element each of the output's is, int64 ``[elements]``, counted
            through all inputs one after the other; -1 for the number zero.
        home: the accelerator that shall run it; ``None`` for the CPU, which has all arithmetic.
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    weight: Array | None = None
    bias: Array | None = None
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    pad_value: int = 0
    groups: int = 1
    requant: Requantization = None
    clip: tuple[int, int] = (-128, 127)
    offset: int = 0
    pool: tuple[int, int] = (1, 1)
    zero_point: int = 0
    origin: Origin | None = None
    index: Array | None = None
    home: Accelerator | None = None

    @property
    def padded(self) -> bool:
        """Whether the operator reads outside its input."""
        return any(self.pad)

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

    def weights(self) -> Array:
        """The weights of a linear operator, which always has some."""
        assert self.weight is not None, self.name
        return self.weight

    def biases(self) -> Array:
        """The biases of a linear operator, which always has some."""
        assert self.bias is not None, self.name
        return self.bias

    def factors(self) -> tuple[Array, ...]:
        """Real factors from accumulator (or operand) steps to output steps.

        One array ``[K]`` for a linear operator, ``[1]`` for a conversion, and one ``[1]`` per
        operand for an add.
        """
        requant = self.requant
        if isinstance(requant, TfliteAdd):
            first, second, out = (
                np.ldexp(np.array([float(mul)]), shift - 31)
                for mul, shift in zip(requant.multipliers, requant.shifts, strict=True)
            )
            lift = 2.0**requant.left_shift
            return first * out * lift, second * out * lift
        if isinstance(requant, FloatAdd):
            return np.array(requant.scales[:1]), np.array(requant.scales[1:])
        if isinstance(requant, FloatScale):
            factor = requant.scale.astype(np.float64)
        elif isinstance(requant, TfliteScale):
            factor = np.ldexp(requant.multiplier.astype(np.float64), requant.shift - 31)
        elif isinstance(requant, MulShift):
            factor = np.ldexp(np.array(requant.mul, np.float64), -np.array(requant.shift))
        else:
            assert isinstance(requant, Shift), self.name
            factor = np.array([2.0**-requant.shift])
        if self.kind == "add":
            return factor, factor
        if self.kind == "convert":
            return (factor,)
        return (np.broadcast_to(factor, (len(self.weights()),)),)

    def real_offset(self) -> float | Array:
        """What the requantization adds on average, in output steps: half a step less by flooring,
        and the addend of a `MulShift`."""
        if isinstance(self.requant, MulShift):
            scale = np.ldexp(1.0, -np.array(self.requant.shift))
            return np.array(self.requant.add, np.float64) * scale - 0.5 + scale / 2
        if isinstance(self.requant, Shift):
            return float(-0.5 + 2.0 ** -(self.requant.shift + 1))
        return 0.0


@dataclass(frozen=True, eq=False)
class Net:
    """A network: operators in execution order.

    Attributes:
        inputs: name -> shape of each input, channel-last, without batch.
        zero_points: name -> zero point of each input.
        operators: in execution order.
        outputs: names of the tensors that leave the network, in order.
        channel_first: whether the module's own layout is NCHW (matters to a reshape).
    """

    inputs: Mapping[str, tuple[int, ...]]
    zero_points: Mapping[str, int]
    operators: tuple[Operator, ...]
    outputs: tuple[str, ...]
    channel_first: bool = False
    _by_name: dict[str, Operator] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {op.name: op for op in self.operators})

    def at(self, homes: Mapping[str, Accelerator]) -> Net:
        """The network with the accelerators that shall run its operators; others' is the CPU."""
        operators = tuple(replace(op, home=homes.get(op.name)) for op in self.operators)
        return replace(self, operators=operators)

    @property
    def tensors(self) -> tuple[str, ...]:
        """All tensors that need a scale: the inputs, then the results in execution order, those
        of softmaxes excepted."""
        return (*self.inputs, *(op.name for op in self.operators if op.kind != "softmax"))

    @property
    def given(self) -> tuple[str, ...]:
        """The tensors that exist in the source's own quantization only: the inputs, and what kept
        operators compute."""
        return (*self.inputs, *(op.name for op in self.operators if op.kind == "kept"))

    def producer(self, tensor: str) -> Operator | None:
        """The operator that computes a tensor, or ``None`` for an input."""
        return self._by_name.get(tensor)

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Shape of a tensor, channel-last, without batch."""
        return self.inputs[tensor] if tensor in self.inputs else self._by_name[tensor].shape

    def channels(self, tensor: str) -> int:
        """Size of a tensor's last axis."""
        return self.shape(tensor)[-1]

    def zero_point(self, tensor: str) -> int:
        """Zero point of a tensor."""
        if tensor in self.inputs:
            return self.zero_points[tensor]
        return self._by_name[tensor].zero_point

    def consumers(self, tensor: str) -> tuple[Operator, ...]:
        """The operators that read a tensor, in execution order."""
        return tuple(op for op in self.operators if tensor in op.inputs)

    def limits(self, tensor: str) -> tuple[int, int]:
        """Inclusive bounds that those who read a tensor set: fewer than eight bits for a ternary
        core, directly or behind operators that cannot clip by themselves."""
        low, high = INT8
        for op in self.consumers(tensor):
            bound = INT8
            if op.core is not None:
                bound = op.core.activation_range
            elif op.kind in PASSING or (op.kind == "add" and not op.clips_freely):
                bound = self.limits(op.name)
            low, high = max(low, bound[0]), min(high, bound[1])
        return low, high

    def narrow(self, tensor: str) -> bool:
        """Whether a tensor must lie within fewer than eight bits."""
        return self.limits(tensor) != INT8

    def real_bias(self, op: Operator) -> Array:
        """What a linear operator adds to the product of weights and numbers (not integers), in
        steps of its output, ``[K]``; flooring included, zero points not."""
        plain = op.weights().astype(np.int64).reshape(len(op.weights()), -1).sum(axis=1)
        real = (op.biases() + self.zero_point(op.inputs[0]) * plain) * op.factors()[0]
        return np.asarray(real + op.real_offset() - self.missing_zero(op))

    def missing_zero(self, op: Operator) -> int:
        """The zero point of an output whose requantization does not add it by itself."""
        return self.zero_point(op.name) if isinstance(op.requant, Shift | MulShift) else 0

    def rectified(self, tensor: str) -> bool:
        """Whether the operator that computes the tensor lets nothing below zero through."""
        op = self.producer(tensor)
        return op is not None and op.kind not in PASSING and op.rectifies
