"""Convolutions and dense layers: a register block of pixels times output channels.

RV32IM has no multiply-accumulate; only loads can be saved.  A block of ``px`` pixels and ``kt``
output channels needs ``px + kt`` loads for ``px * kt`` products, as long as its accumulators stay
in registers.  Weights keep the source's layout (fy, fx, C, K), in which the channels of a block are
already side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from htvm.aot.native import native_conv
from htvm.aot.schedules.blocks import (
    Scheduled,
    blocks_of,
    extent,
    inline_all,
    is_reduction,
    loops_of,
    name_loop,
    start,
)
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

__all__ = [
    "BLOCKS",
    "anchor",
    "block_shape",
    "channels_last",
    "divisor",
    "flatten",
    "is_nchw",
    "is_pointwise",
    "name_block",
    "schedule_conv2d",
    "schedule_dense",
    "schedule_depthwise",
]

BLOCKS: dict[tuple[int, int], tuple[float, int]] = {
    (4, 3): (2.90, 2),
    (3, 4): (2.91, 2),
    (2, 4): (2.96, 8),
    (5, 3): (2.98, 1),
    (6, 2): (2.99, 2),
    (4, 2): (3.05, 8),
    (5, 2): (3.06, 2),
    (2, 3): (3.05, 8),
    (3, 3): (3.06, 2),
    (3, 2): (3.07, 8),
    (2, 2): (3.27, 8),
    (1, 8): (3.33, 8),
    (1, 6): (3.4, 8),
    (1, 5): (3.45, 8),
    (1, 4): (3.52, 8),
    (1, 3): (3.7, 8),
    (4, 1): (3.7, 8),
    (3, 1): (3.8, 8),
    (1, 2): (4.0, 8),
    (2, 1): (4.0, 8),
    (1, 1): (5.0, 8),
}
"""(pixels, channels) of a register block -> cycles per MAC, and steps of the sum to unroll.

