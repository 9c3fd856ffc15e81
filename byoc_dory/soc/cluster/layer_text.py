"""C for layers on the cluster: the calls of transfers, kernels and tasks."""

from __future__ import annotations

from byoc_dory.emit.staged import Calls, initialiser, staged_kernel
from byoc_dory.emit.text import Expr, environment
from byoc_dory.emit.tile_text import TileWriter, Transfer
from byoc_dory.layers import Layer
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Accelerator
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
