"""What the cycles of a layer depend on besides its sizes, on the cores and on engines beside them.

Transformers have hundreds of products of few sizes: they would all be tiled anew if their weights
were part of the key under which tiles are shared.
"""

from __future__ import annotations

from collections.abc import Hashable

from byoc_dory.layers import Add, Layer, Matmul, Weighted
from byoc_dory.layers.value import sizes_of, value_of
from byoc_dory.soc.cluster.requant import leaves_32_bits, mul_shift


def numbers_that_count(layer: Layer) -> Hashable:
    """Return a key that is equal for layers with equal cycles; of most layers, everything.

    Products and sums read how results are scaled, and not by how much.
    """
    requant = mul_shift(layer)
    if requant is None or not isinstance(layer, Weighted | Matmul | Add):
        return value_of(layer)
    scales = tuple(map(len, (requant.mul, requant.shift, requant.add)))
    bias = isinstance(layer, Weighted) and layer.bias is not None
    wide = leaves_32_bits(layer, requant)
    return (sizes_of(layer), layer.clip, scales, bias, wide)
