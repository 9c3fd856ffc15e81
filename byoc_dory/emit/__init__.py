"""Generating C from plans: the interface of all emitters, and helpers that they share.

An emitter belongs to an accelerator (it knows the driver); `byoc_dory.codegen` calls it for the
layers of a region, and the family's `byoc_dory.emit.layout.TensorLayout` for the conversions
at the region's border.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Kernel, Region, RegionKernels

__all__ = ["Emitter", "RegionEmitter", "StartingEmitter"]


class Emitter(Protocol):
    """Generates the C for one accelerator."""

    @property
    def headers(self) -> tuple[str, ...]:
        """C headers that the sources need."""

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs a layer; its tensors have the layer's names for them.

        Tensors that stay in L1 are not arguments of the function.
        """


@runtime_checkable
class StartingEmitter(Emitter, Protocol):
    """Generates the C for an accelerator that may compute while others do."""

    def start(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that starts a layer (`LayerPlan.started`)."""


@runtime_checkable
class RegionEmitter(Protocol):
    """Plans and generates whole regions, for an accelerator that executes them as one program.

    All layers of its regions run on one accelerator.
    """

    @property
    def headers(self) -> tuple[str, ...]:
        """C headers that the sources need."""

    def region(
        self, region: Region, options: TilingOptions, symbol: Callable[[str], str]
    ) -> RegionKernels:
        """Return the functions of a region's layers, in order, and its plan.

        Args:
            region: layers that the accelerator's rules accept.
            options: options of the tiler.
            symbol: returns a layer's C name, given its name.

        Raises:
            TilingError: the smallest tile of a layer does not fit.
        """
