"""Generating C from plans: the interface of all emitters, and helpers that they share.

An emitter belongs to an accelerator (it knows the driver); `byoc_dory.codegen` calls it for the
layers of a region, and the family's `byoc_dory.emit.tensor_layout.TensorLayout` for the conversions
at the region's border.
"""

from __future__ import annotations

from typing import Protocol

from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Kernel

__all__ = ["Emitter"]


class Emitter(Protocol):
    """Generates the C for one accelerator."""

    @property
    def headers(self) -> tuple[str, ...]:
        """C headers that the sources need."""

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs a layer; its tensors have the layer's names for them.

        Tensors that stay in L1 are not arguments of the function.
        """
