"""The compute cores as an accelerator: their kernels' rules, tiles and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.options import TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Rule, Soc
    from byoc_dory.soc.snitch_ita.borders import ClusterLayout
    from byoc_dory.soc.snitch_ita.cluster_emit import ClusterEmitter
    from byoc_dory.tileloop.cycles import Costs
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, TilingProblem

__all__ = ["CLUSTER_CORES", "ClusterAccelerator"]


@dataclass(frozen=True)
class ClusterAccelerator(ClusterCores):
    """The compute cores: their numbers, rules, tiles, cycles and C."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in `cluster_rules`, in the order in which they are checked."""
        from byoc_dory.soc.snitch_ita.cluster_rules import RULES

        return RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """``array`` prefers tiles with many rows, ``none`` takes any that fits."""
        from byoc_dory.tiling import Heuristic, Objective, Size

        rows = Heuristic("rows", Size("y"), 64, "rows are what the cores share")
        return {"none": Objective("none"), "array": Objective("array", (rows,))}

    def tiling_problem(self, layer: Layer, soc: Soc, l1_budget: int | None = None) -> TilingProblem:
        """Return a tile's use of L1, with the limit."""
        from byoc_dory.soc.snitch_ita.cluster_tiles import tiling_problem

        return tiling_problem(layer, self, soc, self.budget(soc, l1_budget))

    def tile_program(
        self, layer: Layer, plan: LayerPlan, soc: Soc, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        from byoc_dory.soc.snitch_ita.cluster_program import cluster_program

        return cluster_program(layer, plan)

    def costs(self, layer: Layer, program: TileProgram, soc: Soc, options: TilingOptions) -> Costs:
        """Return the cycles of kernels and transfers."""
        from byoc_dory.soc.snitch_ita.cluster_cost import costs_of

        return costs_of(layer, self, soc)

    def layout(self, soc: Soc) -> ClusterLayout:
        """Return the layout of tensors, the same for cores and ITA."""
        from byoc_dory.soc.snitch_ita.borders import ClusterLayout

        return ClusterLayout(soc.host.cost.layout_byte, soc)

    def emitter(self, soc: Soc) -> ClusterEmitter:
        """Return the emitter that generates C from plans."""
        from byoc_dory.soc.snitch_ita.cluster_emit import ClusterEmitter

        return ClusterEmitter(self, soc)


# derived: fitted to our kernels on our simulator (benchmarks/cluster_kernels.py).
CLUSTER_CORES = ClusterAccelerator(
    name="cluster",
    title="cluster of 8 cores",
    registers=0x20002000,  # assumed
    l1="L1",
    family="cluster",
    cores=8,  # published
    fork_cycles=74,
    # derived: measured on our simulator, for our drivers and the code around them.
    order_cycles=53,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
    tile_cycles=0,
    most_operands=8,
    gemm=(
        ("call", 228.08),
        ("block", 354.2),
        ("mac", 2.79),
        ("column", 202.84),
        ("column_mac", 5.02),
        ("row", 226.23),
        ("row_mac", 3.73),
        ("single", 118.84),
        ("single_mac", 12.13),
        ("per_channel", 4.86),
        ("table", 3.25),
        ("wide", 35.43),
    ),
    matmul_rows=(
        ("call", 233),
        ("block", 376.4),
        ("mac", 2.78),
        ("column", 177.96),
        ("column_mac", 4.93),
        ("row", 209.6),
        ("row_mac", 3.53),
        ("single", 118.78),
        ("single_mac", 12.12),
        ("run", 225.35),
    ),
    matmul=(
        ("call", 200.26),
        ("block", 365.9),
        ("mac", 2.83),
        ("column", 176.12),
        ("column_mac", 4.93),
        ("row", 197.94),
        ("row_mac", 3.59),
        ("single", 126.12),
        ("single_mac", 11.79),
        ("run", 242.25),
    ),
    conv2d=(
        ("call", 347.23),
        ("block", 271.87),
        ("mac", 2.81),
        ("column", 336.59),
        ("column_mac", 4.62),
        ("row", 139.42),
        ("row_mac", 3.69),
        ("single", 117.86),
        ("single_mac", 9.41),
        ("run", 322.79),
        ("tap", 57.19),
    ),
    depthwise=(
        ("call", 247.53),
        ("block", 250.77),
        ("mac", 3.54),
        ("row", 147.63),
        ("row_mac", 2.97),
        ("single_mac", 8.88),
        ("run", 199.63),
        ("tap", 57.36),
    ),
    add=(("call", 93.7), ("turn", 51.37), ("element", 5.72), ("operand", 2.41)),
    map=(("call", 36.23), ("turn", 43.07), ("element", 5.52)),
    transpose=(("call", 116.33), ("block", 11.69), ("element", 3.86), ("single", 9.04)),
    table_softmax=(
        ("call", 11.57),
        ("row", 202.51),
        ("column", 0.93),
        ("gather", 9.01),
        ("scale", 12.99),
    ),
    ita_softmax=(("row", 139.94), ("column", 0.58), ("gather", 12.16), ("scale", 5.02)),
    layer_norm=(
        ("call", 179.5),
        ("row", 183.41),
        ("column", 14.6),
        ("gather", 8.4),
        ("scale", 8.83),
    ),
    rms_norm=(
        ("call", 149.07),
        ("row", 150.47),
        ("column", 11.02),
        ("gather", 7.43),
        ("scale", 6.51),
    ),
    affine_norm=(("call", 88.25), ("row", 6.51), ("column", 9.98), ("scale", 8.91)),
)
