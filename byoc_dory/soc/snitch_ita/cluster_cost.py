"""Cycles of one tile on the cores: the core with most to do sets the pace."""

from __future__ import annotations

from byoc_dory.geometry import ChannelTile, SpatialTile
from byoc_dory.layer import Layer
from byoc_dory.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RmsNorm, TableSoftmax
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores
from byoc_dory.soc.snitch_ita.cluster_tiles import matrices
from byoc_dory.soc.snitch_ita.pipeline import Overheads, blocking_cycles
from byoc_dory.soc.snitch_ita.walk import Walk

__all__ = ["compute_cycles", "layer_cycles"]


def layer_cycles(layer: Layer, walk: Walk, core: ClusterCores, soc: Soc) -> int:
    """Predicted cycles of a layer: kernels, transfers, and what hides behind what."""
    assert soc.dma is not None
    overheads = Overheads(core.order_cycles, core.wait_cycles, core.fork_cycles, core.call_cycles)
    return blocking_cycles(
        walk, soc.dma, overheads, lambda tile: compute_cycles(layer, *walk.at(tile), core)
    )


def compute_cycles(layer: Layer, y: SpatialTile, k: ChannelTile, core: ClusterCores) -> int:
    """Cycles of a tile, without the fork and join."""
    if layer.op in ("gemm", "dense"):
        rows = y.out_size
        return _shared(rows, k.size, layer.C * core.gemm_mac, core.gemm_row, core)
    if layer.op == "matmul":
        batch, m = matrices(layer)
        rows = y.out_size * m if batch > 1 else y.out_size
        return _shared(rows, layer.K, layer.C * core.matmul_mac, core.matmul_row, core)
    if layer.op in ("conv2d", "depthwise"):
        taps = layer.fy * layer.fx
        rows = y.out_size * layer.ox
        if layer.op == "conv2d":
            return _shared(rows, k.size, taps * layer.C * core.conv_mac, core.conv_row, core)
        return _shared(rows, k.size, taps * core.depthwise_mac, core.depthwise_row, core)
    rows = y.out_size
    if layer.op == "add":
        each = len(layer.inputs) * core.add_element + core.add_result
        share = -(-rows * layer.output.elements // max(1, layer.oy) // core.cores)
        return -(-share * each // 100)
    element, row = _row_function(layer, core)
    shares = -(-rows // core.cores)
    return -(-shares * (row + layer.K * element) // 100)


def _shared(rows: int, columns: int, per_column: int, per_row: int, core: ClusterCores) -> int:
    if rows >= core.cores:
        share, width = -(-rows // core.cores), columns
    else:
        share, width = rows, -(-columns // core.cores)
    return -(-share * (per_row + width * per_column) // 100)


def _row_function(layer: Layer, core: ClusterCores) -> tuple[int, int]:
    """Hundredths of a cycle for each element, and for each row."""
    function = layer.function
    if isinstance(function, ItaSoftmax):
        return core.softmax_element, core.softmax_row
    if isinstance(function, TableSoftmax):
        return core.table_softmax_element, core.table_softmax_row
    if isinstance(function, LayerNorm):
        return core.layer_norm_element, core.layer_norm_row
    if isinstance(function, RmsNorm):
        return core.rms_norm_element, core.rms_norm_row
    if isinstance(function, AffineNorm):
        return core.affine_norm_element, core.affine_norm_row
    return core.map_element, 0
