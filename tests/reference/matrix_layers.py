"""What a layer of matrices, or a sum, means: in plain numpy, without tiles.

An independent definition: it shares no code with the product.  The formulas stand with the
classes in `byoc_dory.layers`.  Arrays have the shapes of a layer's tensors,
``(columns, rows, 1)`` or ``(columns, B, rows)``; `stored` and `loaded` turn them into their bytes
and back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.layers import (
    Attend,
    Attention,
    Gemm,
    Layer,
    Matmul,
    MulShift,
    MultiHeadAttention,
    Projection,
    Rows,
    Scores,
    Shift,
    Tensor,
)
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaGelu,
    ItaSoftmax,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableMap,
    TableSoftmax,
)

Array = npt.NDArray[Any]

_INT8 = (-128, 127)


def evaluate(layer: Layer, inputs: Sequence[Array]) -> Array:
    """The result of a gemm, matmul, rows, add, attend or mha layer, in its output's shape and type.

    Raises:
        NotImplementedError: for other operators, and for requantizations other than `Shift` and
            `MulShift`.
    """
    wide = [values.astype(np.int64) for values in inputs]
    if layer.op == "add":
        result = _requantized(layer, sum(wide[1:], wide[0]), axis=0)
    elif layer.op in ("gemm", "rows", "mha", "attend"):
        result = _of_one_matrix(layer, [values[:, :, 0].T for values in wide])
    elif isinstance(layer, Matmul):
        a, b = (values[:, :, 0].T.reshape(layer.batch, -1, values.shape[0]) for values in wide)
        b = b.transpose(0, 2, 1) if layer.transposed else b
        sums = (a @ b).reshape(-1, layer.K)
        result = _requantized(layer, sums, axis=-1).T[:, :, None]
    else:
        raise NotImplementedError(layer.op)
    limits = np.iinfo(layer.output.dtype)
    assert limits.min <= result.min() and result.max() <= limits.max, "clip exceeds the type"
    assert result.shape == layer.output.shape
    return result.astype(layer.output.dtype)


def stored(values: Array) -> Array:
    """The bytes of a tensor of matrices, row by row (``NHWC``); uint8 [elements]."""
    rows = values if values.ndim == 1 else values.transpose(1, 2, 0)
    return np.asarray(rows, order="C").view(np.uint8).reshape(-1)


def loaded(image: Array, tensor: Tensor) -> Array:
    """The values of such bytes, in the tensor's shape and type."""
    flat = image.astype(np.uint8).view(tensor.dtype)
    if len(tensor.shape) == 1:
        return flat
    columns, y, x = tensor.shape
    return flat.reshape(y, x, columns).transpose(2, 0, 1)


def _of_one_matrix(layer: Layer, inputs: list[Array]) -> Array:
    """Layers whose tensors are single matrices; ``inputs`` have rows first."""
    if isinstance(layer, Gemm):
        rows = _gemm(layer, inputs[0])
    elif isinstance(layer, MultiHeadAttention):
        rows = attention(layer.attention, inputs[0])
    elif isinstance(layer, Attend):
        query, key, value = inputs
        rows = _head(layer.scores, query, key, value.T)
    else:
        assert isinstance(layer, Rows)
        rows = row_function(layer.function, inputs[0], layer.output.dtype)
    if isinstance(layer, Gemm) and layer.transposed:
        rows = rows.T
    return rows.T[:, :, None]


def _gemm(layer: Gemm, x: Array) -> Array:
    acc = x @ layer.weight[:, :, 0, 0].astype(np.int64).T
    if layer.bias is not None:
        acc = acc + layer.bias
    rows = _requantized(layer, acc, axis=-1)
    if layer.function is None:
        return rows
    return row_function(layer.function, rows, layer.output.dtype)


# ------------------------------------------------------------------------------ requantization


def _requantized(layer: Layer, acc: Array, axis: int) -> Array:
    """Of sums whose ``axis`` is that of the channels."""
    if isinstance(layer.requant, Shift):
        return np.clip(acc >> layer.requant.shift, *layer.clip)
    if not isinstance(layer.requant, MulShift):
        raise NotImplementedError(type(layer.requant).__name__)
    shape = [1] * acc.ndim
    shape[axis] = -1
    mul, add, shift = (
        np.asarray(values, np.int64).reshape(shape)
        for values in (layer.requant.mul, layer.requant.add, layer.requant.shift)
    )
    return np.clip((acc * mul + add) >> shift, *layer.clip)


def _scaled(acc: Array, factors: tuple[int, int, int]) -> Array:
    mul, shift, add = factors
    return np.clip((acc * mul + add) >> shift, *_INT8)


