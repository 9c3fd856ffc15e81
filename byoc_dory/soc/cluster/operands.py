"""The operands and results of layers on the cores that are no convolutions."""

from __future__ import annotations

from byoc_dory.layers import CachedAttention, Gemm, Layer, Matmul, Weighted
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import round_up
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.rows import RowsOf, matrix_result
from byoc_dory.soc.cluster.tiles import (
    block_bytes,
    in_columns,
    scratch_bytes,
    units_of,
    whole_operands,
)
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.program import BlockOf, Operand


def result_of_rows(
    core: ClusterCores, layer: Layer, plan: LayerPlan, y: TileAxis, k: TileAxis
) -> Operand:
    """Return the result of a layer that is no convolution."""
    units, tile = y.size, plan.solution.tile
    per_y = layer.ox if isinstance(layer, Weighted) else 1
    transposed = isinstance(layer, Gemm) and layer.transposed
    return matrix_result(
        plan,
        y,
        k,
        per_y=per_y,
        row_bytes=units if transposed else k.size,
        pitch=tile.y if transposed else k.out_size if in_columns(core, layer) else tile.k,
        buffer=max(span.out_size for span in y.spans) * per_y * tile.k,
        transposed=transposed,
    )


def scratch_place(core: ClusterCores, layer: Layer, plan: LayerPlan) -> int | None:
    """Return the byte offset in L1 of the kernel's scratch memory, behind the constants."""
    if not scratch_bytes(core, layer):
        return None
    tile_k = plan.solution.tile.k
    copies = min(plan.buffers, -(-layer.K // tile_k))
    if in_columns(core, layer):
        return plan.l1_weights + round_up(copies * layer.C * tile_k, 4)
    if not isinstance(layer, Weighted):
        return plan.l1_weights + block_bytes(core, layer, 0)
    return plan.l1_weights + copies * block_bytes(core, layer, tile_k)


def operands_of(
    core: ClusterCores, layer: Layer, plan: LayerPlan, y: TileAxis, k: TileAxis
) -> tuple[Operand, ...]:
    """Return the operands of a layer that is no convolution, its constants excepted."""
    units, in_unit, _ = units_of(layer)
    most_rows = max(span.in_size for span in y.spans)
    found = []
    for number, name in enumerate(_names(layer)):
        if number == 1 and in_columns(core, layer):
            assert isinstance(layer, Matmul)
            found.append(_columns(layer, plan, k))
            continue
        whole = number in whole_operands(core, layer)
        size = layer.inputs[number].elements if whole else in_unit
        if isinstance(layer, Matmul) and number == 1 and not whole:
            size = layer.C * layer.K
        rows = RowsOf(
            rows=1 if whole else units,
            row_bytes=size,
            pitch=size,
            buffer=size if whole else most_rows * size,
            whole=whole,
        )
        found.append(rows.operand(name, y, plan, number))
    return tuple(found)


def _columns(layer: Matmul, plan: LayerPlan, k: TileAxis) -> Operand:
    """Return the second operand of a product in ranges of its columns, without gaps in L1."""
    offset, block = k.out_start * layer.C, BlockOf.run(k.out_size * layer.C)
    if not layer.transposed:
        offset, block = k.out_start, BlockOf.of_rows(layer.C, k.out_size, layer.K, k.out_size)
    size, title = layer.C * k.step, "columns of second"
    return Operand("second", offset, block, plan.l1_weights, size, plan.buffers, title=title)


def _names(layer: Layer) -> tuple[str, ...]:
    """Return the operands' names in C."""
    if isinstance(layer, Matmul):
        return ("in", "second")
    if isinstance(layer, CachedAttention):
        return ("keys", "values", "query", "mask", "key", "value")[: layer.operands]
    if len(layer.inputs) == 1:
        return ("in",)
    return tuple(f"in{number}" for number in range(len(layer.inputs)))
