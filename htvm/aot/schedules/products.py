"""Convolutions and products of matrices: a register block of pixels times output channels.

A block of ``px`` pixels and ``kt`` output channels needs ``px + kt`` loads for ``px * kt``
products, as long as its sums stay in registers.  `Products` says how a core computes them:

- `SCALAR`: RV32IM has no multiply-accumulate; only loads can be saved.  Weights keep the source's
  layout (fy, fx, C, K), in which the channels of a block are already side by side.
- `DOT4`: four products in one instruction.  The sum runs over words of four elements: channels of
  a pixel, which HWC has side by side; the weights of a word are packed alike.
- `COLUMNS`: for Cortex-M cores, operands are widened once for all output channels: the windows of
  two neighbouring pixels, or one row, as a column (`htvm.aot.columns`), of halfwords where the
  core multiplies pairs of them ("dsp"), else of words ("thumb").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from htvm.aot.columns import COLUMN, SUMS
from htvm.aot.intrinsics import DOT4 as DOT4_LOOP
from htvm.aot.native import native_conv
from htvm.aot.schedules.blocks import (
    Scheduled,
    anchor,
    channels_last,
    extent,
    flatten,
    inline_all,
    is_nchw,
    is_pointwise,
    loops_of,
    name_block,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.packing import packed_words
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

    from htvm.aot.native import NativeConv

_Blocks: TypeAlias = Mapping[tuple[int, int], tuple[float, int]]

_BLOCKS: _Blocks = {
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

_DOT4_BLOCKS: _Blocks = {
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


def _cheapest(blocks: _Blocks, pixels: int, channels: int) -> tuple[int, int, int]:
    """Return the register block with the fewest cycles for an output of these sizes."""

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        px, kt = shape
        computed = -(-pixels // px) * px * -(-channels // kt) * kt
        return blocks[shape][0] * computed, -px * kt

    fitting = [shape for shape in blocks if shape[0] <= pixels and shape[1] <= channels]
    px, kt = min(fitting, key=cost)
    return px, kt, blocks[px, kt][1]


def _paired(pixels: int, channels: int) -> tuple[int, int, int] | None:
    """Return the register block of columns; ``None`` if channels cannot be paired."""
    if channels % 2:
        return None
    if pixels > 1:
        return 2, 2, 1
    return 1, 2 if channels % 4 else 4, 1


@dataclass(frozen=True)
class Products:
    """How a core computes the sums of a register block.

    Attributes:
        block: from the pixels and channels of an output to those of a register block, and the most
            steps of the sum to unroll; ``None`` if the core's instructions do not fit.
        note: describes the block, given its pixels, what these are, and its channels.
        words: whether a step is a word of four int8 elements, of which the weights are packed.
        column: kind of the columns that operands are written into; empty if they stay in place.
    """

    block: Callable[[int, int], tuple[int, int, int] | None]
    note: str
    words: bool = True
    column: str = ""


_IN_REGISTERS = "register block of {} {} x {} channels"
SCALAR = Products(partial(_cheapest, _BLOCKS), _IN_REGISTERS, words=False)
DOT4 = Products(partial(_cheapest, _DOT4_BLOCKS), f"{_IN_REGISTERS}, four products at once")
COLUMNS = {
    kind: Products(_paired, "columns, sums of {} {} x {} channels in registers", column=kind)
    for kind in ("dsp", "thumb")
}


def schedule_products(
    func: PrimFunc, constants: Collection[int], how: Products
) -> Scheduled | None:
    """Schedule a convolution without padding, NHWC or NCHW, or a product with weights (C, K).

    For words, the sums must be of int8 with constant weights, and the rows of a filter or of a
    matrix must be words.  In NCHW, columns are filled from a copy of the rows of the input that a
    row of the output needs, with channels last; four products in place need NHWC.

    Args:
        func: any function.
        constants: its parameters that are constants.
        how: the core computes it.

    Returns:
        ``None`` for any other function.
    """
    sch = start(func)
    inline_all(sch)
    convolution = anchor(sch, 7, 4)
    found = convolution or anchor(sch, 3, 2)
    if found is None:
        return None
    sums, out = found
    nchw = is_nchw(sch, sums)
    weights = weights_of(sch, sums, func, constants) if how.words else None
    if how.words and (weights is None or (nchw and not how.column)):
        return None
    if nchw and not how.words:
        return _blocked_maps(sch, sums, out, how, native_conv(sch, sums, out, func))
    copy = channels_last(sch, sums, out) if nchw else None
    pointwise = convolution and not nchw and is_pointwise(sch, sums, func)
    if pointwise:
        flatten(sch, sums, out, taps=False)
    what = "rows" if convolution is None else "pixels"
    return _blocked(sch, sums, out, how, weights, what, copy)


def _blocked(
    sch: s_tir.Schedule,
    sums: Any,
    out: Any,
    how: Products,
    weights: int | None,
    what: str,
    copy: Any,
) -> Scheduled | None:
    """Compute sums [y, x, channels] over (fy, fx, C), or [rows, channels] over (C,), in blocks.

    Args:
        sch: schedule of a function with sums and an output.
        sums, out: their blocks.
        how: the core computes it.
        weights: which parameter has them; ``None``: they stay as they are.
        what: pixels or rows are.
        copy: the block that copies the input of an NCHW convolution (`channels_last`).
    """
    *outer, x, k = loops_of(sch, out)
    turns = 3 if outer else 1
    if how.words and math.prod(extent(sch, loop) for loop in loops_of(sch, sums)[-turns:][-2:]) % 4:
        return None
    block = how.block(extent(sch, x), extent(sch, k))
    if block is None:
        return None
    px, kt, unroll = block
    packing = None if weights is None else packed_words(sch, sums, weights, kt)
    xb, xi = sch.split(x, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(*outer, xb, kb, xi, ki)
    sch.compute_at(sums, kb, preserve_unit_loops=True)
    if copy is not None:
        sch.compute_at(copy, outer[-1])
    *_, xj, kj = loops_of(sch, sums)[:-turns]
    *rows, step = loops_of(sch, sums)[-turns:]
    if rows:
        # The channels of neighbouring taps are neighbours, too.
        step = sch.fuse(rows.pop(), step)
    elements = []
    if how.words:
        step, *elements = sch.split(step, [None, 4])
    sch.reorder(*rows, step, xj, kj, *elements)
    first = (*rows, step)[0]
    zero = sch.decompose_reduction(sums, first)
    name_block(sch, zero, out, (xi, ki), (xj, kj))
    if how.words:
        sch.reorder(ki, xi)
    names = ("y", "xb", "kb", "fy") if outer else ("rb", "kb")
    for loop, name in zip((*outer[1:], xb, kb, *rows), names, strict=True):
        name_loop(sch, loop, name)
    name_loop(sch, step, "f" if rows else "c", _divisor(extent(sch, step), unroll))
    if how.column:
        sch.annotate(kb, COLUMN, f"{how.column}:{px}")
        sch.annotate(first, SUMS, kt)
    elif how.words:
        sch.annotate(elements[0], DOT4_LOOP, 1)
    if packing is not None:
        packing = replace(packing, first=copy is not None, lifted=how.column == "thumb")
    return Scheduled(overlap_tiles(sch.mod["main"]), how.note.format(px, what, kt), packing)


def _blocked_maps(
    sch: s_tir.Schedule, conv: Any, out: Any, how: Products, native: NativeConv | None
) -> Scheduled | None:
    """Compute sums [channels, y, x] over (C, fy, fx), one map after the other."""
    _, k, y, x = loops_of(sch, out)
    block = how.block(extent(sch, x), extent(sch, k))
    if block is None:
        return None
    px, kt, _ = block
    xb, xi = sch.split(x, [None, px])
    kb, ki = sch.split(k, [None, kt])
    sch.reorder(kb, y, xb, xi, ki)
    sch.compute_at(conv, xb, preserve_unit_loops=True)
    _, kj, _, xj, rc, ry, rx = loops_of(sch, conv)[-7:]
    sch.reorder(rc, ry, rx, xj, kj)
    zero = sch.decompose_reduction(conv, rc)
    name_block(sch, zero, out, (xi, ki), (xj, kj))
    for loop, name in ((y, "y"), (xb, "xb"), (kb, "kb"), (ry, "fy")):
        name_loop(sch, loop, name)
    # Rows of a map are not contiguous with those of the next: only a filter row is unrolled.
    name_loop(sch, rx, "f", extent(sch, rx))
    note = how.note.format(px, "pixels", kt)
    return Scheduled(overlap_tiles(sch.mod["main"]), note, native=native)


def _divisor(number: int, limit: int) -> int:
    """Return the largest divisor of a number up to a limit."""
    return max(d for d in range(1, limit + 1) if number % d == 0)