# ------------------------------------------------------------------------------ attention


def attention(heads: Attention, x: Array) -> Array:
    """Of one matrix, int64 (S, E)."""
    contexts = [
        _head(heads.scores, *(_product(part, x) for part in parts))
        for parts in zip(heads.query, heads.key, heads.value, strict=True)
    ]
    if heads.accumulate is None:
        return _product(heads.output[0], np.concatenate(contexts, axis=1))
    parts = [_product(part, o) for part, o in zip(heads.output, contexts, strict=True)]
    return _scaled(sum(parts[1:], parts[0]), heads.accumulate)


def _product(part: Projection, x: Array) -> Array:
    acc = x @ part.weight.astype(np.int64).T + part.bias
    return _scaled(acc, (part.mul, part.shift, part.add))


def _head(scores: Scores, query: Array, key: Array, value: Array) -> Array:
    """Context of one head: matrices of M, N and N rows."""
    probabilities = _ita_softmax(scores.softmax, _scaled(query @ key.T, scores.scores))
    return _scaled(probabilities @ value, scores.context)


# ------------------------------------------------------------------------------ functions of rows


def row_function(function: RowFunction, x: Array, dtype: str = "int8") -> Array:
    """``function`` of each row of x, int64 (M, n); ``dtype`` says how tables' bytes are meant."""
    if isinstance(function, ItaSoftmax):
        return _ita_softmax(function, x)
    if isinstance(function, (TableMap, ItaGelu)):
        return _mapped(function, x, dtype)
    return np.array([_of_row(function, [int(value) for value in row]) for row in x], np.int64)


def _of_row(function: RowFunction, x: list[int]) -> list[int]:
    """In Python's integers: they neither overflow nor round."""
    n = len(x)
    if isinstance(function, TableSoftmax):
        e = [function.exponentials[max(x) - value] for value in x]
        return [value * (function.levels - 1) // sum(e) for value in e]
    if isinstance(function, AffineNorm):
        triples = zip(x, function.weight.tolist(), function.bias.tolist(), strict=True)
        return [_clipped((v * w + b) * function.mul >> function.shift) for v, w, b in triples]
    if isinstance(function, RmsNorm):
        root = math.isqrt(sum(value * value for value in x) // n + 1)
        pairs = zip(x, function.weight.tolist(), strict=True)
        return [_clipped(_divided(v * w, root) >> function.shift) for v, w in pairs]
    assert isinstance(function, LayerNorm)
    mean = _divided(sum(x), n)
    root = math.isqrt(sum((value - mean) ** 2 for value in x) // n + 1)
    triples = zip(x, function.weight.tolist(), function.bias.tolist(), strict=True)
    return [_clipped(_divided((v - mean) * w, root) + b >> function.shift) for v, w, b in triples]


def _divided(value: int, by: int) -> int:
    """Rounded toward zero."""
    return value // by if value >= 0 else -(-value // by)


def _clipped(value: int) -> int:
    return min(max(value, -128), 127)


def _ita_softmax(function: ItaSoftmax, x: Array) -> Array:
    half = 2 ** (function.step_bits - 1) if function.step_bits else 0

    def halvings(distance: Array) -> Array:
        return np.minimum((distance + half) >> function.step_bits, 62)

    length = x.shape[1]
    width = function.group or length
    largest = np.full((len(x), 1), -128, np.int64)
    total = np.zeros((len(x), 1), np.int64)
    for start in range(0, length, width):
        group = x[:, start : start + width]
        now = np.maximum(largest, group.max(axis=1, keepdims=True))
        terms = 256 >> halvings(now - group)
        total = (total >> halvings(now - largest)) + terms.sum(axis=1, keepdims=True)
        largest = now
    return (function.numerator // total) >> halvings(largest - x)


def _mapped(function: TableMap | ItaGelu, x: Array, dtype: str) -> Array:
    if isinstance(function, TableMap):
        return function.table[x & 255].view(dtype).astype(np.int64)
    gelu = {value: _ita_gelu(function, value) for value in range(-128, 128)}
    return np.vectorize(gelu.__getitem__, otypes=[np.int64])(x)


def _ita_gelu(function: ItaGelu, x: int) -> int:
    x = max(x, -127)
    sign = (x > 0) - (x < 0)
    e = sign * ((min(abs(x), -function.b) + function.b) ** 2 + function.c)
    product = x * (e + function.c) * function.mul
    # Rounded half up: half of the last place is added before what is below it is cut off.
    rounded = (product * 2 + 2**function.shift) // 2 ** (function.shift + 1)
    return _clipped(rounded + function.add)
