"""Products with a constant matrix: matmul, bias, requantization, clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, Tensor, matrix
from byoc_dory.layers import Dense as DenseLayer
from byoc_dory.layers.matrices import gemm_layer
from patterns.names import emit
from patterns.op import INT8, Operands, Range, Scale, TensorType, operator
from patterns.ops.requantize import (
    Scaling,
    int_constant,
    read_clip,
    read_requantize,
)
from patterns.ops.scaling import zero_point_of
from patterns.ops.weighted import RequantizedOp, SummedOp
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layer


@dataclass(frozen=True, eq=False)
class _Product(SummedOp):
    """Base of products with and without requantization.

    Attributes:
        weight: int8 or int16 ``[K, C]``; ``[K, C, 1, 1]`` is accepted, too. Only hosts read int16.
    """

    operation = "relax.matmul"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Layers have ``[K, C, 1, 1]``.
        object.__setattr__(self, "weight", self.weight.reshape(len(self.weight), -1))

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        *rows, channels = inputs[0].shape
        if channels != self.weight.shape[1]:
            raise IntegerFormError(
                f"a matrix for {self.weight.shape[1]} channels, its input has {channels}"
            )
        return TensorType((*rows, len(self.weight)), "int32")

    def sums(self, bb: BlockBuilder, x: Expr, name: str, *, last: bool) -> Var:
        """See `SummedOp.sums`."""
        constant = relax.const(np.asarray(self.weight.T, order="C"), str(self.weight.dtype))
        acc = emit(bb, R.matmul(x, constant, out_dtype="int32"), name)
        return emit(bb, R.add(acc, int_constant(tuple(self.bias.tolist()))), name, last=last)


@dataclass(frozen=True, eq=False)
class _Requantized(RequantizedOp, _Product):
    """A product of int8 or uint8 rows with a constant matrix, requantized and clipped."""

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Dense | Linear:
        """See `ComposedOp.read`; with several rows it is a `Linear`."""
        return dense_of(
            shape_of(slots["product"])[:-1],
            *_constants(slots),
            read_requantize(slots),
            read_clip(slots),
            dtype_of(slots["cast"]),
        )


def _constants(slots: Mapping[str, Expr]) -> tuple[Array, Array]:
    """Return weight and bias."""
    weight = np.asarray(slots["weight"].value.numpy().T, order="C")
    return weight, slots["bias"].value.numpy().reshape(-1)


@operator
@dataclass(frozen=True, eq=False)
class Dense(_Requantized):
    """A fully connected layer with one row, (1, C)."""

    kind = "dense"
    scale = Scale.FREE

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

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> LinearSums:
        return cls(*_constants(slots))
