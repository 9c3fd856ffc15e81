"""Tiling problems for the compute cores, and the operands and results of layers without maps."""

from __future__ import annotations

from typing import Any

from byoc_dory.layers import CachedAttention, Convolution, Gemm, Layer, Matmul, Pool, Weighted
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.packing import (
    BLOCK_ALIGN,
    QUAD,
    attention_scratch,
    block_of,
    constants_of,
    conv2d_scratch,
    depthwise_scratch,
    matmul_scratch,
)
from byoc_dory.soc.cluster.rows import RowsOf, matrix_result
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.pipeline import Block
from byoc_dory.tileloop.program import Operand
from byoc_dory.tiling.problem import Axis, FixedBytes, InputWindow, TileWeights, TilingProblem
from byoc_dory.tiling.shortage import shortage_of

_COLUMN_STEP = 4  # number of outputs that a kernel computes side by side
_BEHIND = 4  # bytes behind an operand that kernels for SIMD may read


def units_of(layer: Layer) -> tuple[int, int, int]:
    """(units of y, bytes of a unit in an operand, in the result); tiles are ranges of units."""
    if isinstance(layer, Matmul) and layer.batch > 1:
        return layer.batch, layer.rows * layer.C, layer.rows * layer.K
    if isinstance(layer, CachedAttention):
        return layer.heads, layer.cached * layer.C, layer.queries * layer.C
    return layer.oy, layer.ix * layer.C, layer.ox * layer.K


def rows_of(layer: Layer) -> int:
    """Return the rows of an operand that units are ranges of, or made of: a map's, or units."""
    return layer.iy if isinstance(layer, Convolution | Pool) else units_of(layer)[0]


def whole_operands(core: ClusterCores, layer: Layer) -> tuple[int, ...]:
    """Return the numbers of the inputs that every tile needs as a whole, behind all others."""
    if isinstance(layer, Matmul):
        return () if core.apart else (1,)
    if isinstance(layer, CachedAttention):
        return tuple(range(2, layer.operands))
    return ()


