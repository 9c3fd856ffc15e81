"""Tiles of a layer as a tile program, for reports, `verify` and searches; and their cycles.

The command stream is not made from it (see `assemble`); a test compares the transfers of both.
"""

from __future__ import annotations

from byoc_dory.layers import Add, Convolution, Layer
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.dla.design import Design, DlaCore
from byoc_dory.soc.dla.region_file import single_layer_region
from byoc_dory.soc.dla.tiles import (
    Tiling,
    compute_cycles,
    dma_cycles,
    groups,
    layer_cycles,
    memory_need,
)
from byoc_dory.tileloop.axes import halo_axis, plain_axis
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Moved, Overheads
from byoc_dory.tileloop.pipeline import HOST_IN_TURN, Block, Call
from byoc_dory.tileloop.program import (
    Compute,
    Operand,
    TileProgram,
    input_of,
    result_of,
    weights_of,
)
from byoc_dory.tileloop.values import Place, Value
from byoc_dory.tiling.problem import Axis, FixedBytes, InputWindow, TileWeights, TilingProblem

_SLACK = 16
"""Most bytes by which all buffers of a tile are rounded up."""

# Instructions of a tile: two loads of weights, one of the input, one store, a product and a shift.
_MOST_INSTRUCTIONS = 6


def tiling_problem(core: DlaCore, layer: Layer, budget: int) -> TilingProblem:
    """Return what a tile needs of SRAM, with the rounding of its buffers as slack."""
    size = 1 if core.fused or isinstance(layer, Add) else 4
    add = isinstance(layer, Add)
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    taps = layer.fy * layer.fx
    weights = TileWeights(0 if depthwise else taps, (taps if depthwise else 0) + 4, in_l1=True)
    return TilingProblem(
        name=layer.name,
        k=Axis(layer.K),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy, tiled=bool(core.rows)),
        x=Axis(layer.ox, tiled=False),
        window=InputWindow(layer.iy, layer.ix, layer.fy, layer.fx, layer.stride),
        l1_limit=budget,
        channels_follow_k=add or depthwise,
        copies=2 if add else 1,
        weights=TileWeights(in_l1=True) if add else weights,
        sums=size - 1,
        unit="SRAM",
        fixed=FixedBytes(slack=min(_SLACK, budget // 64)),
        may_find=False,
        may_stay=False,
    )


def tile_program(core: DlaCore, layer: Layer, plan: LayerPlan) -> TileProgram:
    """Return the tiles of a layer under a plan."""
    tile = plan.solution.tile
    y = halo_axis("y", "rows", layer.oy, tile.y, layer.iy, layer.fy, layer.stride[0], layer.pad[0])
    k = plain_axis("k", "output channels", layer.K, tile.k)
    solution = plan.solution
    operands: tuple[Operand, ...]
    start: Value
    if isinstance(layer, Add):
        start = y.out_start * (layer.ox * layer.K) + k.out_start
        block = Block.of_rows(y.out_size * layer.ox, k.out_size, layer.K, k.out_size)
        operands = tuple(
            input_of(plan, n, f"in{n}", start, block, layer.output.elements, solution.l1_in // 2)
            for n in range(2)
        )
    else:
        row = layer.ix * layer.C
        start = y.in_start * row
        block = Block.run(y.in_size * row)
        if layer.op == "depthwise":
            start = start + k.out_start
            block = Block.of_rows(y.in_size * layer.ix, k.out_size, layer.C, k.out_size)
        source = input_of(plan, 0, "in0", start, block, layer.iy * row, solution.l1_in)
        each = layer.fy * layer.fx * (1 if layer.op == "depthwise" else layer.C) + 4
        block = Block.run(k.out_size * each)
        operands = (source, weights_of(plan, k.out_start * each, block, tile.k * each))
    written = y.out_start * (layer.ox * layer.K) + k.out_start
    block = Block.of_rows(y.out_size * layer.ox, k.out_size, layer.K, k.out_size)
    result = result_of(plan, written, block, layer.output.elements, solution.l1_out)
    fields = {operand.name: Place(operand.name) for operand in (*operands, result)}
    compute = Compute(layer.op, fields | {"k": k.out_size, "rows": y.out_size})
    return TileProgram(layer.name, (y, k), operands, result, compute, in_turn=HOST_IN_TURN)


def costs(core: DlaCore, layer: Layer, design: Design) -> Costs:
    """Return the cycles of a tile's instructions and of its transfers."""
    region = single_layer_region(layer)
    entry = region.layers[0]

    def compute(found: Call) -> ComputeCost:
        rows = int(found.number("rows"))
        return ComputeCost(compute_cycles(region, entry, design, int(found.number("k")), rows))

    def move(block: Block[int]) -> Moved:
        rows, size = block.commands()
        return Moved(dma_cycles(design, rows, size, rows == 1))

    host = core.issue_cycles
    return Costs(compute, move, Overheads(order=host, start=host, call=core.call_cycles))


def predicted(core: DlaCore, layer: Layer, plan: LayerPlan, design: Design) -> int:
    """Return the cycles of a layer: those of the accelerator, and the host's between them."""
    region = single_layer_region(layer)
    entry = region.layers[0]
    tile = Tiling(plan.solution.tile.k, plan.solution.tile.y)
    own, moved = layer_cycles(
        region, entry, design, tile, plan.resident_inputs, plan.resident_output
    )
    count = groups(layer.K, tile.k) * groups(layer.oy, tile.y)
    instructions = count * (_MOST_INSTRUCTIONS - 1 - design.fused - plan.resident_output)
    if entry.op == "depthwise" and design.emulated:
        instructions += groups(layer.oy, tile.y) * layer.K
    host = core.call_cycles + instructions * core.issue_cycles
    return own + moved + host + (0 if all(plan.resident_inputs) else core.load_cycles)


def memory_of(layer: Layer, design: Design, tile: Tiling) -> tuple[int, int, int]:
    """Return the bytes of a tile's operands, result and weights in SRAM."""
    region = single_layer_region(layer)
    sizes = memory_need(region, region.layers[0], design, tile)
    return sizes.source * sizes.operands, sizes.result, sizes.weights
