"""The network in the form used for retargeting: integer operators on channel-last arrays.

Reasoning about scales needs nothing of the compiler's IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array, MulShift, Shift
from htvm.quantization.operators import INT8, AddOperator, Operator
from htvm.quantization.products import ProductOperator
from htvm.quantization.scaling import offset_of

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator

__all__ = ["Net", "missing_zero", "within"]


@dataclass(frozen=True, eq=False)
class Net:
    """A network: operators in execution order.

    Attributes:
        inputs: name -> shape of each input, channel-last, without batch.
        zero_points: name -> zero point of each input.
        operators: operators in execution order.
        outputs: names of the tensors that the network returns, in order.
        channel_first: whether the module's own layout is NCHW.
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
        """The network with these accelerators for its operators; the others run on the CPU."""
        operators = tuple(replace(op, home=homes.get(op.name)) for op in self.operators)
        return replace(self, operators=operators)

    @property
    def products(self) -> tuple[ProductOperator, ...]:
        """The layers with weights."""
        return tuple(op for op in self.operators if isinstance(op, ProductOperator))

    @property
    def shifted(self) -> tuple[ProductOperator, ...]:
        """The layers with 8-bit weights."""
        return tuple(op for op in self.products if op.core is None)

    @property
    def adds(self) -> tuple[AddOperator, ...]:
        """The sums of two tensors."""
        return tuple(op for op in self.operators if isinstance(op, AddOperator))

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors that need a scale: inputs, then results in order, except softmaxes."""
        return (*self.inputs, *(op.name for op in self.operators if not op.ends))

    @property
    def given(self) -> tuple[str, ...]:
        """Tensors only in the source's quantization: inputs, and kept operators' results."""
        return (*self.inputs, *(op.name for op in self.operators if op.kept))

    @cached_property
    def zeros(self) -> Mapping[str, int]:
        """The zero point of every tensor, by name."""
        return {**self.zero_points, **{op.name: op.zero_point for op in self.operators}}

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """Inclusive bounds of every tensor, by name, whatever the inputs are."""
        found = dict.fromkeys(self.inputs, INT8)
        for op in self.operators:
            found[op.name] = op.range([found[name] for name in op.inputs])
        return found

    def producer(self, tensor: str) -> Operator | None:
        """Return the operator that computes a tensor, or ``None`` for an input."""
        return self._by_name.get(tensor)

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor, channel-last, without batch."""
        return self.inputs[tensor] if tensor in self.inputs else self._by_name[tensor].shape

    def shapes(self, op: Operator) -> list[tuple[int, ...]]:
        """Return the shapes of an operator's inputs."""
        return [self.shape(name) for name in op.inputs]

    def channels(self, tensor: str) -> int:
        """Return the size of a tensor's last axis."""
        return self.shape(tensor)[-1]

    def zero_point(self, tensor: str) -> int:
        """Return the zero point of a tensor."""
        return self.zeros[tensor]

    def clip(self, tensor: str) -> tuple[int, int]:
        """Return the inclusive bounds of a tensor."""
        op = self.producer(tensor)
        return INT8 if op is None else op.clip

    def consumers(self, tensor: str) -> tuple[Operator, ...]:
        """Return the operators that read a tensor, in execution order."""
        return tuple(op for op in self.operators if tensor in op.inputs)

    def limits(self, tensor: str) -> tuple[int, int]:
        """Return the inclusive bounds that a tensor's readers require.

        A ternary core requires fewer than eight bits, directly or through operators that cannot
        clip.
        """
        low, high = INT8
        for op in self.consumers(tensor):
            bound = INT8
            if op.core is not None:
                bound = op.core.activation_range
            elif op.hands_limits_on:
                bound = self.limits(op.name)
            low, high = max(low, bound[0]), min(high, bound[1])
        return low, high

    def narrow(self, tensor: str) -> bool:
        """Whether a tensor must fit fewer than eight bits."""
        return self.limits(tensor) != INT8

    def real_bias(self, op: ProductOperator) -> Array:
        """Return the addend of a layer's product in real numbers, in output steps, ``[K]``.

        It includes flooring, but not zero points.
        """
        plain = op.weight.astype(np.int64).reshape(len(op.weight), -1).sum(axis=1)
        real = (op.bias + self.zero_point(op.inputs[0]) * plain) * op.factor()
        return np.asarray(real + offset_of(op.requant) - missing_zero(op))

    def rectified(self, tensor: str) -> bool:
        """Whether the operator that computes the tensor is a rectifier."""
        op = self.producer(tensor)
        return op is not None and not op.passes and op.rectifies


def missing_zero(op: ProductOperator) -> int:
    """Return the zero point of an output whose requantization does not add it."""
    return op.zero_point if isinstance(op.requant, Shift | MulShift) else 0


def within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    """Whether inclusive bounds are inside others."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]