def tiling_problem(soc: Soc, core: ClusterCores, layer: Layer, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1: ranges of rows, and of columns where weights have columns.

    Where not even one row of a convolution fits, tiles are ranges of its columns, too, and
    depthwise of its channels: such tiles are moved row by row.  ``core`` is of the `working` cores.
    """
    shared_fields: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size - (_BEHIND if core.simd else 0)),
        # Nothing is padded, but every tensor starts aligned.
        "slack": ALIGNMENT * (len(layer.inputs) + 2),
    }
    if not isinstance(layer, Weighted):
        return _rows_problem(core, layer, **shared_fields)
    problem = _weighted_problem(core, layer, narrow=False, **shared_fields)
    if not may_be_narrow(layer) or shortage_of(problem) is None:
        return problem
    return _weighted_problem(core, layer, narrow=True, **shared_fields)


def is_narrow(problem: TilingProblem) -> bool:
    """Whether tiles are ranges of columns, or of a depthwise layer's channels."""
    return problem.x.tiled or problem.channels_follow_k


def may_be_narrow(layer: Layer) -> bool:
    """Whether tiles can be ranges of columns, each of which reads some input, or of channels."""
    return isinstance(layer, Convolution) and (layer.depthwise or _splits_columns(layer))


def _splits_columns(layer: Weighted) -> bool:
    _, left, _, right = layer.pad
    return layer.ox > 1 and max(left, right) < layer.fx


def _rows_problem(core: ClusterCores, layer: Layer, name: str, l1_limit: int, slack: int) -> (
    TilingProblem
):  # fmt: skip
    units, in_unit, out_unit = units_of(layer)
    if in_columns(core, layer):
        # A part of the second operand takes the place of weights.
        return TilingProblem(
            name=name,
            k=Axis(layer.K, step=_COLUMN_STEP),
            c=Axis(in_unit, tiled=False),
            y=Axis(units),
            x=Axis(1, tiled=False),
            window=InputWindow(units, 1),
            l1_limit=l1_limit,
            weights=TileWeights(block=layer.C, in_l1=True),
            fixed=FixedBytes((0,), scratch=scratch_bytes(core, layer), slack=slack),
            may_find=False,
            may_stay=False,
        )
    whole = tuple(layer.inputs[number].elements for number in whole_operands(core, layer))
    if isinstance(layer, Matmul) and not whole:
        in_unit = max(in_unit, layer.C * layer.K)
    return TilingProblem(
        name=name,
        k=Axis(out_unit, tiled=False),
        c=Axis(in_unit, tiled=False),
        y=Axis(units),
        x=Axis(1, tiled=False),
        window=InputWindow(rows_of(layer), 1, layer.fy, 1, (layer.stride[0], 1)),
        l1_limit=l1_limit,
        copies=len(layer.inputs) - len(whole),
        weights=TileWeights(fixed=block_bytes(core, layer, 0), in_l1=True),
        fixed=FixedBytes(whole, scratch=scratch_bytes(core, layer), slack=slack),
    )


def _weighted_problem(
    core: ClusterCores, layer: Weighted, name: str, l1_limit: int, slack: int, *, narrow: bool
) -> TilingProblem:
    one, two = (block_of(layer, k, simd=core.simd) for k in (4, 8))
    window_bytes = layer.weight[0].size
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    columns = narrow and _splits_columns(layer)
    # The bytes per column besides its weights; then those that do not depend on columns, and the
    # slack of alignments, once.
    per_column = -(-(two.bytes - one.bytes) // 4) - window_bytes + BLOCK_ALIGN // 4
    table = 256 if isinstance(layer, Gemm) and layer.function is not None else 0
    # A record has four channels, and the last one may be partly empty.
    padding_channels = -layer.K % QUAD if core.simd and not depthwise else 0
    scratch = scratch_bytes(core, layer)
    per_x = scratch_column(core, layer) if columns else 0
    return TilingProblem(
        name=name,
        k=Axis(layer.K, tiled=narrow or not depthwise, step=_COLUMN_STEP),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, tiled=columns),
        window=InputWindow(layer.iy, layer.ix, layer.fy, layer.fx, layer.stride),
        l1_limit=l1_limit,
        channels_follow_k=narrow and depthwise,
        weights=TileWeights(
            channel=0 if depthwise else layer.fy * layer.fx,
            block=per_column + (window_bytes if depthwise else 0),
            fixed=table + 2 * BLOCK_ALIGN + padding_channels * (per_column + window_bytes),
            in_l1=True,
        ),
        fixed=FixedBytes(scratch=scratch - per_x * layer.ox, slack=slack, column=per_x),
    )


def in_columns(core: ClusterCores, layer: Layer) -> bool:
    """Whether tiles of a product of two matrices are ranges of columns of the second one."""
    return isinstance(layer, Matmul) and layer.batch == 1 and core.columns


def scratch_column(core: ClusterCores, layer: Layer) -> int:
    """Return the bytes of scratch memory for each further column of a tile, of all cores."""
    if not (core.simd and isinstance(layer, Convolution) and layer.depthwise):
        return 0
    two, one = (depthwise_scratch(layer.fx, x, layer.stride[1], core.cores) for x in (2, 1))
    return two - one


def scratch_bytes(core: ClusterCores, layer: Layer) -> int:
    """Return the bytes of scratch memory that the layer's kernel needs, of all cores together."""
    if not core.simd:
        return 0
    if isinstance(layer, Convolution) and layer.depthwise:
        size = depthwise_scratch(layer.fx, layer.ox, layer.stride[1], core.cores)
    elif isinstance(layer, Convolution):
        if layer.fy == layer.fx == 1 and layer.stride == (1, 1) and not any(layer.pad):
            return 0  # a product of matrices
        size = conv2d_scratch(layer.weight[0].size, core.cores, core.windows)
    elif isinstance(layer, Matmul):
        size = matmul_scratch(layer.C, core.cores)
    elif isinstance(layer, CachedAttention):
        size = attention_scratch(layer.positions, core.cores)
    else:
        return 0
    return round_up(size, ALIGNMENT)


def block_bytes(core: ClusterCores, layer: Layer, k: int) -> int:
    """Return the bytes of the constants of ``k`` columns; 0 without constants."""
    if isinstance(layer, Weighted):
        return block_of(layer, k, simd=core.simd).bytes
    return int(constants_of(layer, simd=core.simd).size)


def result_of_rows(
    core: ClusterCores, layer: Layer, plan: LayerPlan, y: TileAxis, k: TileAxis
) -> Operand:
    """Return the result of a layer that is not a convolution."""
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
    """Return the operands of a layer that is not a convolution, except its constants."""
    _, in_unit, _ = units_of(layer)
    most_rows = max(span.in_size for span in y.spans)
    operands = []
    for number, name in enumerate(_names(layer)):
        if number == 1 and in_columns(core, layer):
            assert isinstance(layer, Matmul)
            operands.append(_columns(layer, plan, k))
            continue
        whole = number in whole_operands(core, layer)
        size = layer.inputs[number].elements if whole else in_unit
        if isinstance(layer, Matmul) and number == 1 and not whole:
            size = layer.C * layer.K
        rows = RowsOf(
            rows=1 if whole else rows_of(layer),
            row_bytes=size,
            pitch=size,
            buffer=size if whole else most_rows * size,
            whole=whole,
        )
        operands.append(rows.operand(name, y, plan, number))
    return tuple(operands)


def _columns(layer: Matmul, plan: LayerPlan, k: TileAxis) -> Operand:
    """Return the second operand of a product in ranges of its columns, without gaps in L1."""
    offset, block = k.out_start * layer.C, Block.run(k.out_size * layer.C)
    if not layer.transposed:
        offset, block = k.out_start, Block.of_rows(layer.C, k.out_size, layer.K, k.out_size)
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
