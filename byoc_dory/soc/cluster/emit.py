"""C for layers on the cluster: calls of transfers and tasks, loops around kernels, conversions.

Conversions between a source model's layout and rows of channels are done by the cluster.

A tensor is loaded into L1 in ranges of pixels, transposed there by the cores, and stored.  At a
region's border nothing else is in L1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from byoc_dory.emit.layout import Conversion, RowLayout
from byoc_dory.emit.staged import Calls, Section, call_text, initialiser, staged_kernel
from byoc_dory.emit.text import Expr, part_name, rendered
from byoc_dory.emit.tile_text import TileWriter, Transfer
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.cluster import simd_work, work
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import costs_of, split_cycles, working
from byoc_dory.soc.cluster.packing import constants_of, pack
from byoc_dory.soc.cluster.program import cluster_program
from byoc_dory.soc.cluster.rows import transfer_cycles
from byoc_dory.soc.cluster.tiles import scratch_place
from byoc_dory.soc.cluster.work import slowest
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram


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
    section: Section = "whole",
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
        section: what the function does (`staged_kernel`).
    """
    calls = Calls(
        move=move_rows,
        compute=compute,
        wait="cluster_dma_wait({})",
        wait_all="cluster_dma_wait_all()",
        finish=finish,
        fallible=section == "whole",
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
        section=section,
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

    def start(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that starts ``layer``, which the one of `layer` waits for."""
        return self._kernel(layer, plan, options, part_name(symbol, "start"), "start")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile, or completes it."""
        return self._kernel(layer, plan, options, symbol, "finish" if plan.started else "whole")

    def _kernel(
        self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str, section: Section
    ) -> Kernel:
        budget = self.soc.memory(self.core.l1).size
        if options.l1_budget is not None:
            budget = options.l1_budget
        core = working(self.soc, self.core, layer, budget)
        program = cluster_program(core, layer, plan, self.core.cores)
        if plan.ahead:
            constant, compute = None, "/* computed together with the layer before */\n"
        else:
            constant = _constants(core, layer, plan, symbol) if section != "finish" else None
            compute = call_text(program, TileWriter(program, address="cluster_l1({})"), "args")
        costs = costs_of(self.soc, core, layer, program)
        cycles = predicted_cycles(program, costs)
        if plan.hidden is not None:
            cycles = split_cycles(program, costs, plan.hidden)[section == "finish"]
        return row_kernel(
            self.core, layer, plan, program, compute, symbol, constant, cycles,
            scratch=scratch_place(core, layer, plan),
            finish="" if section == "whole" else "cluster_join()", section=section,
        )  # fmt: skip


def _constants(core: ClusterCores, layer: Layer, plan: LayerPlan, symbol: str) -> Constant | None:
    if isinstance(layer, Weighted):
        data = pack(layer, plan.solution.tile.k, simd=core.simd)
        return Constant(part_name(symbol, "weights"), data, f"weights and biases of {layer.name}")
    data = constants_of(layer, simd=core.simd)
    if not data.size:
        return None
    return Constant(part_name(symbol, "constants"), data, f"constants of {layer.name}")


_TABLE = 256
_BEHIND = 4  # bytes behind a range that kernels may read
_PIXELS = 4  # a range's pixels are a multiple of this, which the kernel computes at once


@dataclass(frozen=True)
class ClusterLayout(RowLayout):
    """Rows of channels; the cluster converts tensors whose parts fit L1, the host all others.

    Attributes:
        soc: the SoC of the cluster.
    """

    soc: Soc

    def convert(self, conversion: Conversion) -> Kernel:
        """Return the cluster's conversion; the host's if the channels of a few pixels exceed L1."""
        tensor, table = conversion.tensor, conversion.table
        planes = 1 if self.native(tensor) else tensor.shape[0]
        pixels = tensor.elements // planes
        room = self.soc.memory("L1").size - _TABLE - _BEHIND
        most_pixels = room // (2 * planes) // _PIXELS * _PIXELS
        if most_pixels == 0:
            return super().convert(conversion)
        step = min(most_pixels, pixels)
        text = rendered(
            "byoc_dory.soc.cluster",
            "border.c.jinja",
            what=conversion.kind,
            tensor=tensor,
            direction=f"{conversion.source} to {conversion.target}",
            table=table,
            signature=conversion.signature,
            planes=planes,
            pixels=pixels,
            step=step,
            inward=conversion.inward,
            second=_TABLE + -(-step * planes // _PIXELS) * _PIXELS,
        )
        cycles = _cycles(self.soc, planes, pixels, step, conversion.inward, table is not None)
        return conversion.kernel(text, cycles)


def _cycles(soc: Soc, planes: int, pixels: int, step: int, inward: bool, has_table: bool) -> int:
    """Return the cycles of each range's transfers and kernels, one after another.

    The DMA stores the previous range, and then loads this one.
    """
    assert soc.dma is not None
    (core,) = (found for found in soc.accelerators if isinstance(found, ClusterCores))
    kernels = simd_work if core.simd else work
    dma, host, free = soc.dma, core.call_cycles, 0

    def order(row_bytes: int, rows: int) -> None:
        nonlocal host, free
        host += core.order_cycles
        free = max(host + core.latency_cycles, free) + transfer_cycles(row_bytes, rows, dma)

    if has_table:
        order(_TABLE, 1)
    for begin in range(0, pixels, step):
        count = min(step, pixels - begin)
        order(*((count, planes) if inward else (count * planes, 1)))
        host = max(host, free) + core.wait_cycles
        if has_table:
            host += core.fork_cycles + ceil(
                slowest(kernels.elementwise(count * planes, core.cores), core.map)
            )
        if planes > 1:
            rows, columns = (planes, count) if inward else (count, planes)
            host += core.fork_cycles + ceil(
                slowest(kernels.transposition(rows, columns, core.cores), core.transpose)
            )
        order(*((count * planes, 1) if inward else (count, planes)))
    return max(host, free) + core.wait_cycles
