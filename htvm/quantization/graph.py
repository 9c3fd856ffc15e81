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

    @cached_property
    def products(self) -> tuple[ProductOperator, ...]:
        """The layers with weights."""
        return tuple(op for op in self.operators if isinstance(op, ProductOperator))

    @cached_property
    def shifted(self) -> tuple[ProductOperator, ...]:
        """The layers with 8-bit weights."""
        return tuple(op for op in self.products if op.core is None)

    @cached_property
    def adds(self) -> tuple[AddOperator, ...]:
        """The sums of two tensors."""
        return tuple(op for op in self.operators if isinstance(op, AddOperator))

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The tensors that need a scale: inputs, then results in order, except softmaxes."""
        return (*self.inputs, *(op.name for op in self.operators if not op.ends))

    @cached_property
    def given(self) -> Mapping[str, None]:
        """Tensors only in the source's quantization: inputs, and kept operators' results."""
        return dict.fromkeys((*self.inputs, *(op.name for op in self.operators if op.kept)))

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """Where results are compared: computed outputs, and the inputs of softmaxes."""
        names = [name for op in self.operators if op.ends for name in op.inputs]
        for name in self.outputs:
            op = self.producer(name)
            if op is not None and not op.ends:
                names.append(name)
        return tuple(dict.fromkeys(names))

    @cached_property
    def anchors(self) -> Mapping[str, None]:
        """Tensors needed in the source's own quantization, though they are not given in it.

        They leave the network or a kept operator reads them.
        """
        names = [name for op in self.operators if op.kept for name in op.inputs]
        return dict.fromkeys(name for name in (*self.ends, *names) if name not in self.given)

    @cached_property
    def symmetric(self) -> frozenset[str]:
        """Tensors of which a reader needs zero point 0, directly or through pools and reshapes.

        A padded convolution does, and so does a ternary core, whose converters see the sums
        directly; an add has alternatives (see `add_choices`), but only if it is the tensor's only
        reader.  Concatenated tensors share a zero point, which is 0.
        """
        found: set[str] = set()
        for op in reversed(self.operators):
            if op.wants_symmetric or (op.passes and op.name in found):
                found.update(op.inputs)
        return frozenset(found)

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
        return self._consumers.get(tensor, ())

    @cached_property
    def _consumers(self) -> Mapping[str, tuple[Operator, ...]]:
        found: dict[str, list[Operator]] = {}
        for op in self.operators:
            for name in dict.fromkeys(op.inputs):
                found.setdefault(name, []).append(op)
        return {name: tuple(readers) for name, readers in found.items()}

    def limits(self, tensor: str) -> tuple[int, int]:
        """Return the inclusive bounds that a tensor's readers require.

        A ternary core requires fewer than eight bits, directly or through operators that cannot
        clip.
        """
        return self._limits.get(tensor, INT8)

    @cached_property
    def _limits(self) -> Mapping[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for op in reversed(self.operators):
            bound = INT8
            if op.core is not None:
                bound = op.core.activation_range
            elif op.hands_limits_on:
                bound = found.get(op.name, INT8)
            for name in op.inputs:
                low, high = found.get(name, INT8)
                found[name] = max(low, bound[0]), min(high, bound[1])
        return found

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
