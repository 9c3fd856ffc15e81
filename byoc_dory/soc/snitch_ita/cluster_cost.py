"""Cycles of one tile on the cores: the core with most to do sets the pace."""

from __future__ import annotations

from math import ceil

from byoc_dory.geometry import ChannelTile, SpatialTile
from byoc_dory.layers import Add, Convolution, Dense, Gemm, Layer, Matmul, Rows, Weighted
from byoc_dory.layers.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RmsNorm, TableSoftmax
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores
from byoc_dory.soc.snitch_ita.cluster_packing import per_channel
from byoc_dory.soc.snitch_ita.cluster_work import (
    ConvolutionTile,
    Cycles,
    Work,
    convolution,
    elementwise,
    product,
    products,
    rowwise,
    slowest,
)
from byoc_dory.soc.snitch_ita.pipeline import Overheads, blocking_cycles
from byoc_dory.soc.snitch_ita.requant import leaves_32_bits, mul_shift
from byoc_dory.soc.snitch_ita.walk import Walk

__all__ = ["layer_cycles"]


def layer_cycles(layer: Layer, walk: Walk, core: ClusterCores, soc: Soc) -> int:
    """Predicted cycles of a layer: kernels, transfers, and what hides behind what."""
    assert soc.dma is not None
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=core.fork_cycles + core.tile_cycles,
        call=core.call_cycles,
    )
    more = _storing(layer, core)
    known: dict[tuple[int, ...], int] = {}  # tiles of the same sizes take as long

    def compute(tile: int) -> int:
        y, k = walk.at(tile)
        sizes = (y.out_size, y.in_size, y.pad, k.size)
        if sizes not in known:
            known[sizes] = _compute_cycles(layer, y, k, core, more)
        return known[sizes]

    return blocking_cycles(walk, soc.dma, overheads, compute)


def _compute_cycles(
    layer: Layer, y: SpatialTile, k: ChannelTile, core: ClusterCores, more: Cycles
) -> int:
    """Cycles of a tile, without the fork and join."""
    if isinstance(layer, Weighted | Matmul):
        works, cycles = _product(layer, y, k, core)
        works = tuple(
            {**work, **{flag: work.get("result", 0) for flag, _ in more}} for work in works
        )
        return ceil(slowest(works, (*cycles, *more)))
    elements = y.out_size * (layer.output.elements // max(1, layer.oy))
    if isinstance(layer, Add):
        works = elementwise(elements, core.cores, len(layer.inputs))
        return ceil(slowest(works, core.add))
    assert isinstance(layer, Rows)
    cycles = _row_function(layer, core)
    if cycles is core.map:
        return ceil(slowest(elementwise(elements, core.cores), cycles))
    return ceil(slowest(rowwise(y.out_size * layer.ox, layer.K, core.cores), cycles))


def _product(
    layer: Weighted | Matmul, y: SpatialTile, k: ChannelTile, core: ClusterCores
) -> tuple[tuple[Work, ...], Cycles]:
    if isinstance(layer, Gemm | Dense):
        return product(y.out_size, k.size, layer.C, core.cores), core.gemm
    if isinstance(layer, Matmul):
        batch, rows = (y.out_size, layer.rows) if layer.batch > 1 else (1, y.out_size)
        cycles = core.matmul_rows if layer.transposed else core.matmul
        return products(batch, rows, layer.K, layer.C, core.cores), cycles
    assert isinstance(layer, Convolution)
    tile = ConvolutionTile(
        layer.C,
        k.size,
        y.in_size,
        layer.ix,
        y.out_size,
        layer.ox,
        layer.fy,
        layer.fx,
        layer.stride,
        (y.pad, layer.pad[1]),
        depthwise=layer.depthwise,
    )
    return convolution(tile, core.cores), core.depthwise if tile.depthwise else core.conv2d


def _storing(layer: Layer, core: ClusterCores) -> Cycles:
    """What requantization takes for each result, beyond that of one scale in 32 bits."""
    requant, cycles = mul_shift(layer), dict(core.gemm)
    flags = []
    if requant is not None and leaves_32_bits(layer, requant):
        flags.append("wide")
    elif isinstance(layer, Weighted) and per_channel(layer):
        flags.append("per_channel")
    if isinstance(layer, Gemm) and layer.function is not None:
        flags.append("table")
    return tuple((flag, cycles[flag]) for flag in flags)


def _row_function(layer: Rows, core: ClusterCores) -> Cycles:
    match layer.function:
        case ItaSoftmax():
            return core.ita_softmax
        case TableSoftmax():
            return core.table_softmax
        case LayerNorm():
            return core.layer_norm
        case RmsNorm():
            return core.rms_norm
        case AffineNorm():
            return core.affine_norm
        case _:
            return core.map
