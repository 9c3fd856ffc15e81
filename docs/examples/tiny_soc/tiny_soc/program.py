"""How a layer is executed tile by tile, and what the calls of that cost.

Tiles, transfers, double buffers, tensors that stay in L1, the C loop, predicted cycles, bytes moved
and the tile that `htvm verify` names: all follow from this one value.
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers import Layer, Shift
from byoc_dory.plan import LayerPlan
from byoc_dory.tileloop.axes import plain_axis
from byoc_dory.tileloop.cycles import Costs, Moved, Overheads, Work
from byoc_dory.tileloop.pipeline import HOST_BESIDE, HOST_IN_TURN
from byoc_dory.tileloop.program import BlockOf, Compute, Operand, TileProgram
from byoc_dory.tileloop.steps import Block, Trigger
from byoc_dory.tileloop.values import Place
from tiny_soc.description import Mac

__all__ = ["Product", "costs", "mac_program"]


@dataclass(frozen=True)
class Product(Trigger):
    """What the array is told to do: the fields of ``tiny_product_t``, for one tile."""

    input: int
    weights: int
    out: int
    rows: int
    k: int
    c: int
    pitch: int
    shift: int
    low: int
    high: int


def mac_program(layer: Layer, plan: LayerPlan) -> TileProgram:
    """The tiles of a layer: rows of pixels (y) by blocks of output channels (k)."""
    assert isinstance(layer.requant, Shift)  # judged before
    tile, solution = plan.solution.tile, plan.solution
    y = plain_axis("y", "rows of pixels", layer.oy, tile.y)
    k = plain_axis("k", "output channels", layer.K, tile.k)
    row, block = layer.ox * layer.C, layer.C + 4  # bytes of a row, and of a channel's weights
    pixels = y.out_size * layer.ox
    source = Operand(
        "input",
        offset=y.out_start * row,
        block=BlockOf.run(y.out_size * row),
        l1=plan.l1_inputs[0],
        l1_bytes=layer.oy * row if plan.resident_inputs[0] else solution.l1_in,
        buffers=plan.buffers,
        resident=plan.resident_inputs[0],
        inside=y.out_start * row,
    )
    weights = Operand(
        "weights",
        offset=k.out_start * block,
        block=BlockOf.run(k.out_size * block),
        l1=plan.l1_weights,
        l1_bytes=solution.l1_weights,
        buffers=plan.buffers,
        constant=True,
    )
    place = y.out_start * (layer.ox * layer.K) + k.out_start
    result = Operand(
        "out",
        offset=place,
        block=BlockOf.of_rows(pixels, k.out_size, layer.K, k.out_size),
        l1=plan.l1_output,
        l1_bytes=layer.output.elements if plan.resident_output else solution.l1_out,
        buffers=plan.buffers,
        resident=plan.resident_output,
        inside=place,
    )
    product = Compute(
        Product,
        {
            "input": Place("input"),
            "weights": Place("weights"),
            "out": Place("out"),
            "rows": pixels,
            "k": k.out_size,
            "c": layer.C,
            "pitch": layer.K if plan.resident_output else k.out_size,
            "shift": layer.requant.shift,
            "low": layer.clip[0],
            "high": layer.clip[1],
        },
        struct="tiny_product_t",
        function="tiny_start(&{})",
    )
    return TileProgram(
        layer.name,
        # What is outside is loaded once, what is inside for each tile outside.
        (k, y) if y.count * layer.K * block > k.count * layer.oy * row else (y, k),
        (source, weights),
        result,
        product,
        in_turn=HOST_IN_TURN,
        overlapped=HOST_BESIDE if plan.buffers > 1 else None,
    )


def costs(core: Mac) -> Costs:
    """Cycles of the driver's calls: the host copies and starts, the array computes beside it."""

    def compute(product: Product) -> Work:
        steps = product.rows * -(-product.k // core.lanes) * -(-product.c // core.width)
        return Work(core.start_cycles + steps)

    def copy(block: Block, by_rows: bool) -> Moved:
        rows, size = block.commands()
        cycles = core.copy_cycles + rows * size * core.copy_block_cycles // core.copy_bytes
        return Moved(cycles + (rows * core.row_cycles if rows > 1 else 0))

    return Costs(compute, copy, Overheads(start=core.driver_cycles, call=core.call_cycles))
