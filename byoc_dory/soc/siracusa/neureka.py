"""The numbers of N-EUREKA, the engine of Siracusa.

Every number carries its kind and source: *published* (Siracusa, arXiv 2312.14750), *public code*
(pulp-nnx, GVSoC's model of the engine), *derived* or *assumed*.  This is the chip's engine, not its
successor, whose RTL is public: that has 32 channels in all modes and words of 36 bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Follower, LayerPlan, plan_alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.cost import computing
from byoc_dory.soc.cluster.emit import ClusterLayout
from byoc_dory.soc.siracusa.memories import L1, MRAM, SRAM, WORKERS
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_emit import NeurekaEmitter
from byoc_dory.soc.siracusa.neureka_layer import keeps_some, view_of
from byoc_dory.soc.siracusa.neureka_left import leaving
from byoc_dory.soc.siracusa.neureka_program import costs_of, followed, neureka_program
from byoc_dory.soc.siracusa.neureka_rules import RULES
from byoc_dory.soc.siracusa.neureka_tiles import (
    numbers_that_count,
    packed_weights,
    the_factors,
    tiling_problem,
)
from byoc_dory.tileloop.cycles import Costs
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Fill, Heuristic, Objective, Size, TilingProblem
from byoc_dory.tiling.problem import solution_of


@dataclass(frozen=True)
class NeurekaAccelerator(Neureka):
    """N-EUREKA: its numbers, rules, tiles, cycles and C."""

    rules = RULES

    @property
    def weight_memories(self) -> tuple[str, ...]:
        """The two halves of the weight memory; none if weights are always loaded into L1."""
        return (self.weight_memory, *self.further_memories) if self.weight_memory else ()

    def kept_bytes(self, layer: Layer) -> int:
        """Return the bytes of a layer's packed weights."""
        assert isinstance(layer, Weighted), layer  # judged before
        return int(packed_weights(self, layer).data.nbytes)

    def keeping(self, memory: str) -> NeurekaAccelerator:
        """Return the engine with weights in this memory, or in L1."""
        return replace(self, weight_memory=memory)

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """``array`` prefers tiles that fill the engine's blocks, ``none`` takes any that fits."""
        block, channels = self.block, self.output_channels[0]
        rows = Heuristic(
            "blocks", Fill("y", block, whole_is_full=True), 512, "a block has 6 rows of outputs"
        )
        full = Heuristic(
            "channels", Fill("k", channels, whole_is_full=True), 512, "a Ko tile has 32 channels"
        )
        more = Heuristic("rows", Size("y"), 64, "weights are read once for all rows")
        return {"none": Objective("none"), "array": Objective("array", (rows, full, more))}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1, with the limit."""
        assert isinstance(layer, Weighted), layer  # judged before
        return tiling_problem(soc, self, layer, self.budget(soc, options))

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        assert isinstance(layer, Weighted), layer  # judged before
        return neureka_program(self, layer, plan)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of jobs and transfers."""
        assert isinstance(layer, Weighted), layer  # judged before
        return costs_of(soc, self, layer)

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return the sizes of a layer, of its packed weights, and of its scales and biases."""
        assert isinstance(layer, Weighted), layer  # judged before
        return numbers_that_count(self, layer)

    @property
    def preloads(self) -> bool:
        """The controller loads the next layer's constants while a tile is computed."""
        return True

    @property
    def takes_next(self) -> bool:
        """Sums are computed by the cores, beside the engine."""
        return True

    def followed(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        follower: Follower,
        options: TilingOptions,
    ) -> tuple[LayerPlan, int] | None:
        """Return a plan with a sum that the cores compute beside the engine, if that is faster."""
        return followed(soc, self, layer, plan, follower, options)

    def leaving(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        following: Follower,
        options: TilingOptions,
    ) -> Iterator[tuple[LayerPlan, int]]:
        """Yield plans under which the next layer completes the last tile."""
        assert isinstance(layer, Weighted), layer  # judged before
        problem = self.tiling_problem(soc, layer, options)
        yield from leaving(self, layer, plan, following, problem)

    def held_back(self, soc: Soc, layer: Layer) -> str:
        """Return why a layer cannot be started: it has several tiles, or needs the cores."""
        assert isinstance(layer, Weighted), layer  # judged before
        view = view_of(layer)
        if view.copied or view.row_step > 1 or keeps_some(layer) or the_factors(layer).relu:
            return f"the cores take part in layers of '{self.name}'"
        problem = self.tiling_problem(soc, layer, TilingOptions())
        if not problem.tile_fits(problem.whole):
            return f"'{self.name}' computes it in several tiles"
        return ""

    def started_cycles(self, soc: Soc, layer: Layer, options: TilingOptions) -> int:
        """Return the cycles of the jobs of the only tile."""
        assert isinstance(layer, Weighted), layer  # judged before
        problem = self.tiling_problem(soc, layer, options)
        plan = plan_alone(layer, solution_of(problem, problem.whole), self.name, problem)
        program = self.tile_program(soc, layer, plan, options)
        return computing(program, self.costs(soc, layer, program, options))

    def layout(self, soc: Soc) -> ClusterLayout:
        """Return the layout of tensors, the same as for the cluster's cores."""
        return ClusterLayout(soc.host.cost.layout_byte, soc)

    def emitter(self, soc: Soc) -> NeurekaEmitter:
        """Return the emitter that generates C from plans."""
        return NeurekaEmitter(self, soc)


