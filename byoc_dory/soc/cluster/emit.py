"""C for layers on the cluster: calls of transfers and tasks, and loops around kernels."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit.staged import Calls, call_text, initialiser, staged_kernel
from byoc_dory.emit.text import Expr, environment, part_name
from byoc_dory.emit.tile_text import TileWriter, Transfer
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import costs_of, working
from byoc_dory.soc.cluster.packing import constants_of, pack
from byoc_dory.soc.cluster.program import cluster_program
from byoc_dory.soc.cluster.tiles import scratch_place
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram

ENVIRONMENT = environment("byoc_dory.soc.cluster")


def row_kernel(
    core: Accelerator,
    layer: Layer,
    plan: LayerPlan,
    program: TileProgram,
    compute: str,
    symbol: str,
    constant: Constant | None,
    cycles: int,
    *,
    finish: str = "",
    scratch: int | None = None,
) -> Kernel:
    """Return the function that executes a layer of rows.

    Args:
        core: the accelerator.
        layer, plan, program: the layer, its plan and its tile program.
        compute: C that computes a tile, or starts it on an engine.
        symbol: C name of the function.
        constant: packed weights or tables, or ``None``.
        cycles: predicted cycles.
        finish: C that waits for the end of a started computation.
        scratch: place in L1 of a tile's scratch space, if it needs any.
    """
    calls = Calls(
        move=move_rows,
        compute=compute,
        wait="cluster_dma_wait({})",
        wait_all="cluster_dma_wait_all()",
        finish=finish,
        more={} if scratch is None else {"L1_SCRATCH": scratch},
    )
    return staged_kernel(
        layer,
        plan,
        program,
        TileWriter(program),
        calls,
        (core.name, core.title),
        symbol,
        cycles,
        constant,
    )


def move_rows(transfer: Transfer, comment: str) -> str:
    """Return the call that starts a transfer of rows."""
    stores = transfer.operand.name == "out"
    inside = f"cluster_l1({transfer.l1})"
    to, source = (transfer.l2, inside) if stores else (inside, transfer.l2)
    fields: dict[str, Expr] = {
        "to": to, "from": source, "bytes": transfer.bytes, "rows": transfer.rows,
    }  # fmt: skip
    if not transfer.contiguous:
        near, far = ("from_stride", "to_stride") if stores else ("to_stride", "from_stride")
        fields |= {near: transfer.l1_pitch, far: transfer.l2_pitch}
    several = transfer.channels != 1
    function = "cluster_dma_start_planes" if several else "cluster_dma_start"
    begin = f"{function}(&(cluster_dma_t){{ {comment}".rstrip()
    planes = ""
    if several:
        strides = (transfer.l1_channel, transfer.l2_channel)
        near_far = strides[::-1] if stores else strides
        planes = "".join(f", {number}" for number in (transfer.channels, *near_far))
    return f"{begin}\n{initialiser(fields)}}}{planes})"


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
