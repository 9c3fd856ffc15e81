"""`Weighted`: the base of layers with constant weights."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers.layer import Layer
from byoc_dory.layers.tensor import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighted(Layer):
    """A layer that sums products with constant weights.

    Attributes:
        weight: constant weights ``[K, C / groups, fy, fx]``.
        bias: int32 ``[K]``, or ``None`` for zero.
    """

    weight: Array
    bias: Array | None = None

    @property
    def K(self) -> int:
        """Output channels."""
        return int(self.weight.shape[0])

    @property
    def C(self) -> int:
        """Input channels."""
        return int(self.weight.shape[1]) * self.groups

    @property
    def depthwise(self) -> bool:
        """Whether every input channel is filtered separately into one output channel."""
        return self.groups > 1 and self.groups == self.C == self.K

    @property
    def macs(self) -> int:
        """Multiply-accumulates, not counting padding."""
        return int(self.weight.size) * self.oy * self.ox

    def _check_weight(self) -> None:
        if self.weight.ndim != 4 or not self.weight.size:
            raise self._error(f"weight has shape {self.weight.shape}", "[K, C / groups, fy, fx]")
        if self.bias is not None and self.bias.shape != (self.K,):
            raise self._error(f"bias has shape {self.bias.shape}, not ({self.K},)")
