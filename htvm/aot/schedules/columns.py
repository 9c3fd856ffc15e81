"""Convolutions and products for Cortex-M cores: operands as columns.

Operands are widened once for all output channels: the windows of two neighbouring pixels, or one
row, as a column (`htvm.aot.columns`), of halfwords where the core multiplies pairs of them (kind
"dsp"), else of words ("thumb").  Sums of two pixels and two channels, or of one row and four
channels, then stay in registers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from htvm.aot.columns import COLUMN, SUMS
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
from htvm.aot.schedules.dot4 import packed_words
from htvm.aot.schedules.matrix import (
    anchor,
    channels_last,
    flatten,
    is_nchw,
    is_pointwise,
    name_block,
)
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

__all__ = ["schedule_conv2d_columns", "schedule_dense_columns"]


def _block(pixels: int, channels: int) -> tuple[int, int] | None:
    """Return (pixels, channels) of a register block; ``None`` if channels cannot be paired."""
    if channels % 2:
        return None
    if pixels > 1:
        return 2, 2
    return 1, 2 if channels % 4 else 4


def schedule_conv2d_columns(
    func: PrimFunc, constants: Collection[int], kind: str
) -> Scheduled | None:
    """Schedule a convolution without padding of int8 whose filters' rows are words.

    In NCHW, the rows of the input that a row of the output needs are copied, with channels last.

    Args:
        func: any function.
        constants: its parameters that are constants.
        kind: of the columns: "dsp" or "thumb".

    Returns:
        ``None`` for any other function.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None:
        return None
    conv, out = blocks
    weights, nchw = weights_of(sch, conv, func, constants), is_nchw(sch, conv)
    if weights is None:
        return None
    copy = channels_last(sch, conv, out) if nchw else None
    taps, channels = (extent(sch, loop) for loop in loops_of(sch, conv)[-2:])
    if taps * channels % 4:
        return None
    if not nchw and is_pointwise(sch, conv, func):
        return _product(sch, *flatten(sch, conv, out), weights, ("pixels", kind))
    _, y, x, k = loops_of(sch, out)
    block = _block(extent(sch, x), extent(sch, k))
    if block is None:
        return None
    px, kt = block
    packing = replace(packed_words(sch, conv, weights, kt), first=nchw)
    xb, xi = sch.split(x, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(y, xb, kb, xi, ki)
    sch.compute_at(conv, kb, preserve_unit_loops=True)
    if copy is not None:
        sch.compute_at(copy, y)
    (_, _, xj, kj), (ry, rx, rc) = loops_of(sch, conv)[-7:-3], loops_of(sch, conv)[-3:]
    # The channels of neighbouring taps are neighbours, too.
    f, byte = sch.split(sch.fuse(rx, rc), [None, 4])
    sch.reorder(ry, f, xj, kj, byte)
    zero = sch.decompose_reduction(conv, ry)
    for loop, name in ((y, "y"), (xb, "xb"), (kb, "kb"), (ry, "fy"), (f, "f")):
        name_loop(sch, loop, name)
    return _finish(
        sch, kb, ry, (zero, out), ((xi, ki), (xj, kj)), (px, kt, "pixels", kind), packing
    )


def schedule_dense_columns(
    func: PrimFunc, constants: Collection[int], kind: str
) -> Scheduled | None:
    """Schedule a product of int8 rows of words with constant weights (C, K).

    Arguments and result are those of `schedule_conv2d_columns`.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 3, 2)
    if blocks is None or extent(sch, loops_of(sch, blocks[0])[-1]) % 4:
        return None
    weights = weights_of(sch, blocks[0], func, constants)
    return None if weights is None else _product(sch, *blocks, weights, ("rows", kind))


def _product(
    sch: s_tir.Schedule,
    product: Any,
    out: Any,
    weights: int,
    what: tuple[str, str],
) -> Scheduled | None:
    """Block a product of matrices [rows, C] x [C, K]."""
    rows, k = loops_of(sch, out)
    block = _block(extent(sch, rows), extent(sch, k))
    if block is None:
        return None
    px, kt = block
    packing = packed_words(sch, product, weights, kt)
    rb, ri = sch.split(rows, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(rb, kb, ri, ki)
    sch.compute_at(product, kb, preserve_unit_loops=True)
    *_, rj, kj, c = loops_of(sch, product)
    word, byte = sch.split(c, [None, 4])
    sch.reorder(word, rj, kj, byte)
    zero = sch.decompose_reduction(product, word)
    for loop, name in ((rb, "rb"), (kb, "kb"), (word, "c")):
        name_loop(sch, loop, name)
    return _finish(sch, kb, word, (zero, out), ((ri, ki), (rj, kj)), (px, kt, *what), packing)


def _finish(
    sch: s_tir.Schedule,
    channels: Any,
    sums: Any,
    blocks: tuple[Any, Any],
    loops: tuple[tuple[Any, Any], tuple[Any, Any]],
    shape: tuple[int, int, str, str],
    packing: WeightWords,
) -> Scheduled:
    """Mark the loops that become calls, and name those of the register block."""
    px, kt, what, kind = shape
    inner, update = loops
    name_block(sch, *blocks, inner, update)
    sch.reorder(inner[1], inner[0])
    sch.annotate(channels, COLUMN, f"{kind}:{px}")
    sch.annotate(sums, SUMS, kt)
    note = f"columns, sums of {px} {what} x {kt} channels in registers"
    packed = replace(packing, lifted=kind == "thumb")
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packed)
