"""Convolutions and products of matrices, in blocks of pixels times output channels.

`htvm.aot.intrinsics.Products` says how a core computes a block, and which blocks it has.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from htvm.aot.calls import PRODUCTS, RESCALED, SCALED, START, SUMS
from htvm.aot.intrinsics import Products, image_words
from htvm.aot.loops import bytes_of, factors_of, step_of
from htvm.aot.native import native_conv
from htvm.aot.rescale import LEAST, ends_scaled
from htvm.aot.schedules.blocks import (
    Constants,
    Scheduled,
    anchor,
    channels_last,
    extent,
    flatten,
    inline_all,
    is_nchw,
    is_pointwise,
    lanes_over,
    loops_of,
    name_block,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.packing import WeightWords, packed_words, suit_pairs
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

    from htvm.aot.native import NativeConv


def schedule_products(
    func: PrimFunc, constants: Constants, how: Products, lanes: int, room: int | None = None
) -> Scheduled | None:
    """Schedule a convolution without padding, NHWC or NCHW, or a product with weights (C, K).

    For words, the sums must be of int8 with constant weights, and the rows of a filter or of a
    matrix must be words, except with columns for all channels or of windows.  In NCHW, columns are
    filled from a copy of the rows of the input that a row of the output needs, with channels last;
    words in place and windows need NHWC.

    Args:
        func: any function.
        constants: values of its parameters that are constants.
        how: the core computes it.
        lanes: elements that the core requantizes at once, where one call is for all channels.
        room: bytes that its larger tensor and windows of more pixels may take; ``None``: any.

    Returns:
        ``None`` for any other function, and if a weight is too small for the row.
    """
    sch = start(func)
    inline_all(sch)
    convolution = anchor(sch, 7, 4)
    found = convolution or anchor(sch, 3, 2)
    if found is None:
        return None
    sums, out = found
    nchw = is_nchw(sch, sums)
    column = how.column
    whole = how.whole or (column is not None and column.whole)
    packed = how.width > 1 or whole
    weights = weights_of(sch, sums, func, constants) if packed else None
    if packed and (weights is None or (nchw and column is None and not whole)):
        return None
    if weights is not None and any(values.min() < how.least for values in constants[weights]):
        return None
    if nchw and not packed:
        return _blocked_maps(sch, sums, out, how, native_conv(sch, sums, out, func, how))
    copy = channels_last(sch, sums, out) if nchw else None
    what = "rows" if convolution is None else "pixels"
    # A block may then span two rows of pixels.
    if convolution is not None and not nchw and (whole or is_pointwise(sch, sums, func)):
        flatten(sch, sums, out, taps=whole)
    if whole and weights is not None:
        return _with_all_channels(sch, sums, out, how, weights, what, copy, lanes)
    suited = weights is not None and all(map(suit_pairs, constants[weights]))
    largest = max(bytes_of(buffer) for at, buffer in enumerate(func.params) if at not in constants)
    spare = None if room is None else room - largest
    return _blocked(sch, sums, out, how, weights, what, copy, suited, spare)


def _blocked(
    sch: s_tir.Schedule,
    sums: Any,
    out: Any,
    how: Products,
    weights: int | None,
    what: str,
    copy: Any,
    suited: bool,
    spare: int | None,
) -> Scheduled | None:
    """Compute sums [y, x, channels] over (fy, fx, C), or [rows, channels] over (C,), in blocks.

    Args:
        sch: schedule of a function with sums and an output.
        sums, out: their blocks.
        how: the core computes it.
        weights: which parameter has them; ``None``: they stay as they are.
        what: pixels or rows are.
        copy: the block that copies the input of an NCHW convolution (`channels_last`).
        suited: whether words may have weights of two channels.
        spare: bytes that windows of more pixels may take; ``None``: any, but not for more pairs.
    """
    *outer, x, k = loops_of(sch, out)
    turns = 3 if outer else 1
    column = how.column
    run = math.prod(extent(sch, loop) for loop in loops_of(sch, sums)[-turns:][-2:])
    windows = run % how.width > 0
    if windows and (column is None or not column.window or copy is not None):
        return None
    if windows and outer and not _is_dense(sch, sums):
        return None
    words = how.width > 1 and not windows
    block = how.block(extent(sch, x), extent(sch, k))
    if block is None:
        return None
    px, kt, unroll = block
    found = ends_scaled(sch, out)
    if column is not None and weights is not None and copy is None and found is not None:
        pixels = _row_pixels(extent(sch, x)) if run == column.row and not outer else 0
        if pixels and not found.alike:
            packed = WeightWords(weights, 1, how.width)
            return _requantized(sch, sums, out, how, pixels, packed, what)
        pixels = _image_pixels(sch, sums, out, spare) if column.image and suited else 0
        if pixels and not found.alike and found.zero_point == LEAST:
            packed = WeightWords(
                weights, 4, how.width, whole=True, places=_IMAGE_PLACES, paired=True
            )
            return _requantized(sch, sums, out, how, pixels, packed, what)
        taps = math.prod(extent(sch, loop) for loop in loops_of(sch, sums)[-turns:])
        way = column.together(
            extent(sch, x), extent(sch, k), taps, alike=found.alike, suited=suited
        )
        if way is not None:
            packed = WeightWords(
                weights,
                way.channels,
                how.width,
                whole=windows,
                paired=way.paired,
                last=0 if extent(sch, k) % way.channels == 0 else way.last,
                lifted=column.lifted,
            )
            pixels = way.pixels
            if way.paired and not outer and words:
                pixels *= column.pairs_together(extent(sch, x), taps, spare)
            return _requantized(sch, sums, out, how, pixels, packed, what)
    packing: WeightWords | None = None
    if windows and weights is not None:
        packing = WeightWords(weights, kt, how.width, whole=True)
    elif weights is not None:
        packing = packed_words(sch, sums, weights, kt, how.width)
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
    if words:
        step, *elements = sch.split(step, [None, how.width])
    sch.reorder(*rows, step, xj, kj, *elements)
    first = (*rows, step)[0]
    zero = sch.decompose_reduction(sums, first)
    name_block(sch, zero, out, (xi, ki), (xj, kj))
    if how.width > 1:
        sch.reorder(ki, xi)
    names = ("y", "xb", "kb", "fy") if outer else ("rb", "kb")
    for loop, name in zip((*outer[1:], xb, kb, *rows), names, strict=True):
        name_loop(sch, loop, name)
    name_loop(sch, step, "f" if rows else "c", _divisor(extent(sch, step), unroll))
    if column is not None:
        sch.annotate(kb, PRODUCTS, f"{how.name}:{px}:{kt}")
    elif words:
        sch.annotate(elements[0], PRODUCTS, f"{how.name}:{px}:{kt}")
    if column is not None:
        sch.annotate(first, SUMS, 1)
    if packing is not None:
        lifted = column is not None and column.lifted
        packing = replace(packing, first=copy is not None, lifted=lifted)
    return Scheduled(overlap_tiles(sch.mod["main"]), how.note.format(px, what, kt), packing)


def _is_dense(sch: s_tir.Schedule, conv: Any) -> bool:
    """Return whether the taps of a convolution's rows are side by side."""
    block = sch.get(conv)
    loads = factors_of(block.body)
    if loads is None:
        return False
    x, tap = loads[0].indices[2], block.iter_vars[-2]
    return int(tap.dom.extent) == 1 or step_of(x, tap.var) == 1


