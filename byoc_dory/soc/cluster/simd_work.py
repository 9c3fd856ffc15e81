"""The work of each core in the kernels for SIMD, in the units of the cycle model's constants.

These functions follow ``runtime_c/cluster/simd``: which blocks of pixels, quads of channels, strips
and copies each core computes.  All return a `Work` for each core; those of `product` and
`convolution` are one object where shares are equal, so that it is counted once.

As ``runtime_c/cluster/simd/depthwise.c`` and, for filters of 3 x 3, the kernels of
``runtime_c/simd`` that it calls: `squares.c`, `patches.c`, `pairs.c` and `channels.c`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from byoc_dory.soc.cluster.work import ConvolutionTile, Work, fours_of, in_fours, share, split


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


_FEW = 64  # channels, of htvm_quads()


def _across(pitch: int) -> int:
    """Return how many of four words, ``pitch`` bytes apart, lie across words of memory."""
    return (0, 3, 2, 3)[pitch % 4]


def _quad_costs(pixels: int, words: int) -> tuple[int, int]:
    whole = (24 * words + 90) * (pixels // 4)
    whole += 14 * words + 75 if pixels & 2 else 0
    whole += 9 * words + 55 if pixels & 1 else 0
    return 24 * words + 90, whole


# ---------------------------------------------------------------------- products


@cache
def _run(pixels: int, k: int, words: int, taps: int = 1, *, scattered: bool = False) -> Work:
    """One call of ``htvm_quads()``, with ``words`` words in each of ``taps`` runs.

    Args:
        scattered: the results of a channel are not beside those of the next.
    """
    fours = pixels // 4 if words > 1 else 0
    twos = (pixels - 4 * fours) // 2
    ones = pixels - 4 * fours - 2 * twos
    whole = 0 if scattered else k // 4
    rest = fours_of(k) - whole
    work: Counter[str] = Counter({"run": 1})
    for name, count in (("four", fours), ("two", twos), ("one", ones)):
        if count:
            work["size"] += 1
            work[name] += count * (whole + rest)
            work[f"{name}_word"] += count * (whole + rest) * words * taps
            work["tap"] += count * (whole + rest) * taps
            # One pixel of few channels beside each other is computed as a whole, and copied.
            is_copied = name == "one" and rest != 0 and k < _FEW and not scattered
            work["incomplete" if is_copied else "scattered"] += count * rest
    work["result"] += pixels * k
    return work


@cache
def product(
    rows: int, columns: int, length: int, cores: int, *, transposed: bool = False
) -> tuple[Work, ...]:
    """Return the work of a product of matrices [rows, length] x [length, columns]."""
    words = fours_of(length)
    costs = (*_quad_costs(rows, words), 0, 0)
    works: dict[tuple[int, int], Work] = {}
    shares = []
    for blocks, quads in split(fours_of(rows), fours_of(columns), costs, cores):
        begin, end = in_fours(blocks, rows)
        first, last = in_fours(quads, columns)
        shares.append((end - begin, last - first))
        if shares[-1] in works:  # another core does the same
            continue
        work = works[shares[-1]] = Counter({"call": 1, "split": int(rows > 4)})
        if begin < end and first < last:
            work.update(_run(end - begin, last - first, words, scattered=transposed))
            loads = (end - begin) * fours_of(last - first) * words
            work["across"] = loads * _across(length) // 4
    return tuple(works[share] for share in shares)


@cache
def products(
    batch: int, rows: int, columns: int, length: int, cores: int, *, by_rows: bool
) -> tuple[Work, ...]:
    """Return the work of a batch of products of matrices.

    Args:
        by_rows: the second operand has the rows of ``length``.
    """
    if batch == 1 and length == columns == 4 and not by_rows:
        return ({"matrix_4": 1, "row_4": -(-rows // cores)},)
    words, fours = fours_of(length), fours_of(columns)
    costs = (*_quad_costs(rows, words), 20 * words + 300, 0)
    vector = rows == 1 and length % 4 == 0 and by_rows
    works = []
    for blocks, quads in split(fours_of(rows), batch * fours, costs, cores):
        begin, end = in_fours(blocks, rows)
        work = Counter({"call": 1, "split": int(rows > 4)})
        at = quads[0]
        while begin < end and at < quads[1]:
            k = 4 * (at % fours)
            count = min((columns - k) // 4, quads[1] - at)
            if vector and count:
                work.update({"vector": 1, "vector_quad": count, "vector_word": count * words})
                at += count
                continue
            work.update(_run(end - begin, min(columns - k, 4), words))
            work.update({"pack": 1, "rows_word" if by_rows else "columns_word": words})
            work["across"] += (end - begin) * words * _across(length) // 4
            at += 1
        works.append(work)
    return tuple(works)


# ---------------------------------------------------------------------- convolutions


@cache
def convolution(tile: ConvolutionTile, cores: int) -> tuple[Work, ...]:
    """Return the work of a convolution's tile."""
    if tile.depthwise:
        return depthwise(tile, cores)
    pixels, words = tile.oy * tile.ox, fours_of(tile.fy * tile.fx * tile.channels)
    shared = 16 * words + 150 if tile.fy * tile.fx > 1 else 0
    costs = (*_quad_costs(pixels, words), 0, shared)
    works: dict[tuple[int, int, int], Work] = {}
    shares, ways = [], _Pixels(tile)
    for blocks, quads in split(fours_of(pixels), fours_of(tile.results), costs, cores):
        begin, end = in_fours(blocks, pixels)
        first, last = in_fours(quads, tile.results)
        shares.append((0 if ways.are_plain else begin, end - begin, last - first))
        if shares[-1] in works:  # another core does the same
            continue
        work = works[shares[-1]] = Counter({"call": 1, "split": int(pixels > 4)})
        if begin < end and first < last:
            work.update(ways.work(begin, end, last - first))
    return tuple(works[share] for share in shares)


