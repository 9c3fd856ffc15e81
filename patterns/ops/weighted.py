"""Products with constant weights: their sums in numpy, and bounds of these.

Everything is exact integer arithmetic.  Sums are a floating-point matrix product whose partial sums
provably stay integers below 2**24 (float32) or 2**53 (float64), so the result depends neither on
the library behind numpy nor on its number of threads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.layers import Array, Shift
from patterns.op import INT8, Range, TensorType, Work
from patterns.ops.requantize import (
    Scaling,
    check_int32,
    check_requantization,
    requantize,
    requantize_pattern,
    shifted,
)
from patterns.ops.scaling import requantized
from patterns.primitive import dtype_of
from patterns.relax_op import ComposedOp, Match

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var


@dataclass(frozen=True, eq=False)
class WeightedOp(ComposedOp):
    """Base of products with constant weights.

    Attributes:
        weight: ``[K, C / groups, ...]``.
    """

    work = Work.PRODUCT

    weight: Array

    def compute(self, inputs: Sequence[Array], pad: int = 0) -> Array:
        """See `Op.compute`; ``pad`` is the value of the padding."""
        raise NotImplementedError

    def operands(self, x: Array, pad: int = 0) -> Array:
        """Return the operands of every sum.

        Args:
            x: ``[N, C]``, or ``[N, y, x, C]`` for a convolution.
            pad: value of the padding.

        Returns:
            ``[B, N, ..., D]`` for B parts of the weights that read operands of their own, in the
            order of ``weight.reshape(B, -1, D)``.
        """
        return x[None]

    def accumulate(self, x: Array, pad: int = 0) -> Array:
        """Return the sums without bias: integers in a floating-point array ``[N, ..., K]``.

        Args:
            x: integers as for `operands`.
            pad: value of the padding.
        """
        matrix = self.weight.reshape(len(self.weight), -1).T
        dtype = self._float(x)
        (rows,) = self.operands(x.astype(dtype), pad)
        sums = rows.reshape(-1, len(matrix)) @ matrix.astype(dtype)
        return np.asarray(sums.reshape(*rows.shape[:-1], -1))

    def _float(self, x: Array) -> str:
        """A type that holds every partial sum exactly."""
        bound = accumulator_bound(self.weight, np.zeros(1), x.dtype.name)
        return "float32" if bound < 1 << 24 else "float64"


@dataclass(frozen=True, eq=False)
class SummedOp(WeightedOp):
    """Base of products whose results are int32 sums.

    Attributes:
        bias: int32 ``[K]``, with the input's zero point folded in.
        operation: name of the Relax operator that computes the product.
    """

    operation: ClassVar[str]

    bias: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", check_int32(self.bias))

    @abstractmethod
    def sums(self, bb: BlockBuilder, x: Expr, name: str, *, last: bool) -> Var:
        """Write the int32 sums; ``last``: whether they are the operator's result."""

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        return self.sums(bb, inputs[0], name, last=True)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; slots ``x``, ``weight``, ``bias`` and ``product``."""
        x, weight, bias = wildcard(), is_const(), is_const()
        product = is_op(cls.operation)(x, weight)
        slots = {"x": x, "weight": weight, "bias": bias, "product": product}
        return (Match(cls.kind, is_op("relax.add")(product, bias), slots),)


@dataclass(frozen=True, eq=False)
class RequantizedOp(SummedOp):
    """Base of products of 8-bit tensors, requantized and clipped.

    Attributes:
        requant: requantization of the sums, including the output's zero point.
        clip: inclusive range of the output.
        dtype: type of the output.
    """

    requant: Scaling
    clip: Range = INT8
    dtype: str = "int8"

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return -1

    @property
    def is_padded(self) -> bool:
        """Whether zeros are also read."""
        return False

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        check_requantization(self.requant)
        return replace(super().result_of(inputs), dtype=self.dtype)

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        return requantize(
            bb,
            self.sums(bb, inputs[0], name, last=False),
            self.requant,
            self.clip,
            name,
            channel_axis=self.channel_axis,
            bound=accumulator_bound(self.weight, self.bias, dtype_of(inputs[0])),
            dtype=self.dtype,
        )

    def compute(self, inputs: Sequence[Array], pad: int = 0) -> Array:
        """See `WeightedOp.compute`."""
        sums = self.accumulate(inputs[0], pad).astype(np.int64) + self.bias
        return requantized(sums, self.requant, self.clip, self.dtype)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: weights and bias bound the sums of a right shift."""
        if not isinstance(self.requant, Shift):
            return self.clip
        return weighted_range(
            self.weight, self.bias, inputs[0], self.is_padded, self.requant, self.clip
        )

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; the slots of the sums and of the requantization."""
        (sums,) = super().matches()
        root, slots = requantize_pattern(sums.pattern)
        return (Match(cls.kind, root, {**sums.slots, **slots}),)


def accumulator_bound(weight: Array, bias: Array, dtype: str = "int8") -> int:
    """Return the largest possible |accumulator|: |bias| + 128 * sum |w| (255 if unsigned).

    Args:
        weight: int8 weights, one row (or filter) per output channel.
        bias: int32, one number per output channel.
        dtype: type of the input.
    """
    largest = {"int8": 128, "uint8": 255}[dtype]
    rows = np.abs(weight.astype("int64")).reshape(weight.shape[0], -1).sum(axis=1)
    return int((rows * largest + np.abs(bias.astype("int64"))).max())


def weighted_range(
    weight: Array, bias: Array, read: Range, padded: bool, requant: Shift, clip: Range
) -> Range:
    """Return the output range of a product that is requantized by one right shift.

    Args:
        weight, bias: weight and bias as for `accumulator_bound`.
        read: range of the input.
        padded: whether zeros are also read.
        requant, clip: requantization and clip of the operator.
    """
    low, high = read
    if padded:
        low, high = min(low, 0), max(high, 0)
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    positive = np.maximum(rows, 0).sum(axis=1)
    negative = np.minimum(rows, 0).sum(axis=1)
    sums = bias.astype(np.int64)
    least = int((sums + positive * low + negative * high).min())
    most = int((sums + positive * high + negative * low).max())
    return shifted(least, most, requant, clip)