def _row_pixels(number: int) -> int:
    """Return of how many pixels rows are, multiples of 4; 0 if many would be computed twice."""

    def computed(pixels: int) -> tuple[int, int]:
        return -(-number // pixels) * pixels, -pixels

    best = min(range(16, min(number, 128) + 1, 4), key=computed, default=0)
    return best if best and 8 * computed(best)[0] <= 9 * number else 0


_IMAGE_PLACES = (*range(8), 24, *range(8, 16), 26, *range(16, 24), 27)
"""Of a filter's elements in words that are multiplied with those of `Column.image`."""
_FEW = 8
"""Pixels of an image whose windows are not too large where bytes are scarce."""


def _image_pixels(sch: s_tir.Schedule, conv: Any, out: Any, spare: int | None) -> int:
    """Return how many pixels of an image one call multiplies: an even part of a row.

    0 unless filters are of 3x3 with three colours, at stride 2, for fours of channels.  The
    windows of few pixels take hardly more bytes than other columns, so these are always there.
    """
    *outer, x, k = loops_of(sch, out)
    block = sch.get(conv)
    loads = factors_of(block.body)
    if loads is None or not outer or extent(sch, k) % 4:
        return 0
    steps = [step_of(loads[0].indices[2], block.iter_vars[at].var) for at in (2, -2)]
    if steps != [2, 1] or [extent(sch, loop) for loop in loops_of(sch, conv)[-3:]] != [3, 3, 3]:
        return 0
    parts = [number for number in range(4, 33, 2) if extent(sch, x) % number == 0]
    fitting = (
        number
        for number in parts
        if spare is None
        or 4 * image_words(number) <= spare
        or (number == parts[0] and number <= _FEW)
    )
    return max(fitting, default=0)


def _requantized(
    sch: s_tir.Schedule,
    sums: Any,
    out: Any,
    how: Products,
    pixels: int,
    packing: WeightWords,
    what: str,
) -> Scheduled:
    """Compute some pixels of all channels by one call, which also requantizes them.

    Args:
        pixels: of a block.
        packing: of the weights.
        sch, sums, out, how, what: as for `_blocked`; data are NHWC.
    """
    *outer, x, k = loops_of(sch, out)
    turns = 3 if outer else 1
    xb, xi = sch.split(x, [None, pixels])
    sch.reorder(*outer, xb, xi, k)
    sch.compute_at(sums, xb, preserve_unit_loops=True)
    *_, xj, kj = loops_of(sch, sums)[:-turns]
    *rows, step = loops_of(sch, sums)[-turns:]
    if rows:
        # The channels of neighbouring taps are neighbours, too.
        step = sch.fuse(rows.pop(), step)
    elements = []
    if not packing.whole:
        step, *elements = sch.split(step, [None, how.width])
    sch.reorder(*rows, step, xj, kj, *elements)
    first = (*rows, step)[0]
    zero = sch.decompose_reduction(sums, first)
    sch.annotate(loops_of(sch, zero)[-2], START, 1)
    names = ("y", "xb", "fy") if outer else ("rb",)
    for loop, name in zip((*outer[1:], xb, *rows), names, strict=True):
        name_loop(sch, loop, name)
    sch.annotate(xb, SCALED, f"{how.name}:{pixels}:{packing.channels}")
    sch.annotate(first, SUMS, 1)
    note = f"{how.note.format(pixels, what, packing.channels)}, requantized there"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packing)


