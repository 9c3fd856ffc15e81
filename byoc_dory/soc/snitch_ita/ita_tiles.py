"""Tiles of a layer on ITA: the tiling problem, packed weights, and where everything lies.

ITA's matrices have sizes in multiples of 64.  What has others is padded in L1: rows of an operand
are loaded to rows of a multiple of 64 bytes, weights have zeros there, and what is computed of
padding is not stored.  A layer with padding reads and leaves its tensors in L2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_dory.geometry import channel_tiles, spatial_tiles
from byoc_dory.layers import Attend, Gemm, Layer
from byoc_dory.layers.tensor import Array
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.walk import Operand, Result, Walk, Weights
from byoc_dory.tiling.problem import Axis, TilingProblem

__all__ = ["aligned", "bias_at", "operand_names", "pack", "tiling_problem", "walk_of"]


def aligned(layer: Layer, core: Ita) -> bool:
    """Whether nothing of the layer is padded."""
    sizes = [layer.oy, layer.K, layer.C]
    if isinstance(layer, Attend):
        sizes = [layer.oy, layer.head_size, layer.keys]
    return all(size % core.tile == 0 for size in sizes)


def tiling_problem(layer: Layer, core: Ita, soc: Soc, l1_budget: int) -> TilingProblem:
    """What a tile of this layer needs of L1.

    Of a product, ranges of rows and of columns; a transposed result has its rows where another has
    columns.  Of attention, ranges of queries; keys and values are there as a whole.
    """
    whole = aligned(layer, core)
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size),
        "weight_limit": 0,
        "weights_in_l1": True,
        "inputs_once": True,
        "x": Axis(1, tiled=False),
        "iy": layer.oy,
        "ix": 1,
        "fy": 1,
        "fx": 1,
        "stride": (1, 1),
        "round_k": core.tile,
        "round_c": core.tile,
        "round_y": core.tile,
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
            whole_operands=(each, each),
            scratch=core.tile * keys,
            **common,
        )
    return TilingProblem(
        k=Axis(layer.K, step=core.tile),
        c=channels,
        y=Axis(layer.oy, tiled=not _transposed(layer), step=core.tile),
        weight_channel=0,
        weight_block=core.tile * (round_up(layer.C, core.tile) + core.bias_bytes),
        **common,
    )


def operand_names(layer: Layer) -> tuple[str, ...]:
    """Names of the operands in C."""
    return ("query", "key", "value") if isinstance(layer, Attend) else ("in",)


def walk_of(layer: Layer, plan: LayerPlan, core: Ita) -> Walk:
    """The tiles of a layer under a plan."""
    tile = plan.solution.tile
    y_tiles = spatial_tiles(layer.oy, tile.y, layer.oy, 1, 1, 0, 1)
    k_tiles = channel_tiles(layer.K, tile.k)
    tiles = len(y_tiles) * len(k_tiles)
    rows, columns = round_up(tile.y, core.tile), round_up(tile.k, core.tile)
    operands = []
    for number, (name, tensor) in enumerate(zip(operand_names(layer), layer.inputs, strict=True)):
        width, height, _ = tensor.shape
        whole = number > 0
        pitch = round_up(width, core.tile)
        held = round_up(height, core.tile) if whole else rows
        operands.append(
            Operand(
                name=name,
                whole=whole,
                resident=plan.resident_inputs[number],
                place=plan.l1_inputs[number],
                rows=height,
                row_bytes=width,
                pitch=pitch,
                buffer=held * pitch,
                buffers=1 if whole else min(plan.input_buffers or plan.buffers, len(y_tiles)),
            )
        )
    transposed = _transposed(layer)
    weights = None
    if isinstance(layer, Gemm):
        block = columns * (round_up(layer.C, core.tile) + core.bias_bytes)
        weights = Weights(plan.l1_weights, block, min(plan.buffers, len(k_tiles)))
    return Walk(
        y_tiles=y_tiles,
        k_tiles=k_tiles,
        per_y=1,
        operands=tuple(operands),
        weights=weights,
        result=Result(
            resident=plan.resident_output,
            place=plan.l1_output,
            row_bytes=layer.oy if transposed else layer.K,
            pitch=rows if transposed else columns,
            buffer=rows * columns,
            buffers=min(plan.buffers, tiles),
            transposed=transposed,
        ),
        scratch=plan.l1_weights,
        double=plan.buffers > 1,
    )


def _transposed(layer: Layer) -> bool:
    """Whether the result is stored column by column."""
    return isinstance(layer, Gemm) and layer.transposed


def bias_at(layer: Layer, tile_k: int, core: Ita) -> int:
    """Byte offset of the biases in a block: behind the weights."""
    return round_up(tile_k, core.tile) * round_up(layer.C, core.tile)


def pack(layer: Gemm, tile_k: int, core: Ita) -> Array:
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
