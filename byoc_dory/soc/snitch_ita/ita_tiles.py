"""Tiles of a layer on ITA: the tiling problem, packed weights, and the places of everything.

The sizes of ITA's matrices are multiples of 64.  Other sizes are padded in L1: rows of an operand
are loaded to rows of a multiple of 64 bytes, weights have zeros there, and results for the padding
are not stored.  A layer with padding reads and writes its tensors in L2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_dory.layers import Array, Attend, Gemm, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.tiling.problem import (
    Axis,
    FixedBytes,
    InputWindow,
    Rounding,
    TileWeights,
    TilingProblem,
)


def aligned(core: Ita, layer: Layer) -> bool:
    """Whether nothing of the layer is padded."""
    sizes = [layer.oy, layer.K, layer.C]
    if isinstance(layer, Attend):
        sizes = [layer.oy, layer.head_size, layer.keys]
    return all(size % core.tile == 0 for size in sizes)


def tiling_problem(soc: Soc, core: Ita, layer: Layer, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1, with the limit.

    Products are tiled by rows and columns; a transposed result has rows where others have columns.
    Attention is tiled by queries; keys and values are in L1 as a whole.
    """
    whole = aligned(core, layer)
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size),
        "inputs_once": True,
        "x": Axis(1, tiled=False),
        "window": InputWindow(layer.oy, 1),
        "rounding": Rounding(k=core.tile, c=core.tile, y=core.tile),
        "may_find": whole,
        "may_stay": whole,
    }
    channels = Axis(layer.C, tiled=False)
    if isinstance(layer, Attend):
        keys = round_up(layer.keys, core.tile)
        each = keys * round_up(layer.K, core.tile)
        return TilingProblem(
            k=Axis(layer.K, tiled=False),
            c=channels,
            y=Axis(layer.oy, step=core.tile),
            weights=TileWeights(in_l1=True),
            fixed=FixedBytes((each, each), scratch=core.tile * keys),
            **common,
        )
    return TilingProblem(
        k=Axis(layer.K, step=core.tile),
        c=channels,
        y=Axis(layer.oy, tiled=not _transposed(layer), step=core.tile),
        weights=TileWeights(
            block=core.tile * (round_up(layer.C, core.tile) + core.bias_bytes), in_l1=True
        ),
        **common,
    )


def _transposed(layer: Layer) -> bool:
    """Whether the result is stored column by column."""
    return isinstance(layer, Gemm) and layer.transposed


def block_bytes(core: Ita, layer: Gemm, tile_k: int) -> int:
    """Return the bytes of the packed weights and biases of ``tile_k`` columns."""
    return round_up(tile_k, core.tile) * (round_up(layer.C, core.tile) + core.bias_bytes)


def bias_at(core: Ita, layer: Layer, tile_k: int) -> int:
    """Return the byte offset of the biases in a block: after the weights."""
    return round_up(tile_k, core.tile) * round_up(layer.C, core.tile)


def pack(core: Ita, layer: Gemm, tile_k: int) -> Array:
    """Weights ``[k][c]`` and 24-bit biases in blocks of ``tile_k`` columns, padded; uint8."""
    columns, channels = round_up(tile_k, core.tile), round_up(layer.C, core.tile)
    blocks = []
    for start in range(0, layer.K, tile_k):
        size = min(tile_k, layer.K - start)
        weights = np.zeros((columns, channels), np.int8)
        weights[:size, : layer.C] = layer.weight[start : start + size, :, 0, 0]
        biases = np.zeros(columns, "<i4")
        if layer.bias is not None:
            biases[:size] = layer.bias[start : start + size]
        blocks.append(weights.view(np.uint8).reshape(-1))
        blocks.append(biases.view(np.uint8).reshape(-1, 4)[:, : core.bias_bytes].reshape(-1))
    return np.concatenate(blocks)