def _inside(out: int, stride: int, pad: int, taps: int, size: int) -> range:
    """The outputs of which all taps are in the input."""
    if pad + size < taps:
        return range(0)
    return range(-(-pad // stride), min((pad + size - taps) // stride + 1, out))


class _Pixels:
    """How a core goes through its pixels."""

    def __init__(self, tile: ConvolutionTile) -> None:
        self.tile = tile
        self.row = tile.fx * tile.channels
        self.words = fours_of(tile.fy * self.row)
        self.rows = _inside(tile.oy, tile.stride[0], tile.pad[0], tile.fy, tile.iy)
        self.columns = _inside(tile.ox, tile.stride[1], tile.pad[1], tile.fx, tile.ix)
        self.has_runs = tile.fy == 1 or self.row % 4 == 0
        preferred = 16 if self.words <= 16 else 8 if self.words <= 32 else 4
        self.most = tile.windows or preferred
        pointwise = tile.fy == tile.fx == 1 and tile.stride == (1, 1) and tile.pad == (0, 0)
        self.are_plain = pointwise and tile.ox == tile.ix and tile.oy <= tile.iy

    def work(self, begin: int, end: int, k: int) -> Work:
        tile = self.tile
        if self.are_plain:
            return _run(end - begin, k, self.words)
        total: Counter[str] = Counter()
        has_copies = tile.fx >= tile.stride[1] and tile.channels % 4 == 0 and self.most >= 4
        while begin < end:
            y, x = divmod(begin, tile.ox)
            taps = self._taps(y)
            left, count = end - begin, 0
            if self.has_runs and taps:
                there = min(self.columns.stop - x, left) if x in self.columns else 0
                count = there if there == left else there - there % 4
                run = fours_of(self.row)
                if count:
                    total.update(_run(count, k, run, taps))
                elif has_copies and min(tile.ox - x, left) >= 4:
                    count = 4
                    total.update(_run(count, k, run, taps))
                    columns = 3 * tile.stride[1] + tile.fx
                    words = taps * columns * tile.channels // 4
                    total.update({"patch": 1, "patch_row": taps, "copy_word": words})
            if not count:
                count = min(left, min(4, self.most) if self.has_runs else self.most)
                total.update(_run(count, k, self.words))
                self._windows(total, begin, count)
            total["step"] += 1
            begin += count
        return total

    def _taps(self, y: int) -> int:
        tile = self.tile
        start = y * tile.stride[0] - tile.pad[0]
        return max(0, min(start + tile.fy, tile.iy) - max(start, 0))

    def _windows(self, total: Counter[str], pixel: int, count: int) -> None:
        """Add the copies of these pixels' windows, a row of pixels at a time."""
        tile, columns, end = self.tile, self.columns, pixel + count
        while pixel < end:
            y, x = divmod(pixel, tile.ox)
            stop = min(tile.ox, x + end - pixel)
            inside = max(0, min(stop, columns.stop) - max(x, columns.start))
            edges, taps = stop - x - inside, self._taps(y)
            if inside:
                words = inside * taps * fours_of(self.row)
                total.update({"window_row": inside * taps, "copy_word": words})
                whole = {"window": inside, "windows": 1}
                total.update(whole if y in self.rows else {"some_rows": inside})
            if edges:
                words = edges * self.words
                total.update({"edge": edges, "edge_row": edges * taps, "copy_word": words})
            pixel += stop - x


# ---------------------------------------------------------------------- elements


def sum_way(operands: int, *, looked_up: bool = False, halved: bool = False) -> str:
    """Return how each result of a sum is found: the name of its constant."""
    if halved:
        return "half"
    return "looked" if looked_up else "element" if operands <= 2 else "slow"


def elementwise(
    elements: int, cores: int, operands: int = 0, way: str = "element"
) -> tuple[Work, ...]:
    """Return the work of a sum of this many operands, or of a table.

    Args:
        elements: of the result.
        cores: number of cores.
        operands: of the sum.
        way: see `sum_way`.
    """
    share = min(4 * -(-fours_of(elements) // cores), elements)
    more = share * max(operands - 3, 0)
    rest = share % 8 if operands == 2 else 0
    work = {"call": 1, way: share - rest, "rest": rest, "rests": int(rest > 0), "operand": more}
    return (work,)


def averages(
    windows: int, channels: int, size: tuple[int, int], columns: int, cores: int
) -> tuple[Work, ...]:
    """Return the work of the averages of windows.

    Args:
        windows: their number.
        channels: of each.
        size: rows and columns of a window.
        columns: of the map.
        cores: number of cores.
    """
    share = -(-windows * fours_of(channels) // cores)
    runs, pixels = (1, size[0] * size[1]) if size[1] == columns else size
    runs *= share
    parts = {"four": runs * (pixels // 4), "one": runs * (pixels % 4)}
    across = runs * pixels * _across(channels) // 4
    return ({"call": 1, "quad": share, "run": runs, **parts, "across": across},)


def transposition(rows: int, columns: int, cores: int) -> tuple[Work, ...]:
    """Return the work of transposing a matrix of bytes."""
    works = []
    for part in share(fours_of(columns), cores):
        begin, end = in_fours(part, columns)
        count = max(end - begin, 0)
        fours, rest = divmod(count, 4)
        blocks = fours * (rows // 4)
        across = blocks * (_across(rows) + _across(columns))
        parts = {"four": fours, "block": blocks, "across": across}
        # What is left: some rows of four columns, and all rows of fewer columns.
        left = {"row": fours * (rows % 4), "single": 4 * fours * (rows % 4)}
        more = {"rest_row": rows * (rest > 0), "rest": rest * rows}
        works.append({"call": 1, **parts, **left, **more})
    return tuple(works)
