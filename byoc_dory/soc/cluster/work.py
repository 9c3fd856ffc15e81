"""The work of each core in a kernel, in the units that the cycle model has constants for.

As in ``runtime_c/cluster/plain``, products are computed in blocks of 4 rows by 3 columns,
the remaining columns in blocks of 4 by 1, the remaining rows in blocks of 1 by 4 and 1 by 1.
Functions that distribute work return a `Work` for each core with a different amount of work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

Work: TypeAlias = Mapping[str, int]
"""Unit of work -> how often a core does it."""

Cycles: TypeAlias = tuple[tuple[str, float], ...]
"""Unit of work -> its cycles."""

_STRIP = 16  # number of rows that norms scale together
_SKEW = 32  # distance in elements between the starts of two cores
_FEW = 4  # rows of a block: with fewer rows per core, cores share the results by columns


def read_cycles(path: Path) -> dict[str, Any]:
    """Return `Cycles` by the name of the kernel, as fields of `ClusterCores`, from a JSON file."""
    kernels: dict[str, dict[str, float]] = json.loads(path.read_text("utf-8"))
    return {name: tuple(cycles.items()) for name, cycles in kernels.items()}


def slowest(works: Iterable[Work], cycles: Cycles) -> float:
    """Return the cycles of the core with the most work."""
    return max(sum(work.get(unit, 0) * each for unit, each in cycles) for work in works)


@cache
def product(rows: int, columns: int, length: int, cores: int) -> tuple[Work, ...]:
    """Return the work of a product of matrices [rows, length] x [length, columns]."""
    if rows < _FEW * cores and columns > rows:
        shares = [(rows, width) for width in _shares(columns, cores)]
    else:
        shares = [(share, columns) for share in _shares(rows, cores)]
    return tuple({"call": 1, **_blocks(share, width, length)} for share, width in shares)


@cache
def products(batch: int, rows: int, columns: int, length: int, cores: int) -> tuple[Work, ...]:
    """Return the work of a batch of products, in which each core computes rows of one matrix."""
    if batch == 1 or (batch * rows < _FEW * cores and columns > batch * rows):
        works = []
        for work in product(rows, columns, length, cores):
            times = {unit: batch * number for unit, number in work.items()}
            works.append({**times, "call": 1, "run": batch})
        return tuple(works)
    least, left = divmod(batch * rows, cores)
    ends = [core * least + min(core, left) for core in range(cores + 1)]
    works = []
    for row, end in pairwise(ends):
        total: dict[str, int] = {"call": 1}
        at = row
        while at < end:
            count = min(end, (at // rows + 1) * rows) - at
            for unit, number in {**_blocks(count, columns, length), "run": 1}.items():
                total[unit] = total.get(unit, 0) + number
            at += count
        works.append(total)
    return tuple(works)


def _shares(count: int, cores: int) -> tuple[int, ...]:
    """Return how many of ``count`` items a core gets; two numbers if cores differ."""
    least, left = divmod(count, cores)
    return (least + 1, least) if left and least else (least + (left > 0),)


def _blocks(rows: int, columns: int, inner: int) -> dict[str, int]:
    """Blocks of sums over ``inner`` elements, and their multiply-accumulates by kind of block."""
    fours, ones = divmod(rows, 4)
    threes, rest = divmod(columns, 3)
    quads, last = divmod(columns, 4)
    return {
        "result": rows * columns,
        "block": fours * threes,
        "mac": fours * threes * 12 * inner,
        "column": fours * rest,
        "column_mac": fours * rest * 4 * inner,
        "row": ones * quads,
        "row_mac": ones * quads * 4 * inner,
        "single": ones * last,
        "single_mac": ones * last * inner,
    }


@dataclass(frozen=True)
class ConvolutionTile:
    """A tile of a convolution; ``pad`` and ``stride`` are (y, x), map sizes those of the tile.

    ``windows``: how many windows a core may copy at a time; 0: as many as the kernel prefers.
    ``simple``: results are scaled in 32 bits and limited by their type, or by 0 and 127.
    """

    channels: int
    results: int
    iy: int
    ix: int
    oy: int
    ox: int
    fy: int
    fx: int
    stride: tuple[int, int]
    pad: tuple[int, int]
    depthwise: bool
    windows: int = 0
    simple: bool = True


@cache
def convolution(tile: ConvolutionTile, cores: int) -> tuple[Work, ...]:
    """The work of a convolution's tile: each core computes runs of pixels with equal taps."""
    pixels = tile.oy * tile.ox
    if pixels < _FEW * cores and tile.results > pixels:
        return tuple(_runs(tile, 0, pixels, width) for width in _shares(tile.results, cores))
    least, left = divmod(pixels, cores)
    ends = [core * least + min(core, left) for core in range(cores + 1)]
    return tuple(_runs(tile, ends[core], ends[core + 1], tile.results) for core in range(cores))


