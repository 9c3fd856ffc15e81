"""A cluster's compute cores as an accelerator: their kernels' rules, tiles and cycles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from byoc_dory.layers import Layer, Rows
from byoc_dory.layers.rowwise import AffineNorm, TableMap
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, plan_alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import computing, costs_of, working
from byoc_dory.soc.cluster.emit import ClusterEmitter, ClusterLayout
from byoc_dory.soc.cluster.program import cluster_program
from byoc_dory.soc.cluster.requant import numbers_that_count
from byoc_dory.soc.cluster.rules import RULES
from byoc_dory.soc.cluster.tiles import scratch_bytes, tiling_problem
from byoc_dory.tileloop.cycles import Costs
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Heuristic, Objective, Size, TilingProblem
from byoc_dory.tiling.problem import solution_of


@dataclass(frozen=True)
class ClusterAccelerator(ClusterCores):
    """The compute cores: their numbers, rules, tiles, cycles and C."""

    rules = RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """``array`` prefers tiles with many rows, ``none`` takes any that fits."""
        rows = Heuristic("rows", Size("y"), 64, "rows are what the cores share")
        return {"none": Objective("none"), "array": Objective("array", (rows,))}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1, with the limit."""
        working = self.working(soc, layer, options)
        return tiling_problem(soc, working, layer, self.budget(soc, options))

    def working(self, soc: Soc, layer: Layer, options: TilingOptions) -> ClusterCores:
        """Return the cores that compute a layer, which are fewer if L1 has no room for all."""
        return working(soc, self, layer, self.budget(soc, options))

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return the sizes of products and sums, how results are scaled, and the working cores."""
        return numbers_that_count(layer), self.working(soc, layer, options)

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        return cluster_program(self.working(soc, layer, options), layer, plan, self.cores)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of kernels and transfers."""
        return costs_of(soc, self.working(soc, layer, options), layer, program)

    def held_back(self, soc: Soc, layer: Layer) -> str:
        """Return why a layer cannot be started: nobody is left to do so, or to compute."""
        if self.simd:
            return f"the driver of '{self.name}' starts no kernels"
        if self.cores < 2:
            return "the only core drives the other devices"
        if scratch_bytes(self.working(soc, layer, TilingOptions()), layer):
            return "its kernel needs scratch memory of all cores"
        return ""

    def overwrites(self, layer: Layer) -> bool:
        """Whether the kernel reads each element once, before it writes the same element."""
        return isinstance(layer, Rows) and isinstance(layer.function, AffineNorm | TableMap)

    def started_cycles(self, soc: Soc, layer: Layer, options: TilingOptions) -> int:
        """Return the cycles of all cores but the one in control."""
        problem = self.tiling_problem(soc, layer, options)
        plan = plan_alone(layer, solution_of(problem, problem.whole), self.name, problem)
        program = self.tile_program(soc, layer, replace(plan, hidden=0), options)
        return computing(program, self.costs(soc, layer, program, options))

    def layout(self, soc: Soc) -> ClusterLayout:
        """Return the layout of tensors, the same for the cores and engines beside them."""
        return ClusterLayout(soc.host.cost.layout_byte, soc)

    def emitter(self, soc: Soc) -> ClusterEmitter:
        """Return the emitter that generates C from plans."""
        return ClusterEmitter(self, soc)
