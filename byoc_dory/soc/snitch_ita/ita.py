"""ITA as an accelerator: its rules, the expansion of attention, tiles and cycles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.snitch_ita.ita_core import Ita

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.options import TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Rules, Soc
    from byoc_dory.soc.cluster.borders import ClusterLayout
    from byoc_dory.soc.snitch_ita.ita_emit import ItaEmitter
    from byoc_dory.tileloop.cycles import Costs
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, TilingProblem

_CORES = "cluster"


@dataclass(frozen=True)
class ItaAccelerator(Ita):
    """ITA: its numbers, rules, tiles, cycles and C.

    Attention is checked as a whole and executed as products, heads and sums.
    """

    @property
    def rules(self) -> Rules:
        """The rules in `ita_rules`, in the order in which they are checked."""
        from byoc_dory.soc.snitch_ita.ita_rules import RULES

        return RULES

    def expand(self, soc: Soc, layer: Layer) -> Sequence[tuple[Layer, str]]:
        """Return attention as products, heads and sums; any other layer unchanged."""
        from byoc_dory.layers import MultiHeadAttention
        from byoc_dory.soc.snitch_ita.heads import heads_of

        if isinstance(layer, MultiHeadAttention):
            return heads_of(layer, self.name, _CORES)
        return ((layer, self.name),)

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """``array`` prefers tiles with many rows, ``none`` takes any that fits."""
        from byoc_dory.tiling import Heuristic, Objective, Size

        rows = Heuristic("rows", Size("y"), 64, "weights are loaded once for all rows")
        return {"none": Objective("none"), "array": Objective("array", (rows,))}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1, with the limit; for attention, that of its largest part."""
        from byoc_dory.soc.snitch_ita.ita_tiles import tiling_problem

        parts = self.expand(soc, layer)
        if len(parts) == 1:
            return tiling_problem(soc, self, layer, self.budget(soc, options))
        homes = [(part, soc.accelerator(name)) for part, name in parts]
        problems = [home.tiling_problem(soc, part, options) for part, home in homes]
        return max(problems, key=_smallest_bytes)

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return the sizes of products and sums, and how results are scaled; else everything.

        The tiles of attention's parts depend on the options, too.
        """
        from byoc_dory.soc.cluster.numbers_that_count import numbers_that_count

        if len(self.expand(soc, layer)) > 1:
            return super().counts(soc, layer, options)
        return numbers_that_count(layer)

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a product or a head of attention under a plan."""
        from byoc_dory.soc.snitch_ita.ita_program import ita_program

        return ita_program(self, layer, plan)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of tasks and transfers."""
        from byoc_dory.soc.snitch_ita.ita_cost import costs_of

        return costs_of(soc, self, layer, program)

    def layout(self, soc: Soc) -> ClusterLayout:
        """Return the layout of tensors, the same for cores and ITA."""
        from byoc_dory.soc.cluster.borders import ClusterLayout

        return ClusterLayout(soc.host.cost.layout_byte, soc)

    def emitter(self, soc: Soc) -> ItaEmitter:
        """Return the emitter that generates C from plans."""
        from byoc_dory.soc.snitch_ita.ita_emit import ItaEmitter

        return ItaEmitter(self, soc)


def _smallest_bytes(problem: TilingProblem) -> int:
    """Return the bytes of L1 that the smallest tile needs."""
    tile = problem.smallest
    return int(problem.l1_bytes(tile.k, tile.c, tile.y, tile.x))


ITA = ItaAccelerator(
    name="ita",
    title="integer transformer accelerator 16x64",
    registers=0x20001000,  # assumed
    l1="L1",
    family="cluster",
    lanes=16,  # published: N = 16 dot products of M = 64 elements, D = 26 bits (paper IV-B)
    vector=64,
    accumulator_bits=26,
    bias_bytes=3,  # published: 24-bit biases
    tile=64,  # public code: PyITA pads all dimensions to multiples of 64
    max_dim=512,  # published
    align=8,  # assumed: ports of the TCDM are 64 bits wide
    contexts=2,  # published: a dual-context register file
    max_shift=31,  # assumed: registers have 8 bits; more than 31 leave nothing of a 26-bit sum
    softmax_group=16,  # public code: as many columns as dot products
    # public code: (distance + 16) >> 5 until November 2024, and the paper is from before that.
    softmax_shift=5,
    weight_bytes_per_cycle=128,  # published: 16 ports of 64 bits
    tile_cycles=256,  # published: a tile takes at least 256 cycles
    tile_overhead_cycles=56,  # derived: 82.1 % utilization of products (paper V-A) are 312
    dividers=5,  # public code: NumDiv
    divide_cycles=22,  # public code: a serial divider of 20 bits, with its handshake
    # derived: the rest of the published 69.5 % of single-head attention with sequence 128,
    # embedding 128, projection 64, after everything else is charged; it is not explained.
    attention_cycles=400,
    drain_cycles=21,  # public code: 7 stages of pipeline, 14 entries of the output's queue
    softmax_numerator=65280,  # public code: 255 * 256
    # derived: measured on our simulator, for our drivers and the code around them.
    program_cycles=75,
    constant_cycles=98,
    order_cycles=53,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
)
"""The numbers of ITA; `byoc_dory.soc.snitch_ita.description` has the cluster around it."""
