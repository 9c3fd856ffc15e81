"""Turning schedules into C: what every emitter must offer, and the helpers they share.

An emitter belongs to an accelerator (it knows its driver); `byoc_dory.generate` calls it for the
layers of a region and for the conversions at the region's border.
"""

from __future__ import annotations

from typing import Protocol

from byoc_dory.layer import Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.tiling.problem import Solution

__all__ = ["Emitter"]


class Emitter(Protocol):
    """Makes the C of one accelerator.

    Attributes:
        headers: C headers the sources need.
    """

    headers: tuple[str, ...]

    def stored_bytes(self, tensor: Tensor, soc: Soc) -> int:
        """Bytes of L2 that a tensor takes in the accelerator's layout."""

    def layer(
        self, layer: Layer, solution: Solution, soc: Soc, options: TilingOptions, symbol: str
    ) -> Kernel:
        """The function that runs a layer; its tensors are named as in the layer."""

    def prologue(
        self, tensor: Tensor, target: str, soc: Soc, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that converts a region's input into the accelerator's layout.

        Args:
            tensor: the input, in the outside's layout.
            target: name of the buffer to fill.
            soc: description of the SoC.
            symbol: C name.
            mapped: a function of bytes to apply on the way.
        """

    def epilogue(self, tensor: Tensor, source: str, soc: Soc, symbol: str) -> Kernel:
        """The function that converts a result into the layout the outside wants."""
