"""Convolutions and products for cores with vectors of 16 bytes (Helium).

The windows of three neighbouring pixels, or one row, are copied into a column, and multiplied with
all output channels (`htvm.aot.rows`); requantization goes over four channels at a time
(`htvm.aot.lanes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htvm.aot.lanes import LANES
from htvm.aot.rows import START, SUMS
from htvm.aot.schedules.blocks import (
    Constants,
    Scheduled,
    anchor,
    channels_last,
    extent,
    flatten,
    inline_all,
    is_nchw,
    loops_of,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.packing import WeightRows
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc


def _block(pixels: int, channels: int) -> tuple[int, int]:
    """Return pixels of a column, and channels of a block."""
    if pixels >= 3:
        return 3, 1 if channels % 2 else 2
    return 1, next(block for block in (4, 2, 1) if channels % block == 0)


def schedule_rows(func: PrimFunc, constants: Constants) -> Scheduled | None:
    """Schedule a convolution without padding of int8, or a product with constant weights (C, K).

    In NCHW, the rows of the input that a row of the output needs are copied, with channels last.

    Args:
        func: any function.
        constants: its parameters that are constants.

    Returns:
        ``None`` for any other function.
    """
    sch = start(func)
    inline_all(sch)
    convolution = anchor(sch, 7, 4)
    found = convolution or anchor(sch, 3, 2)
    weights = None if found is None else weights_of(sch, found[0], func, constants)
    if found is None or weights is None:
        return None
    if convolution is None:
        return _product(sch, *found, weights, "rows")
    if is_nchw(sch, found[0]):
        return _product(sch, *found, weights, "pixels", channels_last(sch, *found))
    flatten(sch, *found, taps=True)  # so that a column may span two rows
    return _product(sch, *found, weights, "pixels")


def _product(
    sch: s_tir.Schedule, product: Any, out: Any, weights: int, what: str, copy: Any = None
) -> Scheduled:
    """Mark the sums of a column, and requantize four channels at a time.

    Args:
        sch: schedule of a function with a sum and an output.
        product, out: their blocks, with rows and channels last.
        weights: which parameter has the weights, (..., K).
        what: a row stands for.
        copy: the block that copies the input of an NCHW convolution (`channels_last`).
    """
    *outer, rows, k = loops_of(sch, out)
    axes = len(loops_of(sch, product))
    channels = extent(sch, k)
    px, block = _block(extent(sch, rows), channels)
    rb, ri = sch.split(rows, [None, px])
    sch.reorder(rb, k, ri)
    sch.compute_at(product, rb, preserve_unit_loops=True)
    if copy is not None:
        sch.compute_at(copy, outer[-1])
    sums = loops_of(sch, product)[-axes]
    zero = sch.decompose_reduction(product, sums)
    sch.annotate(sums, SUMS, block)
    sch.annotate(loops_of(sch, zero)[len(outer) + 1], START, 1)
    name_loop(sch, rb, "p")
    lanes_over(sch, k, ri)
    note = f"columns of {px} {what}, sums of {px} x {block} channels in registers"
    return Scheduled(
        overlap_tiles(sch.mod["main"]), note, WeightRows(weights, block, first=copy is not None)
    )


def lanes_over(sch: s_tir.Schedule, loop: Any, *inner: Any) -> None:
    """Compute four iterations of a loop at once, inside of the loops ``inner``, if there are four.

    An incomplete last four overlaps its neighbour (`overlap_tiles`).
    """
    if extent(sch, loop) < 4:
        return
    outer, four = sch.split(loop, [None, 4])
    sch.reorder(outer, *inner, four)
    name_loop(sch, outer, "k")
    for other in inner:
        name_loop(sch, other, "px", extent(sch, other))
    sch.annotate(four, LANES, 1)
