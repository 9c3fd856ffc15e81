"""Multi-head attention as the layers that ITA and the cores execute.

Products and heads run on ITA.  If one output product takes all heads side by side, the products of
queries, keys and values do so, too, and the heads are computed in one layer.  If each head has its
own output product (as published for ITA), so has everything before it, and the cores add the int8
results.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import (
    Add,
    Attention,
    Gemm,
    Layer,
    MulShift,
    MultiHeadAttention,
    Projection,
    Tensor,
    attend_layer,
    gemm_layer,
    rows_layer,
)
from byoc_dory.layers.rowwise import TableMap


def heads_of(layer: MultiHeadAttention, ita: str, cores: str) -> tuple[tuple[Layer, str], ...]:
    """Return an ``mha`` layer's parts with their accelerators' names; the last has its output."""
    attention = layer.attention
    if attention.joined:
        return tuple((part, ita) for part in _joined(layer, attention))
    parts: list[tuple[Layer, str]] = []
    results = []
    for head in range(attention.heads):
        for part in _head(layer, attention, head):
            parts.append((part, ita))
        results.append(parts[-1][0].output)
    parts.append((_sum(layer, attention, results), cores))
    return tuple(parts)


def _joined(layer: Layer, attention: Attention) -> tuple[Layer, ...]:
    source = layer.inputs[0]
    query = _product(f"{layer.name}.query", source, _stacked(attention.query))
    key = _product(f"{layer.name}.key", source, _stacked(attention.key))
    value = _product(f"{layer.name}.value", source, _stacked(attention.value), transposed=True)
    context = attend_layer(
        f"{layer.name}.context",
        query.output,
        key.output,
        value.output,
        attention.scores,
        attention.heads,
    )
    output = _product(layer.name, context.output, attention.output[0])
    return query, key, value, context, replace(output, output=layer.output)


def _head(layer: Layer, attention: Attention, head: int) -> tuple[Layer, ...]:
    name, source = f"{layer.name}.head{head}", layer.inputs[0]
    query = _product(f"{name}.query", source, attention.query[head])
    key = _product(f"{name}.key", source, attention.key[head])
    value = _product(f"{name}.value", source, attention.value[head], transposed=True)
    context = attend_layer(
        f"{name}.context", query.output, key.output, value.output, attention.scores
    )
    output = _product(f"{name}.output", context.output, attention.output[head])
    return query, key, value, context, output


def _sum(layer: Layer, attention: Attention, results: list[Tensor]) -> Layer:
    assert attention.accumulate is not None
    mul, shift, add = attention.accumulate
    if len(results) == 1:
        values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        table = np.clip((values * mul + add) >> shift, -128, 127).astype(np.int8).view(np.uint8)
        only = rows_layer(layer.name, results[0], TableMap(table))
        return replace(only, output=layer.output)
    requant = MulShift((mul,), (shift,), (add,))
    return Add(name=layer.name, inputs=tuple(results), output=layer.output, requant=requant)


def _product(name: str, source: Tensor, product: Projection, transposed: bool = False) -> Gemm:
    requant = MulShift((product.mul,), (product.shift,), (product.add,))
    return gemm_layer(
        name, source, product.weight, product.bias, requant=requant, transposed=transposed
    )


def _stacked(products: tuple[Projection, ...]) -> Projection:
    first = products[0]
    return replace(
        first,
        weight=np.concatenate([product.weight for product in products]),
        bias=np.concatenate([product.bias for product in products]),
    )
