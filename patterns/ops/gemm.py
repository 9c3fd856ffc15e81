"""Fully connected layers: matmul with a constant, bias, requantization, clip."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Dense, Gemm, Requant, Tensor, gemm_layer, matrix
from patterns.match import Match
from patterns.names import emit, tensor_name
from patterns.ops.conv import accumulator_bound
from patterns.ops.requantize import (
    int_constant,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
)
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

__all__ = [
    "dense",
    "dense_pattern",
    "dense_sums",
    "dense_sums_pattern",
    "read_dense",
    "read_linear",
    "vector_shape",
]


def dense(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    bias: Array,
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
    dtype: str = "int8",
) -> Var:
    """Write a fully connected layer of int8 or uint8 ``x`` (1, C) in the integer form.

    More than one row is possible: a product of matrices, ``linear`` instead of ``dense``.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 or uint8 (1, C), or (rows, C), or (1, rows, C).
        weight: int8 ``[K, C]`` or ``[K, C, 1, 1]``.
        bias: int32 ``[K]``, with the input's zero point already folded in.
        requant: to int8, output zero point included.
        clip: inclusive range of the output.
        name: of the operator.
        dtype: of the output.
    """
    biased = dense_sums(bb, x, weight, bias, name=name, last=False)
    bound = accumulator_bound(weight.reshape(weight.shape[0], -1), bias, dtype_of(x))
    return requantize(bb, biased, requant, clip, name, bound=bound, dtype=dtype)


def dense_sums(
    bb: BlockBuilder, x: Expr, weight: Array, bias: Array, *, name: str, last: bool = True
) -> Var:
    """Write a fully connected layer whose sums are not requantized, int32; arguments as above.

    ``last``: whether it is an operator of its own.
    """
    matrix = weight.reshape(weight.shape[0], -1)
    constant = relax.const(np.ascontiguousarray(matrix.T), "int8")
    acc = emit(bb, R.matmul(x, constant, out_dtype="int32"), name)
    return emit(bb, R.add(acc, int_constant(tuple(bias.tolist()))), name, last=last)


def dense_sums_pattern() -> Match:
    """The same, found again; slots ``x``, ``weight``, ``bias``, ``matmul``."""
    x, weight, bias = wildcard(), is_const(), is_const()
    matmul = is_op("relax.matmul")(x, weight)
    root = is_op("relax.add")(matmul, bias)
    return Match("linear_sums", root, {"x": x, "weight": weight, "bias": bias, "matmul": matmul})


def dense_pattern() -> Match:
    """A fully connected layer with any requantization; slots ``x``, ``weight``, ``bias`` ..."""
    x, weight, bias = wildcard(), is_const(), is_const()
    matmul = is_op("relax.matmul")(x, weight)
    root, slots = requantize_pattern(is_op("relax.add")(matmul, bias))
    return Match("dense", root, {"x": x, "weight": weight, "bias": bias, "matmul": matmul, **slots})


def read_dense(slots: Mapping[str, Expr]) -> Dense:
    """The layer of a match of `dense_pattern`, weight as ``[K, C, 1, 1]``.

    Raises:
        IntegerFormError: if the input is not (1, C).
    """
    matmul = slots["matmul"]
    name = tensor_name(matmul)
    vector_shape(matmul.args[0], name)
    matrix = slots["weight"].value.numpy()
    channels, k = matrix.shape
    return Dense(
        name=name,
        inputs=(Tensor(tensor_name(slots["x"]), (channels,), dtype_of(matmul.args[0]), "C"),),
        output=Tensor(name, (k,), dtype_of(slots["cast"]), "C"),
        weight=np.ascontiguousarray(matrix.T).reshape(k, channels, 1, 1),
        bias=slots["bias"].value.numpy().reshape(-1),
        requant=read_requantize(slots),
        clip=read_clip(slots),
    )


def read_linear(slots: Mapping[str, Expr]) -> Gemm:
    """The layer of a match of `dense_pattern` that has several rows: a product of matrices."""
    matmul = slots["matmul"]
    name, shape = tensor_name(matmul), shape_of(matmul.args[0])
    *rows, channels = shape
    return gemm_layer(
        name,
        matrix(tensor_name(slots["x"]), prod(rows), channels, dtype_of(matmul.args[0])),
        np.ascontiguousarray(slots["weight"].value.numpy().T),
        slots["bias"].value.numpy().reshape(-1),
        requant=read_requantize(slots),
        clip=read_clip(slots),
        dtype=dtype_of(slots["cast"]),
    )


def vector_shape(x: Expr, operator: str) -> tuple[int, ...]:
    """The shape (1, C) of what the fully connected ``operator`` reads.

    Raises:
        IntegerFormError: if it is of another shape.
    """
    shape = shape_of(x)
    if len(shape) != 2 or shape[0] != 1:
        raise IntegerFormError(
            f"the input of a fully connected layer has shape {shape}",
            where=f"operator '{operator}'",
            hint="reshape it to (1, C)",
        )
    return shape
