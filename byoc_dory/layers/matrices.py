"""Builders of layers of matrices: M rows of C elements are a tensor ``(C, M, 1)``, row by row."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.layers.attention import Attention, Scores
from byoc_dory.layers.layer import Layer
from byoc_dory.layers.requantization import Requant, Shift
from byoc_dory.layers.rowwise import RowFunction
from byoc_dory.layers.tensor import Array, Tensor

__all__ = ["attend_layer", "gemm_layer", "matmul_layer", "matrix", "mha_layer", "rows_layer"]

_INT8 = (-128, 127)


def matrix(name: str, rows: int, columns: int, dtype: str = "int8") -> Tensor:
    """A matrix as a tensor, row by row in memory."""
    return Tensor(name, (columns, rows, 1), dtype, "NHWC")


def gemm_layer(
    name: str,
    source: Tensor,
    weight: Array,
    bias: Array | None,
    *,
    requant: Requant,
    clip: tuple[int, int] = _INT8,
    function: RowFunction | None = None,
    transposed: bool = False,
    dtype: str = "int8",
) -> Layer:
    """``source`` (M rows of C) times ``weight`` ``[K, C]``; the layer names its result."""
    channels, rows, _ = source.shape
    k = weight.shape[0]
    output = matrix(name, k, rows, dtype) if transposed else matrix(name, rows, k, dtype)
    return Layer(
        name, "gemm", (source,), output, k, channels, rows, 1, rows, 1, 1, 1, (1, 1),
        (0, 0, 0, 0), weight.reshape(k, channels, 1, 1), bias, requant, clip,
        function=function, transposed=transposed,
    )  # fmt: skip


def matmul_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    *,
    requant: Requant,
    clip: tuple[int, int] = _INT8,
    transposed: bool = False,
    batch: int = 1,
    dtype: str = "int8",
) -> Layer:
    """``a`` (``batch`` matrices of M rows of C) times ``b``; ``transposed``: b has rows of C.

    Operands may be given as ``(columns, batch, rows)``, too.
    """
    channels = a.shape[0]
    height = a.elements // channels
    k = b.elements // channels // batch
    second = (channels, batch * k, 1) if transposed else (k, batch * channels, 1)
    return Layer(
        name, "matmul", (replace(a, shape=(channels, height, 1)), replace(b, shape=second)),
        matrix(name, height, k, dtype), k, channels, height, 1, height, 1, 1, 1, (1, 1),
        (0, 0, 0, 0), None, None, requant, clip, groups=batch, transposed=transposed,
    )  # fmt: skip


def rows_layer(name: str, source: Tensor, function: RowFunction, dtype: str = "int8") -> Layer:
    """``function`` of each row of ``source`` (M rows of K)."""
    k, rows, _ = source.shape
    return Layer(
        name, "rows", (source,), matrix(name, rows, k, dtype), k, k, rows, 1, rows, 1, 1, 1,
        (1, 1), (0, 0, 0, 0), None, None, Shift(0), _INT8, function=function,
    )  # fmt: skip


def mha_layer(name: str, source: Tensor, attention: Attention) -> Layer:
    """Multi-head attention of ``source`` (S rows of E)."""
    channels, rows, _ = source.shape
    k = attention.output[0].weight.shape[0]
    return Layer(
        name, "mha", (source,), matrix(name, rows, k), k, channels, rows, 1, rows, 1, 1, 1,
        (1, 1), (0, 0, 0, 0), None, None, Shift(0), _INT8, attention=attention,
    )  # fmt: skip


def attend_layer(name: str, query: Tensor, key: Tensor, value: Tensor, scores: Scores) -> Layer:
    """One head: query (M rows of P), key (N rows of P), value transposed (P rows of N)."""
    channels, rows, _ = query.shape
    k = value.shape[1]
    return Layer(
        name, "attend", (query, key, value), matrix(name, rows, k), k, channels, rows, 1, rows, 1,
        1, 1, (1, 1), (0, 0, 0, 0), None, None, Shift(0), _INT8, scores=scores,
    )  # fmt: skip
