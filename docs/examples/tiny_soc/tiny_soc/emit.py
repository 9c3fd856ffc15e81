"""C for a layer on the accelerator (see `byoc_dory.emit.Emitter`), and its packed weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.emit import row_layout
from byoc_dory.emit.text import environment
from byoc_dory.layers import Array, Layer, Tensor, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.soc.base import Soc
from tiny_soc.description import Mac

__all__ = ["MacEmitter", "pack"]

_ENVIRONMENT = environment("tiny_soc")


def pack(layer: Weighted, tile_k: int) -> Array:
    """The blocks of ``tile_k`` output channels: biases [k] int32, then weights [k][c]; uint8."""
    weights = layer.weight.reshape(layer.K, layer.C)
    biases = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    parts = []
    for start in range(0, layer.K, tile_k):
        block = slice(start, start + tile_k)
        parts.append(biases[block].astype("<i4").view(np.uint8))
        parts.append(weights[block].view(np.uint8).reshape(-1))
    return np.concatenate(parts)


@dataclass(frozen=True)
class MacEmitter:
    """Makes the C of the accelerator.  Its tensors are rows of channels, in L1 as in L2."""

    core: Mac
    soc: Soc
    headers: tuple[str, ...] = ("tiny_driver.h",)

    def native(self, tensor: Tensor) -> bool:
        """Whether a tensor of the network lies like that already."""
        return row_layout.native(tensor)

    def stored_bytes(self, tensor: Tensor) -> int:
        """Bytes of a tensor: nothing is padded."""
        return tensor.elements

    def offsets(self, tensor: Tensor) -> Array:
        """Where each element of a tensor lies."""
        return row_layout.offsets(tensor)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs ``layer`` tile by tile."""
        assert isinstance(layer, Weighted)
        packed = pack(layer, plan.solution.tile.k)
        weights = Constant(f"{symbol}_weights", packed, f"biases and weights of {layer.name}")
        cycles = self.core.plan_cost(layer, plan, self.soc, options)
        signature = f"int32_t {symbol}(const int8_t *in, int8_t *out)"
        source = _ENVIRONMENT.get_template("layer.c.jinja").render(
            layer=layer, plan=plan, tile=plan.solution.tile, weights=weights,
            title=self.core.title, cycles=cycles, signature=signature,
        )  # fmt: skip
        return Kernel(
            symbol=symbol,
            layer_name=layer.name,
            kind="layer",
            source=source,
            prototype=f"{signature};",
            inputs=(layer.inputs[0].name,),
            outputs=(layer.output.name,),
            constants=(weights,),
            layer=layer,
            plan=plan,
            schedule=None,
            predicted_cycles=cycles,
            accelerator=self.core.name,
        )

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that brings a tensor of the network into rows."""
        cycles = self.soc.host.cost.layout_byte
        return row_layout.prologue(tensor, target, symbol, mapped, cycles)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that brings a result into the network's layout."""
        return row_layout.epilogue(tensor, source, symbol, self.soc.host.cost.layout_byte)
