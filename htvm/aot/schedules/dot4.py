"""Convolutions and products for host cores with SIMD: four products in one instruction.

The sum runs over words of four elements: channels of a pixel, which HWC has side by side; the
weights of a word are packed alike.  A register block of ``px`` pixels and ``kt`` output channels
needs ``px + kt`` loads for ``px * kt`` dot products.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from htvm.aot.intrinsics import DOT4
from htvm.aot.schedules.blocks import (
    Scheduled,
    WeightWords,
    extent,
    inline_all,
    loops_of,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.matrix import (
    anchor,
    block_shape,
    divisor,
    flatten,
    is_nchw,
    is_pointwise,
    name_block,
)
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

__all__ = [
    "DOT4_BLOCKS",
    "pack_words",
    "packed_words",
    "schedule_conv2d_dot4",
    "schedule_dense_dot4",
]

DOT4_BLOCKS: dict[tuple[int, int], tuple[float, int]] = {
    (4, 4): (0.418, 8),
    (5, 3): (0.426, 8),
    (3, 5): (0.426, 8),
    (4, 3): (0.440, 8),
    (3, 4): (0.442, 8),
    (6, 2): (0.460, 8),
    (2, 6): (0.463, 8),
    (3, 3): (0.467, 8),
    (5, 2): (0.472, 8),
    (2, 5): (0.475, 8),
    (4, 2): (0.492, 8),
    (2, 4): (0.496, 8),
    (3, 2): (0.527, 8),
    (2, 3): (0.528, 8),
    (2, 2): (0.566, 8),
    (1, 8): (0.586, 8),
    (1, 6): (0.612, 8),
    (4, 1): (0.631, 8),
    (1, 4): (0.634, 8),
    (2, 1): (0.742, 8),
    (1, 2): (0.755, 8),
    (1, 1): (0.977, 8),
}
"""(pixels, channels) of a register block -> cycles per MAC, and steps of the sum to unroll.

Cycles are measured on the simulated CV32E40P with a 3x3 filter and 32 channels, by shift.
"""


def pack_words(
    sch: s_tir.Schedule, block: Any, func: PrimFunc, kt: int, constants: Collection[int]
) -> WeightWords | None:
    """Pack the weights of a product of int8 tensors; ``None`` if they are not known."""
    parameter = weights_of(sch, block, func, constants)
    return None if parameter is None else packed_words(sch, block, parameter, kt)


def packed_words(sch: s_tir.Schedule, block: Any, parameter: int, kt: int) -> WeightWords:
    """Pack the weights (..., C, K) of a product, which are a parameter's."""
    weight = sch.get(block).reads[1].source
    channels = kt if int(weight.ty.shape[-1]) % kt == 0 else 1

    size = int(weight.ty.shape[-2])

    def packed(*index: Any) -> Any:
        *taps, c, k = index
        run = taps.pop() * size + c if taps else c
        return (k // channels, *taps, run // 4, k % channels, run % 4)

    sch.transform_layout(block, ("read", 1), packed)
    return WeightWords(parameter, channels)


def schedule_conv2d_dot4(func: PrimFunc, constants: Collection[int]) -> Scheduled | None:
    """Schedule a convolution without padding of int8, NHWC, whose channels are words.

    Args:
        func: any function.
        constants: its parameters that are constants.

    Returns:
        ``None`` for any other function.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None or is_nchw(sch, blocks[0]):
        return None
    conv, out = blocks
    taps, channels = (extent(sch, loop) for loop in loops_of(sch, conv)[-2:])
    if taps * channels % 4:
        return None
    if is_pointwise(sch, conv, func):
        return _product(sch, *flatten(sch, conv, out), func, constants, "pixels")
    _, y, x, k = loops_of(sch, out)
    px, kt = block_shape(extent(sch, x), extent(sch, k), DOT4_BLOCKS)
    packing = pack_words(sch, conv, func, kt, constants)
    if packing is None:
        return None
    xb, xi = sch.split(x, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(y, xb, kb, xi, ki)
    sch.compute_at(conv, kb, preserve_unit_loops=True)
    (_, _, xj, kj), (ry, rx, rc) = loops_of(sch, conv)[-7:-3], loops_of(sch, conv)[-3:]
    # The channels of neighbouring taps are neighbours, too.
    f, byte = sch.split(sch.fuse(rx, rc), [None, 4])
    sch.reorder(ry, f, xj, kj, byte)
    zero = sch.decompose_reduction(conv, ry)
    name_block(sch, zero, out, (xi, ki), (xj, kj))
    sch.reorder(ki, xi)
    for loop, name in ((y, "y"), (xb, "xb"), (kb, "kb"), (ry, "fy")):
        name_loop(sch, loop, name)
    name_loop(sch, f, "f", divisor(extent(sch, f), DOT4_BLOCKS[px, kt][1]))
    sch.annotate(byte, DOT4, 1)
    note = f"register block of {px} pixels x {kt} channels, four products at once"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packing)


def schedule_dense_dot4(func: PrimFunc, constants: Collection[int]) -> Scheduled | None:
    """Schedule a product of int8 rows of words with constant weights (C, K).

    Arguments and result are those of `schedule_conv2d_dot4`.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 3, 2)
    if blocks is None or extent(sch, loops_of(sch, blocks[0])[-1]) % 4:
        return None
    return _product(sch, *blocks, func, constants, "rows")


def _product(
    sch: s_tir.Schedule,
    product: Any,
    out: Any,
    func: PrimFunc,
    constants: Collection[int],
    what: str,
) -> Scheduled | None:
    """Block a product of matrices [rows, C] x [C, K] for registers."""
    rows, k = loops_of(sch, out)
    px, kt = block_shape(extent(sch, rows), extent(sch, k), DOT4_BLOCKS)
    packing = pack_words(sch, product, func, kt, constants)
    if packing is None:
        return None
    rb, ri = sch.split(rows, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(rb, kb, ri, ki)
    sch.compute_at(product, kb, preserve_unit_loops=True)
    *_, rj, kj, c = loops_of(sch, product)
    word, byte = sch.split(c, [None, 4])
    sch.reorder(word, rj, kj, byte)
    zero = sch.decompose_reduction(product, word)
    name_block(sch, zero, out, (ri, ki), (rj, kj))
    sch.reorder(ki, ri)
    for loop, name in ((rb, "rb"), (kb, "kb")):
        name_loop(sch, loop, name)
    name_loop(sch, word, "c", divisor(extent(sch, word), DOT4_BLOCKS[px, kt][1]))
    sch.annotate(byte, DOT4, 1)
    note = f"register block of {px} {what} x {kt} channels, four products at once"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packing)
