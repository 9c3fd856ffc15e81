"""Turning plans into C: what every emitter must offer, and the helpers they share.

An emitter belongs to an accelerator (it knows its driver); `byoc_dory.generate` calls it for the
layers of a region and for the conversions at the region's border.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from byoc_dory.layers import Array, Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Kernel

__all__ = ["Emitter", "Locating"]


class Emitter(Protocol):
    """Makes the C of one accelerator."""

    @property
    def headers(self) -> tuple[str, ...]:
        """C headers the sources need."""

    def native(self, tensor: Tensor) -> bool:
        """Whether a border tensor already lies in the accelerator's layout, so that it is used in
        place."""

    def stored_bytes(self, tensor: Tensor) -> int:
        """Bytes of L2 that a tensor takes in the accelerator's layout."""

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs a layer; its tensors are named as in the layer.

        Tensors that stay in L1 are no arguments of it.
        """

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that converts a region's input into the accelerator's layout.

        Args:
            tensor: the input, in the outside's layout.
            target: name of the buffer to fill.
            symbol: C name.
            mapped: a function of bytes to apply on the way.
        """

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that converts a result into the layout the outside wants."""


@runtime_checkable
class Locating(Protocol):
    """What an emitter offers beside, so that tensors can be looked at inside a region."""

    def offsets(self, tensor: Tensor) -> Array:
        """Bytes from a tensor's first to each element, in the accelerator's layout.

        Returns:
            int64 ``[C, y, x]`` or ``[C]``, as the tensor's shape.
        """
