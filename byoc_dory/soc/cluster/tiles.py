"""Tiling problems for the compute cores: use of L1."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from byoc_dory.layers import Convolution, Gemm, Layer, Matmul, Weighted
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.packing import BLOCK_ALIGN, block_of, constants_of
from byoc_dory.soc.cluster.records import conv2d_scratch, depthwise_scratch, matmul_scratch
from byoc_dory.tiling.problem import Axis, FixedBytes, InputWindow, TileWeights, TilingProblem
from byoc_dory.tiling.shortage import shortage_of

__all__ = ["block_bytes", "scratch_bytes", "tiling_problem", "units_of", "working"]

_COLUMN_STEP = 4  # number of outputs that a kernel computes side by side
_BEHIND = 4  # bytes behind an operand that kernels for SIMD may read


def units_of(layer: Layer) -> tuple[int, int, int]:
    """(units of y, bytes of a unit in an operand, in the result); tiles are ranges of units."""
    if isinstance(layer, Matmul) and layer.batch > 1:
        return layer.batch, layer.rows * layer.C, layer.rows * layer.K
    return layer.oy, layer.ix * layer.C, layer.ox * layer.K


@lru_cache(maxsize=1024)
def working(layer: Layer, core: ClusterCores, soc: Soc, l1_budget: int) -> ClusterCores:
    """Return the cores that compute a layer: as many as have scratch memory, if L1 is small.

    The number is ``core.cores``, or the largest power of two for which the smallest tile fits.
    """
    number = core.cores
    while number > 1 and scratch_bytes(layer, core):
        few = replace(core, cores=number)
        if shortage_of(tiling_problem(layer, few, soc, l1_budget)) is None:
            return few
        number = 1 << (number - 1).bit_length() - 1
    return replace(core, cores=number)


def tiling_problem(layer: Layer, core: ClusterCores, soc: Soc, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1: ranges of rows, and of columns where weights have columns.

    ``core`` is of the `working` cores.
    """
    units, in_unit, out_unit = units_of(layer)
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size - (_BEHIND if core.simd else 0)),
    }
    # Nothing is padded, but every tensor starts aligned.
    slack = ALIGNMENT * (len(layer.inputs) + 2)
    if not isinstance(layer, Weighted):
        whole: tuple[int, ...] = ()
        if isinstance(layer, Matmul):
            whole = (layer.inputs[1].elements,)
        return TilingProblem(
            k=Axis(out_unit, tiled=False),
            c=Axis(in_unit, tiled=False),
            y=Axis(units),
            x=Axis(1, tiled=False),
            window=InputWindow(units, 1),
            copies=len(layer.inputs) - len(whole),
            weights=TileWeights(fixed=block_bytes(layer, 0, core), in_l1=True),
            fixed=FixedBytes(whole, scratch=scratch_bytes(layer, core), slack=slack),
            **common,
        )
    one, two = (block_of(layer, k, simd=core.simd) for k in (4, 8))
    each = layer.weight[0].size
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    # The bytes per column besides its weights; then those that do not depend on columns, and the
    # slack of alignments, once.
    per_column = -(-(two.bytes - one.bytes) // 4) - each + BLOCK_ALIGN // 4
    table = 256 if isinstance(layer, Gemm) and layer.function is not None else 0
    return TilingProblem(
        k=Axis(layer.K, tiled=not depthwise, step=_COLUMN_STEP),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, tiled=False),
        window=InputWindow(layer.iy, layer.ix, layer.fy, layer.fx, layer.stride),
        weights=TileWeights(
            channel=0 if depthwise else layer.fy * layer.fx,
            block=per_column + (each if depthwise else 0),
            fixed=table + 2 * BLOCK_ALIGN,
            in_l1=True,
        ),
        fixed=FixedBytes(scratch=scratch_bytes(layer, core), slack=slack),
        **common,
    )


def scratch_bytes(layer: Layer, core: ClusterCores) -> int:
    """Return the bytes of scratch memory that the layer's kernel needs, of all cores together."""
    if not core.simd:
        return 0
    if isinstance(layer, Convolution) and layer.depthwise:
        size = depthwise_scratch(layer.fx, layer.ox, layer.stride[1], core.cores)
    elif isinstance(layer, Convolution):
        if layer.fy == layer.fx == 1 and layer.stride == (1, 1) and not any(layer.pad):
            return 0  # a product of matrices
        size = conv2d_scratch(layer.weight[0].size, core.cores)
    elif isinstance(layer, Matmul):
        size = matmul_scratch(layer.C, core.cores)
    else:
        return 0
    return round_up(size, ALIGNMENT)


def block_bytes(layer: Layer, k: int, core: ClusterCores) -> int:
    """Return the bytes of the constants of ``k`` columns; 0 without constants."""
    if isinstance(layer, Weighted):
        return block_of(layer, k, simd=core.simd).bytes
    return int(constants_of(layer, simd=core.simd).size)