def _with_all_channels(
    sch: s_tir.Schedule,
    product: Any,
    out: Any,
    how: Products,
    weights: int,
    what: str,
    copy: Any,
    lanes: int,
) -> Scheduled | None:
    """Compute sums of some pixels with all channels, and requantize some channels at a time.

    The arguments are those of `_blocked` and of `schedule_products`.
    """
    *outer, rows, k = loops_of(sch, out)
    axes, channels = len(loops_of(sch, product)), extent(sch, k)
    block = how.block(extent(sch, rows), channels)
    if block is None:
        return None
    px, kt, _ = block
    if kt > 1:
        # The sums of a block and a pixel are neighbours.
        sch.transform_layout(product, ("write", 0), lambda *at: _by_block(at, kt))
    rb, ri = sch.split(rows, [None, px])
    sch.reorder(rb, k, ri)
    sch.compute_at(product, rb, preserve_unit_loops=True)
    if copy is not None:
        sch.compute_at(copy, outer[-1])
    sums = loops_of(sch, product)[-axes]
    zero = sch.decompose_reduction(product, sums)
    sch.annotate(sums, PRODUCTS, f"{how.name}:{px}:{kt}")
    sch.annotate(loops_of(sch, zero)[len(outer) + 1], START, 1)
    name_loop(sch, rb, "p")
    note, first = how.note.format(px, what, kt), copy is not None
    if how.whole:
        some = lanes_over(sch, lanes, k, ri)
        if some is not None:
            sch.annotate(some, RESCALED, px)
        # Of HWC, weights are as they should be.
        packing = WeightWords(weights, channels, 1, whole=True, first=True) if first else None
        return Scheduled(overlap_tiles(sch.mod["main"]), note, packing)
    four = lanes_over(sch, lanes, k, ri)
    if four is not None and kt > 1:
        sch.annotate(four, RESCALED, px)
    # Of several pixels, two channels are multiplied at once (`htvm_rows_side`).
    side = min(kt, 2) if px > 1 else kt
    packing = WeightWords(weights, side, how.width, whole=True, first=first)
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packing, biased=False)


def _by_block(at: tuple[Any, ...], channels: int) -> tuple[Any, ...]:
    """Return where a sum lies if those of a block of channels and a pixel are neighbours."""
    *outer, pixel, k = at
    return (*outer, k // channels, pixel, k % channels)


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
