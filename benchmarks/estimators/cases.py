"""The layers and designs that are compared."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DESIGNS", "DMA_BYTES", "LAYERS", "SRAM", "Shape"]


@dataclass(frozen=True)
class Shape:
    """A convolution without padding: channels, output sizes, kernel and stride (y = x)."""

    name: str
    C: int
    K: int
    oy: int
    ox: int
    f: int
    stride: int = 1

    @property
    def iy(self) -> int:
        """Input rows."""
        return (self.oy - 1) * self.stride + self.f

    @property
    def ix(self) -> int:
        """Input columns."""
        return (self.ox - 1) * self.stride + self.f

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.C * self.K * self.oy * self.ox * self.f * self.f


LAYERS = (
    Shape("resnet8: 3x3, 16 to 16, 32x32", 16, 16, 32, 32, 3),
    Shape("resnet8: 3x3, 16 to 32, 16x16, stride 2", 16, 32, 16, 16, 3, 2),
    Shape("resnet8: 3x3, 64 to 64, 8x8", 64, 64, 8, 8, 3),
    Shape("mobilenet: 1x1, 32 to 64, 24x24", 32, 64, 24, 24, 1),
    Shape("mobilenet: 1x1, 128 to 128, 6x6", 128, 128, 6, 6, 1),
)
"""Of MLPerf Tiny's networks."""

DESIGNS = (
    (1, 16), (16, 1), (4, 4), (2, 32), (32, 2), (1, 64), (64, 1), (8, 8), (8, 16), (16, 8),
    (1, 128), (128, 1), (16, 16), (4, 64), (64, 4), (32, 32), (5, 7), (12, 12), (3, 16), (24, 24),
)  # fmt: skip
"""PEs over input channels, PEs over output channels."""

SRAM = 4 << 20
"""Bytes: everything fits, so that tiles play no part."""

DMA_BYTES = 16
"""Bytes per cycle between system memory and SRAM."""
