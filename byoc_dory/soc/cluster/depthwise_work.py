"""The work of each core in depthwise convolutions for SIMD, in the units of the cycle model.

As ``runtime_c/cluster/simd/depthwise.c`` and, for filters of 3 x 3, the kernels of
``runtime_c/simd`` that it calls: `squares.c`, `patches.c`, `pairs.c` and `channels.c`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from byoc_dory.soc.cluster.work import ConvolutionTile, Work, fours_of, in_fours, split


@cache
def depthwise(tile: ConvolutionTile, cores: int) -> tuple[Work, ...]:
    """Return the work of a depthwise convolution's tile."""
    stride = tile.stride[0]
    height = tile.oy if _are_patches(tile) else 4 if stride == 1 else 2
    strips = -(-tile.oy // height)
    each, once = (124 * tile.ox + 100, 250) if stride == 1 else (110 * tile.ox + 60, 130)
    works = []
    costs = (each, each * strips, once, 0)
    for own, channels in split(strips, fours_of(tile.channels), costs, cores):
        first, last = in_fours(channels, tile.channels)
        begin, end = height * own[0], min(height * own[1], tile.oy)
        work = Counter({"call": 1, "split": int(strips > 1)})
        if begin < end and first < last:
            work.update(_kernel(tile, begin, end, last - first))
        works.append(work)
    return tuple(works)


def _kernel(tile: ConvolutionTile, begin: int, end: int, channels: int) -> Work:
    """Return the work of some rows of a core's channels."""
    work: Counter[str] = Counter()
    is_fast = tile.fy == tile.fx == 3 and tile.stride in {(1, 1), (2, 2)}
    if is_fast and tile.simple and _is_square(tile, begin, end):
        work.update({"squares": 1, "square": channels // 2})
        left = channels % 2
    elif is_fast and tile.simple and _are_patches(tile):
        behind = channels // 2 * tile.pad[0]
        work.update({"patches": 1, "patch": channels // 2, "patch_behind": behind})
        left = channels % 2
    elif is_fast and tile.simple and _are_pairs(tile, end):
        work.update(_pairs(tile, begin, end, channels // 2))
        left = channels % 2
    elif is_fast and channels >= 4:
        near = tile.stride == (1, 1)
        work.update((_near if near else _strips)(tile, begin, end, channels // 4))
        left = channels % 4
    else:
        left = channels
    singles = left * (end - begin) * tile.ox
    work.update({"single": singles, "single_column": singles * tile.fx})
    work.update({"single_mac": singles * tile.fy * tile.fx})
    return work


def _columns(tile: ConvolutionTile) -> int:
    """The columns of the input that blocks have."""
    return min((tile.ox - 1) * tile.stride[1] + 3 - tile.pad[1], tile.ix)


def _is_square(tile: ConvolutionTile, begin: int, end: int) -> bool:
    sizes = (tile.iy, tile.ix, tile.ox, end - begin)
    return tile.stride == (1, 1) and tile.pad == (1, 1) and sizes == (3, 3, 3, 3)


def _are_patches(tile: ConvolutionTile) -> bool:
    """Whether a map of 6 x 6 becomes 3 x 3, which is never shared by rows."""
    sizes = (tile.iy, tile.ix, tile.oy, tile.ox, tile.fy, tile.fx)
    pads = ((0, 0), (1, 1))
    return tile.stride == (2, 2) and tile.pad in pads and sizes == (6, 6, 3, 3, 3, 3)


def _are_pairs(tile: ConvolutionTile, end: int) -> bool:
    """Whether at most one row and one column are outside at each border."""
    rows, columns = 2 * end + 1 - tile.pad[0], 2 * tile.ox + 1 - tile.pad[1]
    return (
        tile.stride == (2, 2)
        and min(tile.ox, tile.iy, tile.ix) >= 2
        and max(tile.pad) <= 1
        and rows <= tile.iy + 1
        and columns <= tile.ix + 1
        and (end > 1 or rows <= tile.iy)
    )


def _pairs(tile: ConvolutionTile, begin: int, end: int, pairs: int) -> Work:
    """Return the work of pairs of channels with stride 2."""
    top = begin == 0 and tile.pad[0] != 0
    bottom = 2 * end + 1 - tile.pad[0] > tile.iy
    right = 2 * tile.ox + 1 - tile.pad[1] > tile.ix
    whole, full = end - begin - top - bottom, tile.ox - right
    work: Counter[str] = Counter({"pairs": 1, "pair": pairs})

    def strip(name: str, count: int) -> None:
        work.update({"row": pairs * count, name: pairs * count * full})
        work[f"{name}_last"] += pairs * count * right

    strip("five", whole // 2)
    if whole % 2:
        strip("four" if bottom else "three", 1)
    edges = top + (bottom and whole % 2 == 0)
    strip("edge", edges)
    work["top"] = pairs * top
    return work


def _near(tile: ConvolutionTile, begin: int, end: int, quads: int) -> Work:
    """Return the work of fours of channels with stride 1."""
    columns = tile.ox + 2
    most = (32 * columns + 64 * tile.ox) // (16 * columns)  # blocks for which there is room
    work: Counter[str] = Counter({"border": most})
    while begin < end:
        rows = end - begin if end - begin <= 4 * most - 2 else 4 * (most - 1)
        blocks, (strips, rest) = -(-(rows + 2) // 4), divmod(rows, 4)
        work["channels"] += quads
        work["strip"] += quads * strips
        work["strips"] += quads * (strips > 0)
        work["near_4"] += 4 * quads * strips * tile.ox
        if rest:
            work["rest"] += quads
            work[f"near_{rest}"] += 4 * quads * tile.ox
        work.update({"block": blocks * quads, "column": blocks * quads * _columns(tile)})
        begin += rows
    return work


def _strips(tile: ConvolutionTile, begin: int, end: int, quads: int) -> Work:
    """Return the work of fours of channels with stride 2, in strips of one after another."""
    work: Counter[str] = Counter({"border": 2, "channels": quads})
    blocks = 1
    while begin < end:
        rows = min(2, end - begin)
        blocks += rows > 1
        work["far_strip"] += quads
        work[f"far_{rows}"] += 4 * quads * tile.ox
        begin += rows
    work.update({"block": blocks * quads, "column": blocks * quads * _columns(tile)})
    return work
