"""C for a layer on the accelerator (see `byoc_dory.emit.Emitter`), and its packed weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.emit.staged import Calls, call_text, staged_kernel
from byoc_dory.emit.text import part_name
from byoc_dory.emit.tile_text import TileWriter, Transfer
from byoc_dory.layers import Array, Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from tiny_soc.mac import BIAS, Mac

__all__ = ["MacEmitter", "pack"]


def pack(layer: Weighted, tile_k: int) -> Array:
    """The blocks of ``tile_k`` output channels: biases [k] int32, then weights [k][c]; uint8."""
    weights = layer.weight.reshape(layer.K, layer.C)
    biases = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    parts = []
    for start in range(0, layer.K, tile_k):
        block = slice(start, start + tile_k)
        parts.append(biases[block].astype(f"<i{BIAS}").view(np.uint8))
        parts.append(weights[block].view(np.uint8).reshape(-1))
    return np.concatenate(parts)


@dataclass(frozen=True)
class MacEmitter:
    """Makes the C of the accelerator."""

    core: Mac
    soc: Soc
    headers: tuple[str, ...] = ("tiny_driver.h",)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs ``layer`` tile by tile."""
        assert isinstance(layer, Weighted)
        program = self.core.tile_program(self.soc, layer, plan, options)
        packed = pack(layer, plan.solution.tile.k)
        weights = Constant(
            part_name(symbol, "weights"), packed, f"biases and weights of {layer.name}"
        )
        writer = TileWriter(program)
        calls = Calls(
            _move,
            call_text(program, writer, "product"),
            wait="tiny_wait({})",
            wait_all="tiny_wait_all()",
            finish="tiny_finish()",
        )
        cycles = self.core.plan_cost(self.soc, layer, plan, options)
        core = self.core.name, self.core.title
        return staged_kernel(layer, plan, program, writer, calls, core, symbol, cycles, weights)


def _move(transfer: Transfer, comment: str) -> str:
    """What starts the transfer of one tile: the driver's call, whose arguments say enough."""
    if transfer.operand.name != "out":
        return f"tiny_load({transfer.l1}, {transfer.l2}, {transfer.bytes})"
    pitch, rows = transfer.l2_pitch, transfer.rows
    return f"tiny_store({transfer.l2}, {pitch}, {transfer.l1}, {rows}, {transfer.bytes})"
