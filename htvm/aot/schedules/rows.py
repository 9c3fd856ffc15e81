"""Convolutions and products for cores with vectors of 16 bytes (Helium).

The windows of three neighbouring pixels, or one row, are copied into a column, and multiplied with
all output channels (`htvm.aot.rows`); requantization goes over four channels at a time
(`htvm.aot.lanes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htvm.aot.lanes import LANES
from htvm.aot.rows import START, SUMS, TAPS
from htvm.aot.schedules.blocks import (
    Constants,
    Scheduled,
    WeightRows,
    WeightTaps,
    extent,
    inline_all,
    loops_of,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.matrix import anchor, channels_last, is_nchw
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

__all__ = ["lanes_over", "schedule_conv2d_rows", "schedule_dense_rows", "schedule_depthwise_taps"]


def _block(pixels: int, channels: int) -> tuple[int, int]:
    """Return pixels of a column, and channels of a block."""
    if pixels >= 3:
        return 3, 1 if channels % 2 else 2
    return 1, next(block for block in (4, 2, 1) if channels % block == 0)


def schedule_conv2d_rows(func: PrimFunc, constants: Constants) -> Scheduled | None:
    """Schedule a convolution without padding of int8.

    In NCHW, the rows of the input that a row of the output needs are copied, with channels last.

    Args:
        func: any function.
        constants: its parameters that are constants.

    Returns:
        ``None`` for any other function.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None:
        return None
    conv, out = blocks
    weights = weights_of(sch, conv, func, constants)
    if weights is None:
        return None
    if is_nchw(sch, conv):
        copy = channels_last(sch, conv, out)
        return _product(sch, conv, out, weights, "pixels", copy)
    width = extent(sch, loops_of(sch, out)[2])
    # One axis of pixels, so that a column may span two rows.
    sch.transform_layout(conv, ("write", 0), lambda n, y, x, k: (y * width + x, k))
    sch.transform_block_layout(conv, lambda n, y, x, k, ry, rx, rc: (y * width + x, k, ry, rx, rc))
    sch.transform_block_layout(out, lambda n, y, x, k: (y * width + x, k))
    return _product(sch, conv, out, weights, "pixels")


def schedule_dense_rows(func: PrimFunc, constants: Constants) -> Scheduled | None:
    """Schedule a product of int8 rows with constant weights (C, K).

    Arguments and result are those of `schedule_conv2d_rows`.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 3, 2)
    weights = None if blocks is None else weights_of(sch, blocks[0], func, constants)
    if blocks is None or weights is None:
        return None
    return _product(sch, *blocks, weights, "rows")


def schedule_depthwise_taps(func: PrimFunc, constants: Constants) -> Scheduled | None:
    """Schedule a depthwise convolution without padding of int8, NHWC, of multiples of 8 channels.

    Arguments and result are those of `schedule_conv2d_rows`; ``None`` also if a weight is -128,
    because the sum of two of its products may exceed 16 bits.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None or is_nchw(sch, blocks[0]):
        return None
    conv, out = blocks
    weights = weights_of(sch, conv, func, constants)
    _, _, x, c = loops_of(sch, out)
    channels = extent(sch, c)
    if weights is None or channels % 8 or int(func.params[0].ty.shape[-1]) != channels:
        return None
    if any(values.min() == -128 for values in constants[weights]):
        return None
    sch.compute_at(conv, x, preserve_unit_loops=True)
    sums = loops_of(sch, conv)[-7]
    zero = sch.decompose_reduction(conv, sums)
    sch.annotate(sums, TAPS, 1)
    sch.annotate(loops_of(sch, zero)[-4], START, 1)
    lanes_over(sch, c)
    group = 8 if channels % 16 else 16
    note = f"sums of {group} channels of a pixel in registers"
    return Scheduled(sch.mod["main"], note, WeightTaps(weights, group))


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
