"""Tiles of a layer on the cores: the tiling problem, and where everything lies under a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byoc_dory.geometry import SpatialTile, channel_tiles, spatial_tiles
from byoc_dory.layers import Convolution, Gemm, Layer, Matmul, Rows, Weighted
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores
from byoc_dory.soc.snitch_ita.cluster_packing import BLOCK_ALIGN, block_of, function_bytes
from byoc_dory.soc.snitch_ita.walk import Operand, Result, Walk, Weights
from byoc_dory.tiling.problem import Axis, TilingProblem

__all__ = ["operand_names", "tiling_problem", "walk_of"]

_COLUMN_STEP = 4  # outputs that a kernel computes side by side


def _units(layer: Layer) -> tuple[int, int, int]:
    """(units of y, bytes of one in an operand, in the result), where tiles are ranges of units."""
    if isinstance(layer, Matmul) and layer.batch > 1:
        return layer.batch, layer.rows * layer.C, layer.rows * layer.K
    return layer.oy, layer.ix * layer.C, layer.ox * layer.K


def tiling_problem(layer: Layer, core: ClusterCores, soc: Soc, l1_budget: int) -> TilingProblem:
    """What a tile of this layer needs of L1: ranges of rows, and of columns where weights have
    them."""
    units, in_unit, out_unit = _units(layer)
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size),
        "weight_limit": 0,
        "weights_in_l1": True,
        # Nothing is padded, but every tensor begins aligned.
        "slack": ALIGNMENT * (len(layer.inputs) + 2),
    }
    if not isinstance(layer, Weighted):
        whole: tuple[int, ...] = ()
        if isinstance(layer, Matmul):
            whole = (layer.inputs[1].elements,)
        return TilingProblem(
            k=Axis(out_unit, tiled=False),
            c=Axis(in_unit, tiled=False),
            y=Axis(units),
            x=Axis(1, tiled=False),
            iy=units,
            ix=1,
            fy=1,
            fx=1,
            stride=(1, 1),
            copies=len(layer.inputs) - len(whole),
            whole_operands=whole,
            weight_fixed=_block_bytes(layer, 0),
            **common,
        )
    one, two = block_of(layer, 4), block_of(layer, 8)
    each = layer.weight[0].size
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    # Everything of a column that is not its weights; what does not grow with columns, and the slack
    # of alignments, once.
    per_column = -(-(two.bytes - one.bytes) // 4) - each + BLOCK_ALIGN // 4
    table = 256 if isinstance(layer, Gemm) and layer.function is not None else 0
    return TilingProblem(
        k=Axis(layer.K, tiled=not depthwise, step=_COLUMN_STEP),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, tiled=False),
        iy=layer.iy,
        ix=layer.ix,
        fy=layer.fy,
        fx=layer.fx,
        stride=layer.stride,
        weight_channel=0 if depthwise else layer.fy * layer.fx,
        weight_block=per_column + (each if depthwise else 0),
        weight_fixed=table + 2 * BLOCK_ALIGN,
        **common,
    )


def operand_names(layer: Layer) -> tuple[str, ...]:
    """Names of the operands in C."""
    if isinstance(layer, Matmul):
        return ("in", "second")
    if len(layer.inputs) == 1:
        return ("in",)
    return tuple(f"in{number}" for number in range(len(layer.inputs)))


def walk_of(layer: Layer, plan: LayerPlan) -> Walk:
    """The tiles of a layer under a plan."""
    tile = plan.solution.tile
    units, _, out_unit = _units(layer)
    rows = layer.iy if isinstance(layer, Convolution) else units
    y_tiles = spatial_tiles(units, tile.y, rows, layer.fy, layer.stride[0], layer.pad[0], 1)
    has_columns = isinstance(layer, Weighted)
    transposed = isinstance(layer, Gemm) and layer.transposed
    width = layer.K if has_columns else out_unit
    k_tiles = channel_tiles(width, tile.k)
    tiles = len(y_tiles) * len(k_tiles)
    block = _block_bytes(layer, tile.k)
    buffers = min(plan.buffers, len(k_tiles))
    per_y = layer.ox if has_columns else 1
    return Walk(
        y_tiles=y_tiles,
        k_tiles=k_tiles,
        per_y=per_y,
        operands=_operands(layer, plan, y_tiles),
        weights=Weights(plan.l1_weights, block, buffers) if block else None,
        result=Result(
            resident=plan.resident_output,
            place=plan.l1_output,
            row_bytes=units if transposed else width,
            pitch=tile.y if transposed else tile.k,
            buffer=max(y.out_size for y in y_tiles) * per_y * tile.k,
            buffers=min(plan.buffers, tiles),
            transposed=transposed,
        ),
        scratch=plan.l1_weights + buffers * block,
        double=plan.buffers > 1,
    )


def _operands(layer: Layer, plan: LayerPlan, y_tiles: Sequence[SpatialTile]) -> tuple[Operand, ...]:
    units, in_unit, _ = _units(layer)
    most_rows = max(y.in_size for y in y_tiles)
    operands = []
    for number, name in enumerate(operand_names(layer)):
        whole = isinstance(layer, Matmul) and number == 1
        size = layer.inputs[number].elements if whole else most_rows * in_unit
        operands.append(
            Operand(
                name=name,
                whole=whole,
                resident=plan.resident_inputs[number],
                place=plan.l1_inputs[number],
                rows=1 if whole else (layer.iy if isinstance(layer, Convolution) else units),
                row_bytes=size if whole else in_unit,
                pitch=size if whole else in_unit,
                buffer=size,
                buffers=1 if whole else min(plan.buffers, len(y_tiles)),
            )
        )
    return tuple(operands)


def _block_bytes(layer: Layer, k: int) -> int:
    if isinstance(layer, Weighted):
        return block_of(layer, k).bytes
    return function_bytes(layer.function) if isinstance(layer, Rows) else 0
