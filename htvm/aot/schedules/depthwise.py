"""Depthwise convolutions: several pixels of a channel, or with vectors all channels of a pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.aot.native import native_conv
from htvm.aot.rows import START, TAPS
from htvm.aot.schedules.blocks import (
    Constants,
    Scheduled,
    anchor,
    extent,
    inline_all,
    is_nchw,
    loops_of,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.packing import WeightTaps
from htvm.aot.schedules.rows import lanes_over
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def schedule_depthwise(func: PrimFunc, _: Constants, most: int = 4) -> Scheduled | None:
    """Schedule a depthwise convolution without padding, NHWC or NCHW; ``None`` for others.

    One channel at a time, for several neighbouring pixels, whose windows share most loads.

    Args:
        func: any function.
        _: its parameters that are constants, which stay as they are.
        most: pixels for which the core has registers.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None:
        return None
    conv, out = blocks
    nchw = is_nchw(sch, conv)
    native = native_conv(sch, conv, out, func, depthwise=True) if nchw else None
    _, *axes = loops_of(sch, out)
    c, y, x = axes if nchw else (axes[2], axes[0], axes[1])
    px = _pixels(extent(sch, x), most)
    xb, xi = sch.split(x, [None, px])
    sch.reorder(*((c, y, xb) if nchw else (y, xb, c)), xi)
    sch.compute_at(conv, xb if nchw else c, preserve_unit_loops=True)
    tile, taps = loops_of(sch, conv)[-7:-3], loops_of(sch, conv)[-3:]
    xj = tile[3] if nchw else tile[2]
    one, ry, rx = taps if nchw else (taps[2], taps[0], taps[1])
    if extent(sch, one) != 1:
        return None  # groups of several channels
    sch.reorder(one, ry, rx, xj)
    zero = sch.decompose_reduction(conv, one)
    for loop, name in ((y, "y"), (xb, "xb"), (c, "c")):
        name_loop(sch, loop, name)
    for loop, name in ((ry, "fy"), (rx, "fx")):
        name_loop(sch, loop, name, extent(sch, loop))
    for loop in (xi, xj, *loops_of(sch, zero)[4:]):
        name_loop(sch, loop, "px", extent(sch, loop))
    note = f"{px} pixels of a channel at a time"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, native=native)


def _pixels(width: int, most: int) -> int:
    """Return how many pixels to compute at once: more share more loads, but overlap more."""
    return min(range(1, min(width, most) + 1), key=lambda px: (-(-width // px) * (px + 0.7), -px))


def schedule_depthwise_taps(func: PrimFunc, constants: Constants) -> Scheduled | None:
    """Schedule a depthwise convolution without padding of int8, NHWC, of multiples of 8 channels.

    Arguments and result are those of `htvm.aot.schedules.rows.schedule_rows`; ``None`` also if a
    weight is -128, because the sum of two of its products may exceed 16 bits.
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
