"""Kernels padded with zero taps: dilated ones made dense, small ones made larger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htvm.rewriting.filters import Filter, Rewritten
from htvm.rewriting.rewrite import Rewrite


@dataclass(frozen=True)
class Dilation(Rewrite):
    """The gaps of a dilated kernel are filled with zero taps."""

    name = "dilation"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with dilation."""
        dy, dx = it.op.window.dilation
        if (dy, dx) == (1, 1):
            return None
        weight = it.op.weight
        fy, fx = it.kernel
        ky, kx = dy * (fy - 1) + 1, dx * (fx - 1) + 1
        whole = np.zeros((*weight.shape[:2], ky, kx), weight.dtype)
        whole[:, :, ::dy, ::dx] = weight
        apart = f"{dy}" if dy == dx else f"{dy}x{dx}"
        says = f"{fy}x{fx} with dilation {apart} computed as {ky}x{kx} with zero taps"
        return Rewritten(it.convolved(whole, it.pads, dilation=(1, 1)), says)


@dataclass(frozen=True)
class LargerKernel(Rewrite):
    """A kernel is extended to ``size x size`` by zero taps, which read more padding.

    Attributes:
        size: height and width of the kernel computed.
    """

    size: int = 3

    name = "larger_kernel"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions without dilation and with a smaller kernel."""
        fy, fx = it.kernel
        size = self.size
        if it.op.window.dilation != (1, 1) or max(fy, fx) > size or fy == fx == size:
            return None
        top, left, bottom, right = it.pads
        above, below = _shares(size - fy, top, bottom)
        before, behind = _shares(size - fx, left, right)
        weight = np.pad(it.op.weight, ((0, 0), (0, 0), (above, below), (before, behind)))
        pads = (top + above, left + before, bottom + below, right + behind)
        says = f"{fy}x{fx} computed as {size}x{size} with zero taps"
        return Rewritten(it.convolved(weight, pads), says)


def _shares(more: int, before: int, after: int) -> tuple[int, int]:
    """Return how many taps to add at either end, such that the paddings become alike."""
    first = min(more, max(0, (before + after + more) // 2 - before))
    return first, more - first