NEUREKA = NeurekaAccelerator(
    name="neureka",
    title="N-EUREKA, convolution engine 6x6",
    registers=0x00201000,  # public code: pulp-nnx
    l1=L1.name,
    family="cluster",
    weight_memory=SRAM.name,
    further_memories=(MRAM.name,),
    weight_window=MRAM.base,  # public code: pulp-nnx subtracts it from addresses of weights
    block=6,  # public code, as is all that follows unless noted
    filter=3,
    input_channels=(28, 28, 32),
    output_channels=(32, 28, 32),
    min_weight_bits=2,  # published
    max_weight_bits=8,  # published
    word_bytes=32,
    max_padding=2,
    max_shift=31,
    max_stall=8,  # public code: pulp-nnx
    contexts=2,
    job_ids=256,
    trigger=0x00,
    acquire=0x04,
    finished=0x08,
    status=0x0C,
    running_job=0x10,
    soft_clear=0x14,
    job=0x20,
    job_registers=24,
    # public code: GVSoC's state machine, with memories that never wait.
    job_cycles=1,
    load_cycles=(6, 6, 12),
    prepare_cycles=(6, 34, 10),
    leave_cycles=(8, 0, 0),
    prefetch_prepare_cycles=(6, 34, 3),
    prefetch_window_cycles=(3, 3, 9),
    prefetch_last_cycles=(0, 0, 10),
    scale_channels=32,
    scale_word_bytes=4,
    scale_cycles=9,
    shift_cycles=8,
    bias_cycles=12,
    no_bias_cycles=8,
    store_cycles=(0, 0, 3),
    stream_in_cycles=10,
    block_slack_cycles=0,
    # derived: by how much cycle counts published with the successor's RTL exceed this model,
    # scaled to that array.
    uncertain_block_cycles=20,
    # derived: fitted to generated layers on our simulator, with our drivers.
    program_cycles=170,
    order_cycles=65,
    latency_cycles=0,
    wait_cycles=5,
    call_cycles=20,
    relu_cycles=110,
    relu_word_cycles=6,
    relu_row_cycles=70,
    beside_percent=14,
    keep_word_cycles=14,
    window_cores=WORKERS,
    window_call_cycles=390,
    window_cycles=45,
    window_row_cycles=5,
    window_word_cycles=4,
    window_odd_word_cycles=6,
    window_edge_cycles=290,
    window_clear_cycles=60,
    block_call_cycles=130,
    block_line_cycles=60,
    block_pair_cycles=8,
)
"""The engine as GVSoC's model of it counts cycles."""


def cautious(core: NeurekaAccelerator) -> NeurekaAccelerator:
    """Return the engine with the cycles that may be missing in each block and Ko tile."""
    return replace(core, block_slack_cycles=core.uncertain_block_cycles)
