"""Changes of a convolution's window: padding split off, strides along single rows."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers.layer import out_size
from htvm.rewriting.filters import Filter, Rewritten
from htvm.rewriting.rewrite import Rewrite


@dataclass(frozen=True)
class SplitPadding(Rewrite):
    """The padding becomes an operator of its own, before a convolution without padding."""

    name = "split_padding"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with padding."""
        if not any(it.pads):
            return None
        before, source, kind = it.padded(it.pads)
        conv = it.layer(source, kind, it.op.weight, (0, 0, 0, 0))
        top, left, bottom, right = it.pads
        says = f"padding {top}, {left}, {bottom}, {right} (top, left, bottom, right) split off"
        return Rewritten((*before, conv), says)


@dataclass(frozen=True)
class SingleRow(Rewrite):
    """A convolution along one axis gets the same stride along the other.

    Where the result has a single row (or column), the stride between rows has no effect.
    """

    name = "single_row"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with different strides and one row or column."""
        sy, sx = it.op.window.strides
        oy, ox = it.result
        if sy == sx or 1 not in (oy, ox):
            return None
        stride = sx if oy == 1 else sy
        (y, x), (fy, fx), (top, left, bottom, right) = it.size, it.kernel, it.pads
        dy, dx = it.op.window.dilation
        wanted = (
            out_size(y, top + bottom, fy, stride, dy),
            out_size(x, left + right, fx, stride, dx),
        )
        if wanted != (oy, ox):
            return None
        says = f"stride {sy}x{sx} computed as {stride}x{stride}, as the result has one " + (
            "row" if oy == 1 else "column"
        )
        return Rewritten(it.convolved(it.op.weight, it.pads, strides=(stride, stride)), says)
