"""Products with a constant matrix: matmul, bias, requantization, clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, Shift, Tensor, matrix
from byoc_dory.layers import Dense as DenseLayer
from byoc_dory.layers.matrices import gemm_layer
from patterns.names import emit
from patterns.op import INT8, Operands, Range, Scale, TensorType, operator
from patterns.ops.requantize import (
    Scaling,
    check_int32,
    check_requantization,
    int_constant,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
)
from patterns.ops.scaling import requantized, zero_point_of
from patterns.ops.weighted import WeightedOp, accumulator_bound, weighted_range
from patterns.primitive import dtype_of, shape_of
from patterns.relax_op import Match

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layer


@dataclass(frozen=True, eq=False)
class _Product(WeightedOp):
    """Base of products with and without requantization.

    Attributes:
        weight: int8 or int16 ``[K, C]``; ``[K, C, 1, 1]`` is accepted, too. Only hosts read int16.
        bias: int32 ``[K]``, with the input's zero point folded in.
    """

    bias: Array

    def __post_init__(self) -> None:
        # Layers have ``[K, C, 1, 1]``.
        object.__setattr__(self, "weight", self.weight.reshape(len(self.weight), -1))
        object.__setattr__(self, "bias", check_int32(self.bias))

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        *rows, channels = inputs[0].shape
        if channels != self.weight.shape[1]:
            raise IntegerFormError(
                f"a matrix for {self.weight.shape[1]} channels, its input has {channels}"
            )
        return TensorType((*rows, len(self.weight)), "int32")

    def sums(self, bb: BlockBuilder, x: Expr, name: str, *, last: bool) -> Var:
        """Write the int32 sums; ``last``: whether they are the operator's result."""
        constant = relax.const(np.asarray(self.weight.T, order="C"), str(self.weight.dtype))
        acc = emit(bb, R.matmul(x, constant, out_dtype="int32"), name)
        return emit(bb, R.add(acc, int_constant(tuple(self.bias.tolist()))), name, last=last)


@dataclass(frozen=True, eq=False)
class _Requantized(_Product):
    """A product of int8 or uint8 rows with a constant matrix, requantized and clipped.

    Attributes:
        requant: requantization of the sums, including the output's zero point.
        clip: inclusive range of the output.
        dtype: type of the output.
    """

    requant: Scaling
    clip: Range = INT8
    dtype: str = "int8"

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        check_requantization(self.requant)
        return replace(super().result_of(inputs), dtype=self.dtype)

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        bound = accumulator_bound(self.weight, self.bias, dtype_of(inputs[0]))
        sums = self.sums(bb, inputs[0], name, last=False)
        return requantize(bb, sums, self.requant, self.clip, name, bound=bound, dtype=self.dtype)

    def compute(self, inputs: Sequence[Array], pad: int = 0) -> Array:
        """See `WeightedOp.compute`."""
        sums = self.accumulate(inputs[0], pad).astype(np.int64) + self.bias
        return requantized(sums, self.requant, self.clip, self.dtype)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: weights and bias bound the sums of a right shift."""
        if not isinstance(self.requant, Shift):
            return self.clip
        return weighted_range(self.weight, self.bias, inputs[0], False, self.requant, self.clip)


@operator
@dataclass(frozen=True, eq=False)
class Dense(_Requantized):
    """A fully connected layer with one row, (1, C)."""

    kind = "dense"
    scale = Scale.FREE

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; slots ``x``, ``weight``, ``bias``, ``matmul`` and the
        requantization's."""
        x, weight, bias = wildcard(), is_const(), is_const()
        matmul = is_op("relax.matmul")(x, weight)
        root, slots = requantize_pattern(is_op("relax.add")(matmul, bias))
        own = {"x": x, "weight": weight, "bias": bias, "matmul": matmul}
        return (Match(cls.kind, root, {**own, **slots}),)

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Dense | Linear:
        """See `ComposedOp.read`; with several rows it is a `Linear`."""
        return dense_of(
            shape_of(slots["matmul"])[:-1],
            np.asarray(slots["weight"].value.numpy().T, order="C"),
            slots["bias"].value.numpy().reshape(-1),
            read_requantize(slots),
            read_clip(slots),
            dtype_of(slots["cast"]),
        )

    def layer(self, name: str, inputs: Operands, output: TensorType) -> DenseLayer:
        """See `Op.layer`; its weight is ``[K, C, 1, 1]``."""
        ((source, kind),) = inputs
        k, channels = self.weight.shape
        return DenseLayer(
            name=name,
            inputs=(Tensor(source, vector(kind)[1:], kind.dtype, "C"),),
            output=Tensor(name, (k,), output.dtype, "C"),
            weight=self.weight.reshape(k, channels, 1, 1),
            bias=self.bias,
            requant=self.requant,
            clip=self.clip,
        )


def vector(kind: TensorType) -> tuple[int, ...]:
    """Return the shape (1, C) of a fully connected layer's input.

    Raises:
        IntegerFormError: it has another shape.
    """
    if len(kind.shape) != 2 or kind.shape[0] != 1:
        raise IntegerFormError(
            f"the input of a fully connected layer has shape {kind.shape}",
            hint="reshape it to (1, C)",
        )
    return kind.shape


@operator
@dataclass(frozen=True, eq=False)
class Linear(_Requantized):
    """A product of several rows, (rows, C) or (1, rows, C), with a constant matrix."""

    kind = "linear"
    form = Dense

    @property
    def zero_point(self) -> int | None:
        return zero_point_of(self.requant)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`: it has the form of `Dense`."""
        return ()

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Dense | Linear:
        return Dense.read(slots)

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Layer:
        """See `Op.layer`: a product of matrices."""
        ((source, kind),) = inputs
        *rows, channels = kind.shape
        return gemm_layer(
            name,
            matrix(source, prod(rows), channels, kind.dtype),
            self.weight,
            self.bias,
            requant=self.requant,
            clip=self.clip,
            dtype=output.dtype,
        )


def dense_of(
    rows: tuple[int, ...],
    weight: Array,
    bias: Array,
    requant: Scaling,
    clip: Range = INT8,
    dtype: str = "int8",
) -> Dense | Linear:
    """Return the product with these fields, a `Dense` if its leading axes ``rows`` are (1,)."""
    return (Dense if rows == (1,) else Linear)(weight, bias, requant, clip, dtype)


@operator
@dataclass(frozen=True, eq=False)
class LinearSums(_Product):
    """A product with a constant matrix and int32 sums that are not requantized."""

    kind = "linear_sums"

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        return self.sums(bb, inputs[0], name, last=True)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; slots ``x``, ``weight``, ``bias``, ``matmul``."""
        x, weight, bias = wildcard(), is_const(), is_const()
        matmul = is_op("relax.matmul")(x, weight)
        root = is_op("relax.add")(matmul, bias)
        return (Match(cls.kind, root, {"x": x, "weight": weight, "bias": bias, "matmul": matmul}),)

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> LinearSums:
        weight = np.asarray(slots["weight"].value.numpy().T, order="C")
        return cls(weight, slots["bias"].value.numpy().reshape(-1))
