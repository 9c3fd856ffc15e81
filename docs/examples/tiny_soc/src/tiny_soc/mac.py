"""The accelerator `Mac`: which layers it takes, what a tile needs, how a layer is executed tile by
tile, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from byoc_dory.layers import Convolution, Dense, Layer, Shift
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Accelerator, Rules, Soc
from byoc_dory.soc.rules import (
    ACCEPTED,
    data_are_int8,
    requantization_is_one_shift,
    smallest_tile_fits,
)
from byoc_dory.tileloop.axes import plain_axis
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Moved, Overheads
from byoc_dory.tileloop.pipeline import Action, Block, Call, Pipeline, Verb
from byoc_dory.tileloop.program import (
    Compute,
    TileProgram,
    input_of,
    result_of,
    weights_of,
)
from byoc_dory.tileloop.values import Place
from byoc_dory.tiling import (
    Axis,
    Heuristic,
    InputWindow,
    Objective,
    Size,
    TileWeights,
    TilingProblem,
)
from byoc_dory.verdict import Refused, Verdict

if TYPE_CHECKING:
    from tiny_soc.emit import MacEmitter

__all__ = ["BIAS", "Mac"]

BIAS = 4
"""Bytes of a bias; one lies before the weights of each output channel."""


def operator_is_a_product(soc: Soc, core: Mac, layer: Layer) -> Verdict:
    """The operator is dense, or a 1x1 convolution of stride 1 without padding and groups."""
    # The first line is what users read; a refusal says the value that it objects to.
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    if depthwise or not isinstance(layer, Dense | Convolution):
        return Refused(f"the operator is {layer.op}")
    if (layer.fy, layer.fx) != (1, 1):
        return Refused(f"the kernel is {layer.fy}x{layer.fx}")
    if layer.stride != (1, 1):
        return Refused(f"the stride is {layer.stride[0]}x{layer.stride[1]}")
    if any(layer.pad):
        return Refused(f"the padding is {layer.pad}")
    if layer.groups != 1:
        return Refused(f"there are {layer.groups} groups")
    return ACCEPTED


# The array takes one product at a time, whose operands have to be there.
IN_TURN = Pipeline(
    "the DMA moves a tile, then the array computes it",
    (
        Action(Verb.LOAD),
        Action(Verb.ARRIVE),
        Action(Verb.START),
        Action(Verb.FINISH),
        Action(Verb.STORE),
    ),
)
BESIDE = Pipeline(
    "the DMA moves tiles while the array computes one",
    (
        Action(Verb.LOAD),
        Action(Verb.FINISH, 1),
        Action(Verb.ARRIVE),
        Action(Verb.START),
        Action(Verb.STORE, 1),
    ),
)

FEW_LOADS = Heuristic("output channels", Size("k"), 1_000, "the input is copied once for each")


@dataclass(frozen=True)
class Mac(Accelerator):
    """Multiplies a matrix in L1 by weights in L1: ``lanes`` outputs, ``width`` products of each.

    Every integer field is a constant in C, such as TINY_MAC_LANES.

    Attributes:
        lanes: outputs at a time.
        width: products of each, in a cycle.
        start_cycles: from the start until the first product.
        max_shift: largest right shift of the requantization.
        align: of the weights' address in L1.
        product_cycles: host cycles of starting a product.
        transfer_cycles: host cycles of starting a transfer.
        wait_cycles: host cycles of noticing that either is done.
        call_cycles: host cycles of a layer besides.
    """

    lanes: int
    width: int
    start_cycles: int
    max_shift: int
    align: int
    product_cycles: int
    transfer_cycles: int
    wait_cycles: int
    call_cycles: int

    @property
    def peak_macs(self) -> float:
        """Products per cycle."""
        return self.lanes * self.width

    @property
    def rules(self) -> Rules:
        """What a layer must satisfy."""
        return (
            ("MAC-1", operator_is_a_product),
            ("MAC-2", data_are_int8),
            ("MAC-3", requantization_is_one_shift),
            ("MAC-4", smallest_tile_fits),
        )

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """What a good tile is, by name."""
        return {"none": Objective("none"), "array": Objective("array", (FEW_LOADS,))}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return what a tile needs of L1: rows of pixels, and output channels with their weights.

        Input channels are never tiled, so that no sum has to be kept.
        """
        return TilingProblem(
            name=layer.name,
            # A block of weights begins aligned behind any number of others.
            k=Axis(layer.K, step=lcm(self.lanes, self.align)),
            c=Axis(layer.C, tiled=False),
            y=Axis(layer.oy),
            x=Axis(layer.ox, tiled=False),
            window=InputWindow(layer.iy, layer.ix),
            l1_limit=self.budget(soc, options),
            weights=TileWeights(channel=1, block=BIAS, in_l1=True),
            unit=self.l1,
        )

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tiles of a layer: rows of pixels (y) by blocks of output channels (k)."""
        assert isinstance(layer.requant, Shift)  # judged before
        solution = plan.solution
        y = plain_axis("y", "rows of pixels", layer.oy, solution.tile.y)
        k = plain_axis("k", "output channels", layer.K, solution.tile.k)
        row, channel = layer.ox * layer.C, layer.C + BIAS  # bytes
        pixels = y.out_size * layer.ox
        start, run = y.out_start * row, Block.run(y.out_size * row)
        source = input_of(plan, 0, "input", start, run, layer.oy * row, solution.l1_in)
        start, run = k.out_start * channel, Block.run(k.out_size * channel)
        weights = weights_of(plan, start, run, solution.l1_weights)
        start = y.out_start * (layer.ox * layer.K) + k.out_start
        rows = Block.of_rows(pixels, k.out_size, layer.K, k.out_size)
        result = result_of(plan, start, rows, layer.output.elements, solution.l1_out)
        fields = {
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
        }
        product = Compute("product", fields, struct="tiny_product_t", function="tiny_start(&{})")
        # What is outside is loaded once, what is inside for each tile outside.
        again = y.count * layer.K * channel > k.count * layer.oy * row
        return TileProgram(
            layer.name,
            (k, y) if again else (y, k),
            (source, weights),
            result,
            product,
            in_turn=IN_TURN,
            overlapped=BESIDE if plan.buffers > 1 else None,
        )

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of products and of transfers, and the host's for starting them."""
        dma = soc.dma
        assert dma is not None

        def compute(product: Call) -> ComputeCost:
            blocks = -(-product.number("k") // self.lanes) * -(-product.number("c") // self.width)
            return ComputeCost(self.start_cycles + product.number("rows") * blocks)

        def move(block: Block[int]) -> Moved:
            rows, size = block.commands()
            return Moved(dma.cycles(size, rows), commands=1)

        overheads = Overheads(
            order=self.transfer_cycles,
            wait=self.wait_cycles,
            start=self.product_cycles,
            call=self.call_cycles,
        )
        return Costs(compute, move, overheads, queue=dma.queue_depth)

    def emitter(self, soc: Soc) -> MacEmitter:
        """Return what turns plans into C."""
        from tiny_soc.emit import MacEmitter

        return MacEmitter(self, soc)
