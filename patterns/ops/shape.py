"""Operators that move or repeat elements and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.relax import op as R

from patterns.names import emit

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

__all__ = ["pad", "reshape"]


def reshape(bb: BlockBuilder, x: Expr, shape: tuple[int, ...], *, name: str) -> Var:
    """Write a reshape; the order of the elements stays."""
    return emit(bb, R.reshape(x, shape), name, last=True)


def pad(
    bb: BlockBuilder,
    x: Expr,
    padding: tuple[int, int, int, int],
    value: int,
    *,
    layout: str = "NHWC",
    name: str,
) -> Var:
    """Write a border of ``value`` around each map of int8 ``x``.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, ``layout``.
        padding: (top, left, bottom, right).
        value: the border's, usually the zero point.
        layout: ``"NHWC"`` or ``"NCHW"``.
        name: of the operator.
    """
    top, left, bottom, right = padding
    spatial = [top, bottom, left, right]
    widths = [0, 0, *spatial, 0, 0] if layout == "NHWC" else [0, 0, 0, 0, *spatial]
    return emit(bb, R.nn.pad(x, widths, "constant", value), name, last=True)