def _runs(tile: ConvolutionTile, begin: int, end: int, columns: int) -> Work:
    """Return the work of one core for the pixels ``begin`` to ``end``."""
    total: dict[str, int] = {"call": 1}
    pixel = begin
    while pixel < end:
        y, x = divmod(pixel, tile.ox)
        taps_y = _taps(y, tile.stride[0], tile.pad[0], tile.fy, tile.iy)
        taps_x = _taps(x, tile.stride[1], tile.pad[1], tile.fx, tile.ix)
        count = 1
        if taps_x == tile.fx:
            while (
                x + count < tile.ox
                and pixel + count < end
                and _taps(x + count, tile.stride[1], tile.pad[1], tile.fx, tile.ix) == tile.fx
            ):
                count += 1
        if tile.depthwise:
            work = _depthwise_blocks(count, columns, taps_y * taps_x)
        else:
            work = _blocks(count, columns, taps_y * taps_x * tile.channels)
        blocks = sum(work[unit] for unit in ("block", "column", "row", "single"))
        for unit, times in {**work, "run": 1, "tap": blocks * taps_y}.items():
            total[unit] = total.get(unit, 0) + times
        pixel += count
    return total


def _taps(out: int, stride: int, pad: int, taps: int, size: int) -> int:
    """Return the number of taps inside the input, summed over one output axis."""
    start = out * stride - pad
    return max(0, min(start + taps, size) - max(start, 0))


def _depthwise_blocks(rows: int, columns: int, taps: int) -> dict[str, int]:
    whole, ones = rows - rows % 4, rows % 4
    threes, rest = divmod(columns, 3)
    quads, last = divmod(columns, 4)
    blocks, single = whole // 4 * threes, whole * rest + ones * last
    return {
        "result": rows * columns,
        "block": blocks,
        "mac": blocks * 12 * taps,
        "column": 0,
        "row": ones * quads,
        "row_mac": ones * quads * 4 * taps,
        "single": single,
        "single_mac": single * taps,
    }


def elementwise(elements: int, cores: int, operands: int = 0) -> tuple[Work, ...]:
    """Return the work of a sum of this many operands, or of a table."""
    share = -(-elements // cores)
    # Long shares start at different banks, and the elements left out are computed afterwards.
    turns = 1 + (share > _SKEW)
    return ({"call": 1, "turn": turns, "element": share, "operand": share * operands},)


def transposition(rows: int, columns: int, cores: int) -> tuple[Work, ...]:
    """Return the work of transposing a matrix of bytes."""
    share = -(-columns // cores)
    return (
        {
            "call": 1,
            "block": -(-rows // 4),
            "element": share * (rows - rows % 4),
            "single": share * (rows % 4),
        },
    )


def rowwise(
    rows: int, n: int, cores: int, *, divided: bool = False, long: bool = False
) -> tuple[Work, ...]:
    """Return the work of a function of rows.

    Elements are read for values of the whole row (``gather``), and computed (``scale``); norms load
    factors for a strip of rows at a time (``column``).  Norms with large weights have longer
    reciprocals of their rows (``long``), those with the largest divide each element (``divided``).
    """
    share, width = (rows, -(-n // cores)) if 4 * rows <= cores else (-(-rows // cores), n)
    return (
        {
            "call": 1,
            "row": share,
            "column": -(-share // _STRIP) * width,
            "gather": share * n,
            "scale": share * width,
            "divided": share * width if divided else 0,
            "long": share if long else 0,
        },
    )


Range = tuple[int, int]


def fours_of(count: int) -> int:
    """Return the number of fours, the last one incomplete."""
    return -(-count // 4)


def share(count: int, parts: int) -> list[Range]:
    """Divide ``count`` items evenly, the first parts one longer."""
    each, left = divmod(count, parts)
    begins = [part * each + min(part, left) for part in range(parts + 1)]
    return list(zip(begins, begins[1:], strict=False))


def split(
    blocks: int, items: int, costs: tuple[int, int, int, int], cores: int
) -> Iterator[tuple[Range, Range]]:
    """Yield the blocks and items of each core, as ``cluster_split()`` does.

    Args:
        blocks: blocks of each item.
        items: number of items.
        costs: cycles of a block, of all blocks of an item, of an item, and of a block with any
            number of items.
        cores: number of cores.
    """
    block, whole, item, shared = costs
    size, best = 1, 1 << 62
    group = 1 if blocks > 1 else cores + 1
    if blocks == 1 and cores & (cores - 1) == 0:
        size = cores
    while group <= cores and cores & (cores - 1) == 0:
        most = -(-blocks // (cores // group))
        each = block * most if most < blocks else whole
        cost = (each + item) * -(-items // group) + shared * most
        if cost < best:
            best, size = cost, group
        group *= 2
    for part in share(blocks, cores // size):
        for own in share(items, size):
            yield part, own


def in_fours(blocks: Range, count: int) -> Range:
    """Return the elements of blocks of four."""
    return 4 * blocks[0], min(4 * blocks[1], count)