Cycles are measured on the simulated CV32E40P with a 3x3 filter and 32 to 48 channels (one decimal:
estimated); more unrolling would run out of registers.
"""


def block_shape(
    pixels: int, channels: int, blocks: Mapping[tuple[int, int], tuple[float, int]] = BLOCKS
) -> tuple[int, int]:
    """Return the register block with the fewest cycles for an output of these sizes."""

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        px, kt = shape
        computed = -(-pixels // px) * px * -(-channels // kt) * kt
        return blocks[shape][0] * computed, -px * kt

    fitting = [shape for shape in blocks if shape[0] <= pixels and shape[1] <= channels]
    return min(fitting, key=cost)


def divisor(number: int, limit: int) -> int:
    """Return the largest divisor of a number up to a limit."""
    return max(d for d in range(1, limit + 1) if number % d == 0)


def anchor(sch: s_tir.Schedule, loops: int, output_loops: int) -> tuple[Any, Any] | None:
    """Return (sum, output) if the function has just these two blocks, with this many loops."""
    blocks = blocks_of(sch)
    if len(blocks) != 2 or not is_reduction(sch, blocks[0]) or is_reduction(sch, blocks[1]):
        return None
    if len(loops_of(sch, blocks[0])) != loops or len(loops_of(sch, blocks[1])) != output_loops:
        return None
    return blocks[0], blocks[1]


def is_nchw(sch: s_tir.Schedule, block: Any) -> bool:
    """Whether a convolution has channels before rows and columns."""
    return "nchw" in str(sch.get(block).name_hint)


def channels_last(sch: s_tir.Schedule, conv: Any, out: Any) -> Any:
    """Turn an NCHW convolution into one of NHWC; return the block that copies its input.

    The copy has channels last; it should be made where few rows of it are needed.
    """
    copy = sch.cache_read(conv, 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda n, c, y, x: (n, y, x, c))
    sch.transform_block_layout(copy, lambda n, c, y, x: (n, y, x, c))
    sch.transform_layout(conv, ("read", 1), lambda k, c, ry, rx: (ry, rx, c, k))
    sch.transform_layout(conv, ("write", 0), lambda n, k, y, x: (n, y, x, k))
    sch.transform_block_layout(conv, lambda n, k, y, x, rc, ry, rx: (n, y, x, k, ry, rx, rc))
    sch.transform_block_layout(out, lambda n, k, y, x: (n, y, x, k))
    return copy


def is_pointwise(sch: s_tir.Schedule, conv: Any, func: PrimFunc) -> bool:
    """Whether an NHWC convolution is a product of matrices: 1x1, with each pixel used once."""
    _, y, x, _, ry, rx, _ = (extent(sch, loop) for loop in loops_of(sch, conv))
    _, iy, ix, _ = (int(size) for size in func.params[0].ty.shape)
    return (ry, rx) == (1, 1) and (iy, ix) == (y, x)


def flatten(sch: s_tir.Schedule, conv: Any, out: Any) -> tuple[Any, Any]:
    """Merge rows and columns of pixels into one axis, so that a block may span two rows."""
    width = extent(sch, loops_of(sch, out)[2])
    sch.transform_layout(conv, ("write", 0), lambda n, y, x, k: (y * width + x, k))
    sch.transform_block_layout(conv, lambda n, y, x, k, ry, rx, rc: (y * width + x, k, rc))
    sch.transform_block_layout(out, lambda n, y, x, k: (y * width + x, k))
    return conv, out


def schedule_conv2d(func: PrimFunc) -> Scheduled | None:
    """Schedule a convolution without padding, NHWC or NCHW; ``None`` for any other function."""
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None:
        return None
    conv, out = blocks
    nchw = is_nchw(sch, conv)
    native = native_conv(sch, conv, out, func) if nchw else None
    if not nchw and is_pointwise(sch, conv, func):
        return _schedule_product(sch, *flatten(sch, conv, out), "pixels")
    _, *axes = loops_of(sch, out)
    k, y, x = axes if nchw else (axes[2], axes[0], axes[1])
    px, kt = block_shape(extent(sch, x), extent(sch, k))
    xb, xi = sch.split(x, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(*((kb, y, xb) if nchw else (y, xb, kb)), xi, ki)
    sch.compute_at(conv, xb if nchw else kb, preserve_unit_loops=True)
    tile, taps = loops_of(sch, conv)[-7:-3], loops_of(sch, conv)[-3:]
    kj, xj = (tile[1], tile[3]) if nchw else (tile[3], tile[2])
    if nchw:
        # Rows of a map are not contiguous with those of the next: only a filter row is unrolled.
        outer, inner, unroll = taps[:2], taps[2], extent(sch, taps[2])
    else:
        outer, inner = taps[:1], sch.fuse(taps[1], taps[2])
        unroll = divisor(extent(sch, inner), BLOCKS[px, kt][1])
    sch.reorder(*outer, inner, xj, kj)
    zero = sch.decompose_reduction(conv, outer[0])
    name_block(sch, zero, out, (xi, ki), (xj, kj))
    for loop, name in ((y, "y"), (xb, "xb"), (kb, "kb"), (outer[-1], "fy")):
        name_loop(sch, loop, name)
    name_loop(sch, inner, "f", unroll)
    note = f"register block of {px} pixels x {kt} channels"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, native=native)


def name_block(
    sch: s_tir.Schedule, zero: Any, out: Any, inner: tuple[Any, ...], update: tuple[Any, ...]
) -> None:
    """Name and unroll the loops of a register block in all three places."""
    for loops in (inner, update):
        for loop, name in zip(loops, ("px", "ki"), strict=True):
            name_loop(sch, loop, name, extent(sch, loop))
    # The block that zeroes the sums has the register block's loops innermost, including unit loops.
    tile = len(loops_of(sch, out)) - len(inner)
    for loop, name in zip(loops_of(sch, zero)[tile:], "ijkl", strict=False):
        name_loop(sch, loop, name, extent(sch, loop))


def schedule_depthwise(func: PrimFunc, most: int = 4) -> Scheduled | None:
    """Schedule a depthwise convolution without padding, NHWC or NCHW; ``None`` for others.

    One channel at a time, for several neighbouring pixels, whose windows share most loads.

    Args:
        func: any function.
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


def schedule_dense(func: PrimFunc) -> Scheduled | None:
    """Schedule a matrix product with constant weights (C, K); ``None`` for any other function."""
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 3, 2)
    if blocks is None:
        return None
    return _schedule_product(sch, *blocks, "rows")


def _schedule_product(sch: s_tir.Schedule, product: Any, out: Any, what: str) -> Scheduled:
    """Block a product of matrices [rows, C] x [C, K] for registers."""
    rows, k = loops_of(sch, out)
    px, kt = block_shape(extent(sch, rows), extent(sch, k))
    rb, ri = sch.split(rows, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(rb, kb, ri, ki)
    sch.compute_at(product, kb, preserve_unit_loops=True)
    *_, rj, kj, c = loops_of(sch, product)
    unroll = divisor(extent(sch, c), BLOCKS[px, kt][1])
    sch.reorder(c, rj, kj)
    zero = sch.decompose_reduction(product, c)
    name_block(sch, zero, out, (ri, ki), (rj, kj))
    for loop, name in ((rb, "rb"), (kb, "kb")):
        name_loop(sch, loop, name)
    name_loop(sch, c, "c", unroll)
    note = f"register block of {px} {what} x {kt} channels"
    return Scheduled(overlap_tiles(sch.mod["main"]), note)
