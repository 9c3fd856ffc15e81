"""C for layers on the cores: their loops around kernels of the library in ``runtime_c``."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit.staged import call_text
from byoc_dory.emit.symbols import part_name
from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import costs_of
from byoc_dory.soc.cluster.layer_text import row_kernel
from byoc_dory.soc.cluster.operands import scratch_place
from byoc_dory.soc.cluster.packing import constants_of, pack
from byoc_dory.soc.cluster.program import cluster_program
from byoc_dory.soc.cluster.working import working
from byoc_dory.tileloop.cycles import predicted_cycles


@dataclass(frozen=True)
class ClusterEmitter:
    """The emitter of the cores (see `byoc_dory.emit.Emitter`)."""

    core: ClusterCores
    soc: Soc
    headers: tuple[str, ...] = ("cluster.h", "cluster_dma.h", "cluster_kernels.h")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile."""
        budget = self.soc.memory(self.core.l1).size
        if options.l1_budget is not None:
            budget = options.l1_budget
        core = working(self.soc, self.core, layer, budget)
        program = cluster_program(core, layer, plan, self.core.cores)
        if plan.ahead:
            constant, compute = None, "/* computed together with the layer before */\n"
        else:
            constant = _constants(core, layer, plan, symbol)
            compute = call_text(program, TileWriter(program, address="cluster_l1({})"), "args")
        return row_kernel(
            self.core, layer, plan, program, compute, symbol, constant,
            predicted_cycles(program, costs_of(self.soc, core, layer, ahead=plan.ahead)),
            scratch=scratch_place(core, layer, plan),
        )  # fmt: skip


def _constants(core: ClusterCores, layer: Layer, plan: LayerPlan, symbol: str) -> Constant | None:
    if isinstance(layer, Weighted):
        data = pack(layer, plan.solution.tile.k, simd=core.simd)
        return Constant(part_name(symbol, "weights"), data, f"weights and biases of {layer.name}")
    data = constants_of(layer, simd=core.simd)
    if not data.size:
        return None
    return Constant(part_name(symbol, "constants"), data, f"constants of {layer.name}")
